"""AWQ's GEMM layout, as AutoAWQ writes it (github.com/casper-hansen/AutoAWQ, WQLinear_GEMM).

qweight int32 [n_in, n_out / 8]      nibble i of word w: output 8w + ORDER[i]
qzeros  int32 [groups, n_out / 8]    the same
scales  float [groups, n_out]        weight = (code - zero) * scale
"""

from __future__ import annotations

import torch

from runtime.checkpoint.packed_linear import NIBBLES, PackedLinear, nibbles
from runtime.checkpoint.packed_settings import PackedSettings
from runtime.checkpoint.tensor_files import TensorFiles

ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
_PLACES = torch.tensor(ORDER).argsort()


def read_awq(files: TensorFiles, name: str, shape: tuple[int, int], settings: PackedSettings) -> PackedLinear:
    """The linear whose tensors are `name`.qweight, .qzeros, .scales; `shape` is (n_out, n_in).

    Raises DecdecError naming the tensor whose type or shape is not as above.
    """
    n_out, n_in = shape
    group = settings.group_of(n_in)
    groups, words = n_in // group, n_out // NIBBLES
    codes = files.load_words(f"{name}.qweight", (n_in, words))
    zeros = files.load_words(f"{name}.qzeros", (groups, words))
    files.require_shape(f"{name}.scales", (groups, n_out))
    scales = files.load(f"{name}.scales").float()
    return PackedLinear(_by_output(codes), _by_output(zeros), scales.t().contiguous(), group)


def _by_output(words: torch.Tensor) -> torch.Tensor:
    """int32 [a, n_out / 8] -> uint8 [n_out, a]."""
    return nibbles(words)[..., _PLACES].flatten(1).t().contiguous()
