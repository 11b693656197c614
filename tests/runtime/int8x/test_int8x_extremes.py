"""Matrices of every odd kind through every codec: bit-exact, or refused by name."""

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.int8x import Quantised, absmax_scales, quantise
from kernels.int8x.scales import Scales
from runtime.int8x.choice import CodecChoice
from runtime.int8x.codecs import code_matrix
from runtime.int8x.reader import decode_parts

EXAMPLES = int(os.environ.get("DECDEC_NUMERIC_EXAMPLES", "30"))
CODECS = [CodecChoice(), CodecChoice("bitmap"), CodecChoice("adaptive"), CodecChoice("raw")]


def row(kind, n_in, value):
    """One row of int8 values, [n_in]."""
    if kind == "all levels":
        return (torch.arange(n_in) * 37 + value) % 256 - 128
    out = torch.full((n_in,), {"zero": 0, "constant": value, "outlier": 1, "least": -128}[kind])
    if kind == "outlier":
        out[value % n_in] = -128
    return out


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["all levels", "zero", "constant", "outlier", "least"]), st.integers(-128, 127)
        ),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([1, 2, 7, 31, 33, 257, 1031]),
    st.sampled_from(CODECS),
)
def test_rows_of_every_kind_come_back_bit_for_bit(rows, n_in, codec):
    q = torch.stack([row(kind, n_in, value) for kind, value in rows]).to(torch.int8)
    matrix = Quantised(q, Scales("tensor", torch.ones(1)))
    entry, parts = code_matrix(matrix, codec, "nearest")
    again = decode_parts("w", entry, parts)
    assert torch.equal(again.q, q)
    assert again.scales.same_as(matrix.scales)


@pytest.mark.parametrize("granularity", ["tensor", "row"])
@pytest.mark.parametrize("size", [0.0, -0.0, 1e-45, 1e-40, 1e-38, 1.0, 3.3895314e38])
def test_steps_of_any_size_are_positive_and_round_to_within_half_of_them(size, granularity):
    weight = torch.tensor([[1.0, -0.5, 0.25], [0.0, 0.0, 0.0], [-1.0, 1.0, 0.1]]) * size
    scales = absmax_scales(weight, granularity)
    matrix = Quantised(quantise(weight, scales), scales)
    step = matrix.row_scale().double()[:, None]
    assert torch.isfinite(matrix.dequantise()).all()
    assert ((matrix.q.double() * step - weight.double()).abs() <= 0.5001 * step).all()
    assert not matrix.q[1].any()
