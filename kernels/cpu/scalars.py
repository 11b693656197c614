"""Scalar building blocks that vectorise: bfloat16 conversion, bit casts, an exponential; and prefetching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kernels.jit import njit_inline, njit_relaxed_inline

_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_EXP_MIN, _EXP_MAX = np.float32(-87.0), np.float32(88.0)
_HALF, _ONE = np.float32(0.5), np.float32(1.0)
# Minimax polynomial of exp on [-ln2/2, ln2/2] (Cephes expf, public domain).
_P0, _P1, _P2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_P3, _P4, _P5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)


def _float_of_bits(typingctx: Any, value: Any) -> Any:
    """The float32 with the given uint32 bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), codegen


def _bits_of_float(typingctx: Any, value: Any) -> Any:
    """The bits of a float32 as uint32."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.uint32(types.float32), codegen


def _prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of array[index] (one dimension, contiguous) without waiting for it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (address.type,), kind)
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


prefetch = cast(Callable[[Any, Any], None], intrinsic(_prefetch))
float_of_bits = cast(Callable[[Any], Any], intrinsic(_float_of_bits))
bits_of_float = cast(Callable[[Any], Any], intrinsic(_bits_of_float))


@njit_inline
def from_bf16(bits: np.int16) -> np.float32:
    """bfloat16 bits to float32 (exact)."""
    return float_of_bits(np.uint32(np.uint32(bits) << np.uint32(16)))


@njit_inline
def to_bf16(value: np.float32) -> np.int16:
    """float32 to bfloat16 bits, to nearest even as torch does; NaN stays NaN."""
    bits = bits_of_float(np.float32(value))
    odd = np.uint32((bits >> np.uint32(16)) & np.uint32(1))
    rounded = np.uint32(np.uint32(bits + np.uint32(0x7FFF)) + odd)
    keep = np.uint32(bits | np.uint32(0x400000))
    is_nan = np.uint32(bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.int16(np.uint16((keep if is_nan else rounded) >> np.uint32(16)))


@njit_relaxed_inline
def exp32(x: np.float32) -> np.float32:
    """e^x within 2 ulp on [-87, 88], clamped outside; no branch and no call, so loops over it vectorise."""
    x = np.float32(min(max(x, _EXP_MIN), _EXP_MAX))
    n = np.float32(np.floor(x * _LOG2E + _HALF))
    r = np.float32(np.float32(x - n * _LN2_HIGH) - n * _LN2_LOW)
    p = np.float32(((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5)
    y = np.float32(p * (r * r) + r + _ONE)
    return y * float_of_bits(np.uint32(np.int32(np.int32(n) + np.int32(127)) << np.int32(23)))
