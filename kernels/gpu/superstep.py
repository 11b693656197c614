"""One superstep of a group: its words read, decoded, and the weights outside the plane put in their
places.
"""

# A return under a constexpr `if` needs its `else` in triton, and its tuples grow by `+` alone.
# ruff: noqa: RET505, RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.escapes import escape_mask, first_bits, replace_escapes, walk_escapes
from kernels.gpu.list_walk import list_words, replace_listed, walk_list
from kernels.gpu.primitives import stream_words1
from kernels.gpu.registers import lane_words, plain_registers, step_registers
from kernels.gpu.saving import own_address, save_registers, saved_registers

# How a group's weights outside its plane are kept (`fields.Form`).
PLAIN = tl.constexpr(0)
ESCAPED = tl.constexpr(1)
LISTED = tl.constexpr(2)


@triton.jit
def read_superstep(
    pointer: tl.tensor,
    group: tl.tensor,
    start: tl.tensor,
    end: tl.tensor,
    lane: tl.tensor,
    WIDTH: tl.constexpr,
    KIND: tl.constexpr,
    STEPS: tl.constexpr,
    ORDERED: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """What `superstep_registers` decodes: the lane's words at `pointer`, and of the stream what comes first.

    `start` is where the superstep's part of the stream begins (in bits if ESCAPED, in words if LISTED) and
    `end` where it ends. `group` is `group_lines`'s. ORDERED: see `lane_words`.
    """
    words = lane_words(pointer, lane, STEPS * WIDTH, ASM, ORDERED)
    if KIND == ESCAPED:
        words = words + (stream_words1(group[2] + (start >> 5) + lane, ASM),)
    if KIND == LISTED and ASM:
        first = list_words(group[2], start, end - start, lane, 0)
        words = words + (first, list_words(group[2], start, end - start, lane, 1))
    return words


@triton.jit
def superstep_registers(
    read: tl.tuple,
    group: tl.tensor,
    start: tl.tensor,
    end: tl.tensor,
    lane: tl.tensor,
    WIDTH: tl.constexpr,
    KIND: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Tuple of 8 * STEPS registers of one-byte codes: unsigned if PLAIN (odd ones of widths up to 4 times
    2^WIDTH), otherwise signed, those of weights outside the plane in place. `read` is `read_superstep`'s.
    """
    if KIND == ESCAPED:
        return _with_escapes(read, group, start, lane, WIDTH, STEPS, ASM)
    elif KIND == LISTED:
        return _with_list(read, group, start, end - start, lane, WIDTH, STEPS, ASM)
    else:
        registers = ()
        for s in tl.static_range(STEPS):
            registers = registers + step_registers(read, s * WIDTH, WIDTH)
        return registers


@triton.jit
def _with_list(
    words: tl.tensor,
    group: tl.tensor,
    start: tl.tensor,
    count: tl.tensor,
    lane: tl.tensor,
    WIDTH: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    _, _, stream, address, short_bits, _ = group
    registers = ()
    if ASM:
        own = own_address(address, lane, True)
        for s in tl.static_range(STEPS):
            save_registers(own, plain_registers(words, s * WIDTH, WIDTH), s, True)
        first, second = words[STEPS * WIDTH], words[STEPS * WIDTH + 1]
        walk_list(stream, start, count, lane, first, second, address, short_bits, WIDTH)
        for s in tl.static_range(STEPS):
            registers = registers + saved_registers(own, s, True)
        return registers
    else:
        for s in tl.static_range(STEPS):
            registers = registers + plain_registers(words, s * WIDTH, WIDTH)
        return replace_listed(registers, stream, start, count, lane, short_bits, WIDTH, STEPS)


@triton.jit
def _with_escapes(
    words: tl.tensor,
    group: tl.tensor,
    first_bit: tl.tensor,
    lane: tl.tensor,
    WIDTH: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    _, _, stream, address, short_bits, _ = group
    own = own_address(address, lane, False)
    masks = ()
    coded = ()
    for s in tl.static_range(STEPS):
        step = plain_registers(words, s * WIDTH, WIDTH)
        masks = masks + (escape_mask(step, WIDTH, ASM),)
        if ASM:
            save_registers(own, step, s, False)
        else:
            coded = coded + (step,)
    bits = first_bits(masks, first_bit, short_bits, STEPS, ASM)
    registers = ()
    if ASM:
        line = words[STEPS * WIDTH]
        walk_escapes(masks, bits, first_bit, line, stream, own, short_bits, WIDTH, STEPS)
    for s in tl.static_range(STEPS):
        if ASM:
            registers = registers + saved_registers(own, s, False)
        else:
            registers = registers + replace_escapes(coded[s], masks[s], bits[s], stream, short_bits, WIDTH)
    return registers
