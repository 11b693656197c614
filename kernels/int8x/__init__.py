"""INT8-X: lossless coding of int8 weights, as adaptive planes with escapes or as nested bitmaps of levels."""

from kernels.int8x.adaptive import (
    AdaptivePlan,
    check_adaptive,
    decode_adaptive,
    encode_adaptive,
    plan_adaptive,
)
from kernels.int8x.adaptive_streams import AdaptiveStreams
from kernels.int8x.bitmap import check_streams, decode, encode
from kernels.int8x.levels import BLOCK, PAPER_LEVELS, best_levels, check_levels
from kernels.int8x.limits import entropy_bits, histogram, huffman_bits
from kernels.int8x.quantise import Quantised, absmax_scales, dequantise, quantise
from kernels.int8x.scales import Granularity, Scales, factor_codes, factors
from kernels.int8x.streams import BitmapStreams

__all__ = [
    "BLOCK",
    "PAPER_LEVELS",
    "AdaptivePlan",
    "AdaptiveStreams",
    "BitmapStreams",
    "Granularity",
    "Quantised",
    "Scales",
    "absmax_scales",
    "best_levels",
    "check_adaptive",
    "check_levels",
    "check_streams",
    "decode",
    "decode_adaptive",
    "dequantise",
    "encode",
    "encode_adaptive",
    "entropy_bits",
    "factor_codes",
    "factors",
    "histogram",
    "huffman_bits",
    "plan_adaptive",
    "quantise",
]
