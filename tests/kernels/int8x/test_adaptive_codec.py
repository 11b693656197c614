"""Compiled adaptive planes against the plain reference, and both against known answers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.int8x import adaptive_reference as reference
from kernels.int8x.adaptive import check_adaptive, decode_adaptive, encode_adaptive, plan_adaptive
from kernels.int8x.limits import entropy_bits, histogram


def weights(n_out, n_in, spread, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.exp(0.5 * torch.randn(n_out, 1, generator=generator)) * spread
    values = torch.randn(n_out, n_in, generator=generator) * rows
    return values.round().clamp(-128, 127).to(torch.int8)


def same_streams(a, b):
    for name, part in a.parts.items():
        assert part.dtype == b.parts[name].dtype, name
        assert torch.equal(part, b.parts[name]), name


def round_trips(q):
    plan = plan_adaptive(q)
    streams = encode_adaptive(q, plan)
    same_streams(streams, reference.encode(q))
    check_adaptive(streams)
    assert torch.equal(decode_adaptive(streams), q)
    assert torch.equal(reference.decode(streams), q)
    assert streams.nbytes == plan.nbytes
    assert torch.equal(plan.histogram, histogram(q))
    return streams


def test_known_streams():
    # Worked by hand. Rows by sum of |q|: 1, 0. One bit a weight and bytes: 40 bits, less than any other form.
    q = torch.tensor([[0, 0, 0, 100], [0, 0, 0, -1]] + [[0] * 4] * 14, dtype=torch.int8)
    streams = encode_adaptive(q)
    assert streams.order.tolist() == [*range(2, 16), 1, 0]
    assert streams.widths.tolist() == [1]
    assert streams.plane.tolist() == [0, -(2**31) + (1 << 27)]
    assert (streams.short.tolist(), streams.tail.tolist()) == ([], [-1, 100])
    assert (streams.short_counts.tolist(), streams.tail_counts.tolist()) == ([0], [2])


def test_known_codes_of_a_group():
    # b = 3: m = 3, codes q + 3, escape 7; e = 2: +4 -> 0, -4 -> 1, +5 -> 2, everything else 3 and a byte.
    values = torch.tensor([-3, 3, 0, 4, -4, 5, -5, 6, -128])
    codes, short, tail = reference.code_group(values, 3, 2)
    assert codes.tolist() == [0, 6, 3, 7, 7, 7, 7, 7, 7]
    assert short.tolist() == [0, 1, 2, 3, 3, 3]
    assert tail.tolist() == [-5, 6, -128]


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 7), (1, 5000), (5000, 1), (15, 3), (16, 2), (17, 31), (33, 1025)]
)
def test_shapes(shape):
    round_trips(weights(*shape, 9))


@pytest.mark.parametrize("value", [0, 1, -1, 3, 127, -127, -128])
def test_one_value_only(value):
    streams = round_trips(torch.full((40, 50), value, dtype=torch.int8))
    if value == 0:
        assert streams.nbytes < 40 * 50 // 8 + 150


def test_uniform_weights_stay_bytes():
    generator = torch.Generator().manual_seed(5)
    q = torch.randint(-127, 128, (64, 300), generator=generator).to(torch.int8)
    streams = round_trips(q)
    assert streams.widths.tolist() == [8] * 4
    assert streams.plane.view(torch.int8).reshape(64, 300)[3].equal(q[streams.order.long()[3]])


@given(
    st.integers(1, 70),
    st.integers(1, 90),
    st.sampled_from([0.0, 0.4, 1.5, 4.0, 12.0, 40.0, 1e4]),
    st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_any_shape_and_distribution(n_out, n_in, spread, seed):
    round_trips(weights(n_out, n_in, spread, seed))


@given(st.lists(st.integers(-128, 127), min_size=1, max_size=40), st.integers(1, 7), st.integers(0, 6))
@settings(max_examples=100, deadline=None)
def test_every_form_of_the_reference_holds_every_value(values, width, short_width):
    short_width = 0 if short_width == 1 else short_width
    values = torch.tensor(values)
    group = reference.code_group(values, width, short_width)
    assert torch.equal(reference.decode_group(group, width, short_width), values)
    assert int(group[0].max()) < 2**width


def test_a_transposed_matrix_is_coded_by_its_own_rows():
    q = weights(40, 24, 9).t()
    same_streams(encode_adaptive(q), encode_adaptive(q.contiguous()))


def test_many_escapes_need_wide_counts():
    generator = torch.Generator().manual_seed(1)
    q = torch.randn(16, 60_000, generator=generator).mul(9).round().clamp(-127, 127).to(torch.int8)
    streams = round_trips(q)
    assert streams.short_counts.dtype == torch.int32
    assert encode_adaptive(q[:, :30]).short_counts.dtype == torch.uint16


def test_more_rows_than_uint16_counts():
    q = weights(65_537, 3, 5)
    streams = encode_adaptive(q)
    assert streams.order.dtype == torch.int32
    check_adaptive(streams)
    assert torch.equal(decode_adaptive(streams), q)


def test_rows_of_different_spread_take_less_than_the_entropy_of_all_together():
    q = torch.cat([weights(512, 512, 1.2, 1), weights(512, 512, 24, 2)])
    assert 8 * encode_adaptive(q).nbytes / q.numel() < entropy_bits(histogram(q))


@pytest.mark.parametrize("q", [torch.zeros(4, dtype=torch.int8), torch.zeros(0, 3, dtype=torch.int8)])
def test_not_a_matrix(q):
    with pytest.raises(ValueError, match="no matrix"):
        encode_adaptive(q)
