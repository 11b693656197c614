"""`DeviceTables`: codes and look-up tables of a matrix as the table product reads them.

A number v of `table_steps` is two bytes, v = high * FACTOR + low, each looked up by its own permutes.
3 bits: high is signed, low unsigned, FACTOR 256. 4 bits: low has 7 bits, FACTOR 128. A permute over one half
of a table answers for a code of the other half with the sign of an entry, eight times: 0 for the low bytes
and for the upper half, -1 for the lower half, which is negative. So sums over both halves are sums over the
weights, if the upper half's high bytes are one more than they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from kernels.dec.table import TableCodes
from kernels.dec.table_steps import table_steps
from kernels.gpu.fields import GROUP_ROWS, LANES, STEP_COLUMNS
from kernels.gpu.fragments import in_supersteps, lane_registers
from kernels.gpu.packing import MOST_COLUMNS

SUPERSTEP = 4
FACTORS = {3: 256, 4: 128}
# Packing takes 30 bytes for each of so many weights.
_WEIGHTS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class DeviceTables:
    """Codes [rows, columns] below 2^bits, each row with a table of 2^bits entries.

    words: int32; group of 8 rows after group, in it supersteps of 4 steps of 128 columns, then single steps,
    each in lane order; a word has the codes of two registers, low nibbles first. With 3 bits a step has 3
    words, and the top bits of their nibbles are the codes that a fourth would have.
    entries: int32 [8 groups, 2^bits / 2]: the high bytes of a row's numbers, then the low bytes.
    zero, step: float32 [rows]: a weight is (number + zero) * step.
    """

    bits: int
    rows: int
    columns: int
    words: Tensor
    entries: Tensor
    zero: Tensor
    step: Tensor

    def __post_init__(self) -> None:
        words = self.groups * self.steps * LANES * self.bits
        if self.bits not in FACTORS or self.words.numel() != words:
            raise ValueError(f"{self.words.numel()} words are not {words} of {self.bits} bits a weight")
        if tuple(self.entries.shape) != (GROUP_ROWS * self.groups, 2**self.bits // 2):
            raise ValueError(f"tables {list(self.entries.shape)} do not fit {self.rows} rows")
        if self.zero.numel() != self.rows or self.step.numel() != self.rows:
            raise ValueError(f"{self.zero.numel()} zeros and {self.step.numel()} steps for {self.rows} rows")

    @property
    def groups(self) -> int:
        """Groups of 8 rows."""
        return -(-self.rows // GROUP_ROWS)

    @property
    def steps(self) -> int:
        """Steps of 128 columns."""
        return -(-self.columns // STEP_COLUMNS)

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.words.device

    @property
    def nbytes(self) -> int:
        """Bytes of codes and tables, padding included."""
        tensors = (self.words, self.entries, self.zero, self.step)
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def bits_per_weight(self) -> float:
        """8 * nbytes over the weights of the unpadded matrix."""
        return 8 * self.nbytes / (self.rows * self.columns)

    def to(self, device: torch.device | str) -> DeviceTables:
        """The same matrix on another device."""
        return self._mapped(lambda tensor: tensor.to(device))

    def clone(self) -> DeviceTables:
        """A copy with memory of its own."""
        return self._mapped(Tensor.clone)

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> DeviceTables:
        return replace(
            self,
            words=change(self.words),
            entries=change(self.entries),
            zero=change(self.zero),
            step=change(self.step),
        )


def pack_tables(base: TableCodes) -> DeviceTables:
    """Pack a base where it lies. Entries are rounded to whole steps (`kernels.dec.table_steps`)."""
    rows, columns = base.codes.shape
    if not 0 < columns <= MOST_COLUMNS or rows == 0:
        raise ValueError(f"a matrix of {rows} x {columns} cannot be packed")
    fixed = table_steps(base.table)
    rank = base.table.argsort(dim=1, stable=True).argsort(1)
    at_once = GROUP_ROWS * max(1, _WEIGHTS_AT_ONCE // (GROUP_ROWS * columns))
    parts = (
        _words(codes, ranks, base.bits)
        for codes, ranks in zip(base.codes.split(at_once), rank.split(at_once), strict=True)
    )
    return DeviceTables(
        bits=base.bits,
        rows=rows,
        columns=columns,
        words=torch.cat([part.view(-1) for part in parts]),
        entries=pad(_entry_words(fixed.numbers, base.bits), (0, 0, 0, -rows % GROUP_ROWS)),
        zero=fixed.zero.float(),
        step=fixed.step,
    )


def _words(codes: Tensor, rank: Tensor, bits: int) -> Tensor:
    """Codes of some groups of rows, renamed by `rank` (entries ascend) and in lane order."""
    renamed = rank.to(torch.uint8).gather(1, codes.long())
    padded = pad(renamed, (0, -codes.shape[1] % STEP_COLUMNS, 0, -codes.shape[0] % GROUP_ROWS))
    pairs = lane_registers(padded).int().unflatten(3, (4, 2))  # group, step, lane, word, half, byte
    shifts = torch.arange(0, 32, 4, device=codes.device, dtype=torch.int32).view(2, 4)
    # Nibbles do not overlap, so that a sum in 64 bits is their union.
    words = (pairs.long() << shifts).sum((4, 5))
    if bits == 3:
        spread = [(words[..., 3] >> bit & 0x11111111) << 3 for bit in range(3)]
        words = words[..., :3] | torch.stack(spread, -1)
    return in_supersteps(_as_int32(words), SUPERSTEP)


def _entry_words(numbers: Tensor, bits: int) -> Tensor:
    high = numbers.div(FACTORS[bits], rounding_mode="floor")
    low = numbers - high * FACTORS[bits]
    if bits == 4:
        high[:, numbers.shape[1] // 2 :] += 1
    octets = torch.cat([high & 0xFF, low], 1).to(torch.uint8)
    return octets.contiguous().view(torch.int32)


def _as_int32(words: Tensor) -> Tensor:
    """The low 32 bits of int64 words."""
    return words.contiguous().view(torch.int32)[..., ::2].contiguous()
