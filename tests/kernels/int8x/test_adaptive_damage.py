"""Streams that contradict each other are refused before any code is read through them."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.int8x.adaptive import check_adaptive, decode_adaptive, encode_adaptive


def coded(n_out=70, n_in=45):
    generator = torch.Generator().manual_seed(1)
    spread = torch.logspace(-0.3, 1.4, n_out)[:, None]
    values = torch.randn(n_out, n_in, generator=generator) * spread
    return encode_adaptive(values.round().clamp(-127, 127).to(torch.int8))


STREAMS = coded()


def changed(name, change):
    part = getattr(STREAMS, name).clone()
    return dataclasses.replace(STREAMS, **{name: change(part)})


def test_the_example_uses_every_stream():
    assert all(part.numel() for part in STREAMS.parts.values())
    assert {int(form) >> 4 for form in STREAMS.widths} - {0}


@given(st.sampled_from(["widths", "short_counts", "tail_counts", "order"]), st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_any_flipped_bit_of_a_table_is_refused(name, position):
    def flip(part):
        data = part.view(torch.uint8)
        data[position // 8 % data.numel()] ^= 1 << position % 8
        return part

    with pytest.raises(ValueError, match=r"group|groups|widths|order|negative"):
        check_adaptive(changed(name, flip))


@given(st.sampled_from(["plane", "short"]), st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_a_flipped_bit_of_a_stream_is_refused_or_changes_one_weight(name, position):
    def flip(part):
        data = part.view(torch.uint8)
        data[position // 8 % data.numel()] ^= 1 << position % 8
        return part

    damaged = changed(name, flip)
    try:
        check_adaptive(damaged)
    except ValueError:
        return
    assert (decode_adaptive(damaged) != decode_adaptive(STREAMS)).sum() == 1


def test_escapes_that_change_the_count_are_refused():
    def escape_all(part):
        part[:8] = -1
        return part

    with pytest.raises(ValueError, match=r"group 0 has \d+ escapes"):
        check_adaptive(changed("plane", escape_all))


def test_ones_beyond_the_end_of_a_group():
    def add(part):
        part[-1] |= -(2**31)
        return part

    q = torch.zeros(3, 3, dtype=torch.int8)
    streams = encode_adaptive(q)
    with pytest.raises(ValueError, match="beyond their end"):
        check_adaptive(dataclasses.replace(streams, plane=add(streams.plane.clone())))


@pytest.mark.parametrize("form", [0, 9, 15, 0x10 | 4, 0x20 | 8, 0x70 | 3])
def test_forms_that_do_not_exist(form):
    with pytest.raises(ValueError, match="widths"):
        check_adaptive(changed("widths", lambda part: part.fill_(form)))


def test_order_with_a_row_twice():
    def repeat(part):
        part[3] = part[4]
        return part

    with pytest.raises(ValueError, match="permutation"):
        check_adaptive(changed("order", repeat))


@pytest.mark.parametrize("name", ["plane", "short", "tail"])
@pytest.mark.parametrize("change", [lambda part: part[:-1], lambda part: torch.cat([part, part[:1]])])
def test_streams_of_another_length(name, change):
    with pytest.raises(ValueError, match=f"{name} has"):
        check_adaptive(changed(name, change))


@pytest.mark.parametrize("name", ["plane", "short", "tail", "short_counts", "tail_counts", "widths", "order"])
def test_wrong_types_shapes_and_table_lengths(name):
    with pytest.raises(ValueError, match=name.replace("short_counts", "counts")):
        changed(name, lambda part: part.to(torch.int64))
    with pytest.raises(ValueError, match=name):
        changed(name, lambda part: part[None])
    if name not in ("plane", "short", "tail"):
        with pytest.raises(ValueError, match=name):
            changed(name, lambda part: part[:-1].clone())


def test_impossible_shapes():
    with pytest.raises(ValueError, match="impossible"):
        dataclasses.replace(STREAMS, n_out=0)
    with pytest.raises(ValueError, match="impossible"):
        dataclasses.replace(STREAMS, n_in=2**31)
