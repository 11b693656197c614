"""Order, weights and noise of scores.

Scores are compared by keys: int32 in the same order, equal for equal scores, `LEAST` for -inf and for what is
not a number.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.sampling import state

LEAST = tl.constexpr(-0x7F800001)
# Beyond every token id.
NO_TOKEN = tl.constexpr(0x7FFFFFFF)
_MAGNITUDE = tl.constexpr(0x7FFFFFFF)
_INVERSE_TEMPERATURE = tl.constexpr(state.INVERSE_TEMPERATURE)
_TOP_P = tl.constexpr(state.TOP_P)
_MIN_P = tl.constexpr(state.MIN_P)
_TOP_K = tl.constexpr(state.TOP_K)
_SEED = tl.constexpr(state.SEED)
_LINEAR = tl.constexpr(2.0**-6)


@triton.jit
def load_float(settings: tl.tensor, INDEX: tl.constexpr) -> Any:
    """One of the settings that are float32."""
    return tl.load(settings + INDEX).to(tl.float32, bitcast=True)


@triton.jit
def load_filters(settings: tl.tensor) -> Any:
    """inverse temperature, top_p, min_p, top_k, and whether any of the last three leaves tokens out."""
    inverse = load_float(settings, _INVERSE_TEMPERATURE)
    top_p = load_float(settings, _TOP_P)
    min_p = load_float(settings, _MIN_P)
    top_k = tl.load(settings + _TOP_K)
    filtered = (top_p < 1.0) | (min_p > 0.0) | (top_k > 0)
    return inverse, top_p, min_p, top_k, filtered


@triton.jit
def key_of(scores: tl.tensor) -> Any:
    """Keys of float32 scores."""
    plain = tl.where(scores == scores, tl.where(scores == 0.0, 0.0, scores), float("-inf"))
    bits = plain.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & _MAGNITUDE)


@triton.jit
def score_of(keys: tl.tensor) -> Any:
    """The scores that keys were made of."""
    return (keys ^ ((keys >> 31) & _MAGNITUDE)).to(tl.float32, bitcast=True)


@triton.jit
def weight_of(keys: tl.tensor, top: tl.tensor, inverse: tl.tensor) -> Any:
    """Probability over that of the key `top`, 1 for the largest; `inverse`: of the temperature."""
    return tl.exp((score_of(keys) - score_of(top)) * inverse)


@triton.jit
def exponential(settings: tl.tensor, position: tl.tensor, ids: tl.tensor) -> Any:
    """A draw of the exponential distribution for each token id, by seed and position alone.

    The id with the largest weight / draw is a draw from the weights, whatever other ids there are.
    """
    seed = tl.load((settings + _SEED).to(tl.pointer_type(tl.int64), bitcast=True))
    word, _, _, _ = tl.philox(seed, ids, position, 0, 0)
    uniform = (word.to(tl.float32) + 0.5) * (2.0**-32)
    # -log(1 - u), whose smallest values decide and would be lost in 1 - u.
    series = uniform * (1.0 + uniform * (0.5 + uniform * (1.0 / 3.0 + uniform * 0.25)))
    return tl.where(uniform < _LINEAR, series, -tl.log(1.0 - uniform))
