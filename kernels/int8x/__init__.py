"""INT8-X: lossless coding of int8 weights as levels of fixed width found through nested bitmaps."""

from kernels.int8x.bitmap import check_streams, decode, encode
from kernels.int8x.levels import BLOCK, PAPER_LEVELS, check_levels
from kernels.int8x.limits import entropy_bits, histogram, huffman_bits
from kernels.int8x.quantise import Granularity, dequantise, quantise
from kernels.int8x.streams import BitmapStreams

__all__ = [
    "BLOCK",
    "PAPER_LEVELS",
    "BitmapStreams",
    "Granularity",
    "check_levels",
    "check_streams",
    "decode",
    "dequantise",
    "encode",
    "entropy_bits",
    "histogram",
    "huffman_bits",
    "quantise",
]
