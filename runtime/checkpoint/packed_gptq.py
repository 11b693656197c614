"""GPTQ's layout, as AutoGPTQ and GPTQModel write it (github.com/AutoGPTQ/AutoGPTQ, ModelCloud/GPTQModel).

qweight int32 [n_in / 8, n_out]      nibble i of row r: input 8r + i
qzeros  int32 [groups, n_out / 8]    nibble i of word w: output 8w + i; the first format stores zero - 1
scales  float [groups, n_out]        weight = (code - zero) * scale
g_idx   int32 [n_in], optional       the group of every input
"""

from __future__ import annotations

import torch

from kernels.dec.rtn import group_count
from runtime.checkpoint.files import shown
from runtime.checkpoint.packed_linear import NIBBLES, PackedLinear, nibbles
from runtime.checkpoint.packed_settings import PackedSettings
from runtime.checkpoint.tensor_files import TensorFiles
from runtime.errors import DecdecError

# One in every nibble. GPTQModel takes it off whole words, where a zero point of 0 borrows from its neighbour,
# so it is added to whole words again.
ONES = 0x11111111


def read_gptq(
    files: TensorFiles, name: str, shape: tuple[int, int], settings: PackedSettings
) -> PackedLinear:
    """The linear whose tensors are `name`.qweight, .qzeros, .scales and .g_idx; `shape` is (n_out, n_in).

    Raises DecdecError naming the tensor whose type or shape is not as above, or where neighbouring inputs
    belong to different groups ("act order"): a base has one scale for each run of inputs.
    """
    n_out, n_in = shape
    group = settings.group_of(n_in)
    groups = group_count(n_in, group)
    words = files.load_words(f"{name}.qweight", (n_in // NIBBLES, n_out))
    stored = files.load_words(f"{name}.qzeros", (groups, n_out // NIBBLES))
    files.require_shape(f"{name}.scales", (groups, n_out))
    scales = files.load(f"{name}.scales").float()
    _require_runs(files, f"{name}.g_idx", n_in, group)
    codes = nibbles(words.t()).flatten(1)
    zeros = nibbles(stored + ONES * settings.zero_offset).flatten(1).t().contiguous()
    return PackedLinear(codes, zeros, scales.t().contiguous(), group)


def _require_runs(files: TensorFiles, name: str, n_in: int, group: int) -> None:
    if not files.has(name):
        return
    index = files.load_words(name, (n_in,))
    if not torch.equal(index, torch.arange(n_in, dtype=torch.int32) // group):
        raise DecdecError(
            f"The checkpoint in {files.folder} cannot be a base",
            f"{shown(name)} spreads groups over distant inputs (desc_act, act order)",
            "use a checkpoint made with desc_act false or with static groups",
        )
