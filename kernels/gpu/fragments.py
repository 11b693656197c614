"""The order in which lanes read codes: torch forms of what the kernels do with registers.

Lane 4 g + c serves row g of a group and columns 32 c .. 32 c + 31 of a step; register 2 j + h holds in byte
i the code of column 32 c + 8 j + 2 i + h (so registers of h = 0 and h = 1 are the two row halves of one mma
operand).
"""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.fields import GROUP_ROWS, LANES, PIECES, REGISTERS, STEP_COLUMNS


def lane_registers(codes: Tensor) -> Tensor:
    """Codes [8 groups, 128 steps] -> [groups, steps, lanes, registers, bytes]."""
    groups, steps = codes.shape[0] // GROUP_ROWS, codes.shape[1] // STEP_COLUMNS
    split = codes.view(groups, GROUP_ROWS, steps, 4, 4, 4, 2)  # group, g, step, c, j, i, h
    return split.permute(0, 2, 1, 3, 4, 6, 5).reshape(groups, steps, LANES, REGISTERS, 4)


def _lane_words(codes: Tensor, width: int) -> Tensor:
    """int32 [groups, steps, lanes, width]: the words of `fields.PIECES`."""
    registers = lane_registers(codes)
    packed = torch.zeros(*registers.shape[:3], width, 4, dtype=torch.uint8, device=codes.device)
    for piece in PIECES[width]:
        bits = (registers[..., piece.register, :] >> piece.source) & ((1 << piece.count) - 1)
        packed[..., piece.word, :] |= bits << piece.target
    return packed.view(torch.int32).squeeze(-1)


def _vectors(words: Tensor) -> Tensor:
    """[..., lanes, words] -> [..., lanes * words]: runs of four words a lane, then two, then one."""
    count = words.shape[-1]
    runs, first = [], 0
    while first < count:
        size = 4 if count - first >= 4 else 2 if count - first >= 2 else 1
        runs.append(words[..., first : first + size].flatten(-2))
        first += size
    return torch.cat(runs, -1)


def _supersteps(per_step: Tensor, unroll: int) -> tuple[Tensor, Tensor]:
    """[groups, steps, lanes, n] -> whole supersteps [groups, s, lanes, unroll * n], then single steps."""
    groups, steps, lanes, count = per_step.shape
    whole = steps // unroll
    main = per_step[:, : whole * unroll].reshape(groups, whole, unroll, lanes, count)
    return main.transpose(2, 3).reshape(groups, whole, lanes, unroll * count), per_step[:, whole * unroll :]


def in_supersteps(lane_words: Tensor, unroll: int) -> Tensor:
    """Words [groups, steps, lanes, n] as warps load them: [groups, words], superstep after superstep."""
    main, tail = _supersteps(lane_words, unroll)
    return torch.cat([_vectors(main).flatten(1), _vectors(tail).flatten(1)], 1)


def superstep_words(codes: Tensor, width: int, unroll: int) -> Tensor:
    """Planes of uint8 codes [8 groups, columns]: int32 [groups, words], superstep after superstep."""
    return in_supersteps(_lane_words(codes, width), unroll)


def escape_order(values: Tensor, unroll: int) -> tuple[Tensor, Tensor]:
    """Values [8 groups, columns] in stream order [groups, columns * 8], and their sum in each superstep.

    Stream order is superstep, lane, step, position from 31 down (position 4 r + i is byte i of register r);
    the sums, int64 [groups * supersteps], count escapes when the values are a mask.
    """
    groups = values.shape[0] // GROUP_ROWS
    positions = lane_registers(values).flatten(3).flip(-1)
    main, tail = _supersteps(positions, unroll)
    sums = torch.cat([main.sum((2, 3)), tail.sum((2, 3))], 1)
    return torch.cat([main.reshape(groups, -1), tail.reshape(groups, -1)], 1), sums.view(-1)


def list_order(values: Tensor, unroll: int) -> tuple[Tensor, list[int]]:
    """Values [8 groups, columns] in the order of lists [groups, columns * 8], and the sizes of the
    supersteps.

    That order is superstep, step, half of the registers, lane, register, byte: the order of shared memory.
    """
    groups, steps = values.shape[0] // GROUP_ROWS, values.shape[1] // STEP_COLUMNS
    halves = lane_registers(values).view(groups, steps, LANES, 2, 16).transpose(2, 3)
    whole = steps // unroll
    size = GROUP_ROWS * STEP_COLUMNS
    return halves.reshape(groups, -1), [unroll * size] * whole + [size] * (steps - whole * unroll)
