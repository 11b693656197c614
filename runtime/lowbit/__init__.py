"""Low-bit bases with their residuals and bucket profiles: made, written and read block by block."""

from runtime.lowbit.blocks import VERSION, block_path, has_block, open_block, read_block, write_block
from runtime.lowbit.weights import BaseWeights, LowBitWeights, base_shape, scaled_base, with_residual

__all__ = [
    "VERSION",
    "BaseWeights",
    "LowBitWeights",
    "base_shape",
    "block_path",
    "has_block",
    "open_block",
    "read_block",
    "scaled_base",
    "with_residual",
    "write_block",
]
