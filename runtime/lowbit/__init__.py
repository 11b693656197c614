"""Low-bit bases with their residuals, and the bucket profile: made, written and read block by block."""

from runtime.lowbit.blocks import VERSION, block_path, has_block, read_block, write_block
from runtime.lowbit.profile import has_profile, read_profile, write_profile
from runtime.lowbit.weights import BASES, Base, LowBitWeights, quantise

__all__ = [
    "BASES",
    "VERSION",
    "Base",
    "LowBitWeights",
    "block_path",
    "has_block",
    "has_profile",
    "quantise",
    "read_block",
    "read_profile",
    "write_block",
    "write_profile",
]
