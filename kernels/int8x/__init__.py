"""INT8-X: lossless coding of int8 weights, as adaptive planes with escapes or as nested bitmaps of levels."""

from kernels.int8x.adaptive import check_adaptive, decode_adaptive, encode_adaptive, plan_adaptive
from kernels.int8x.adaptive_streams import AdaptiveStreams
from kernels.int8x.bitmap import check_streams, decode, encode
from kernels.int8x.levels import BLOCK, PAPER_LEVELS, check_levels
from kernels.int8x.limits import entropy_bits, histogram, huffman_bits
from kernels.int8x.quantise import Granularity, dequantise, quantise
from kernels.int8x.streams import BitmapStreams

__all__ = [
    "BLOCK",
    "PAPER_LEVELS",
    "AdaptiveStreams",
    "BitmapStreams",
    "Granularity",
    "check_adaptive",
    "check_levels",
    "check_streams",
    "decode",
    "decode_adaptive",
    "dequantise",
    "encode",
    "encode_adaptive",
    "entropy_bits",
    "histogram",
    "huffman_bits",
    "plan_adaptive",
    "quantise",
]
