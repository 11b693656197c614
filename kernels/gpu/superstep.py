"""One superstep of a group: its words read, decoded and their escapes replaced; what product and decode share."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.escapes import (
    escape_mask,
    first_bits,
    replace_escapes,
    save_registers,
    saved_registers,
    walk_escapes,
)
from kernels.gpu.primitives import stream_words1
from kernels.gpu.registers import lane_words, plain_registers, step_registers


@triton.jit
def superstep_registers(
    pointer: tl.tensor,
    lane: tl.tensor,
    stream: tl.tensor,
    first_bit: tl.tensor,
    short_bits: tl.tensor,
    address: tl.tensor,
    WIDTH: tl.constexpr,
    ESCAPED: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Tuple of 8 * STEPS registers of one-byte codes (odd ones of widths up to 4 times 2^WIDTH unless ESCAPED).

    With ESCAPED the bytes are signed, and those of escaped weights in place; `first_bit` is where the superstep's
    short codes begin in `stream`, `address` the lane's shared memory.
    """
    words = lane_words(pointer, lane, STEPS * WIDTH, ASM)
    if ESCAPED:
        line = stream_words1(stream + (first_bit >> 5) + lane, ASM)
        return _with_escapes(words, line, stream, first_bit, short_bits, address, WIDTH, STEPS, ASM)
    else:
        registers = ()
        for s in tl.static_range(STEPS):
            registers = registers + step_registers(words, s * WIDTH, WIDTH)
        return registers


@triton.jit
def _with_escapes(
    words: tl.tensor,
    line: tl.tensor,
    stream: tl.tensor,
    first_bit: tl.tensor,
    short_bits: tl.tensor,
    address: tl.tensor,
    WIDTH: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    masks = ()
    coded = ()
    for s in tl.static_range(STEPS):
        step = plain_registers(words, s * WIDTH, WIDTH)
        masks = masks + (escape_mask(step, WIDTH, ASM),)
        if ASM:
            save_registers(address, step, s)
        else:
            coded = coded + (step,)
    bits = first_bits(masks, first_bit, short_bits, STEPS, ASM)
    registers = ()
    if ASM:
        walk_escapes(masks, bits, first_bit, line, stream, address, short_bits, WIDTH, STEPS)
    for s in tl.static_range(STEPS):
        if ASM:
            registers = registers + saved_registers(address, s)
        else:
            registers = registers + replace_escapes(coded[s], masks[s], bits[s], stream, short_bits, WIDTH)
    return registers
