import math

import pytest
import torch

from kernels.int8x import Quantised, Scales, absmax_scales, factor_codes, factors

STEP = torch.tensor([0.5])
CODES = torch.tensor([128, 144, 120]).to(torch.uint8)


def test_factors_are_the_float32_nearest_to_powers_of_a_sixteenth():
    codes = torch.arange(256).to(torch.uint8)
    exact = [float(torch.tensor(2.0 ** ((u - 128) / 16), dtype=torch.float64).float()) for u in range(256)]
    assert factors(codes).tolist() == exact
    assert [factors(codes)[u].item() for u in (0, 112, 128, 144, 240)] == [2**-8, 0.5, 1, 2, 128]


def test_codes_of_factors():
    codes = torch.arange(256).to(torch.uint8)
    assert torch.equal(factor_codes(factors(codes)), codes)
    values = torch.tensor([1.0, 1.02, 1.03, 1e9, 1e-9])
    assert factor_codes(values).tolist() == [128, 128, 129, 255, 0]


def test_what_a_row_and_a_column_count():
    aware = Scales("aware", STEP, rows=CODES[:2], columns=CODES)
    assert aware.row_scale(2).tolist() == [0.5, 1.0]
    assert aware.column_scale().tolist() == pytest.approx([1.0, 2.0, math.sqrt(0.5)])
    assert Scales("aware", STEP).row_scale(2).tolist() == [0.5]
    assert Scales("row", torch.tensor([1.0, 2.0])).row_scale(2).tolist() == [1.0, 2.0]
    assert Scales("tensor", STEP).column_scale() is None


def test_parts_are_what_is_there():
    assert list(Scales("tensor", STEP).parts()) == ["scale"]
    assert list(Scales("aware", STEP, columns=CODES).parts()) == ["scale", "columns"]
    assert list(Scales("aware", STEP, CODES, CODES).parts()) == ["scale", "rows", "columns"]


def test_same_as_compares_every_bit():
    aware = Scales("aware", STEP, CODES)
    assert aware.same_as(Scales("aware", STEP.clone(), CODES.clone()))
    others = [Scales("aware", STEP), Scales("aware", STEP * 2, CODES), Scales("aware", STEP, None, CODES)]
    assert not any(aware.same_as(other) for other in others)
    assert not Scales("tensor", STEP).same_as(Scales("aware", STEP))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("column", STEP), "granularity"),
        (("tensor", torch.ones(2)), "2 scales"),
        (("aware", torch.ones(2)), "2 scales"),
        (("tensor", STEP.double()), "float32"),
        (("row", torch.ones(2, 1)), "flat"),
        (("tensor", torch.tensor([math.nan])), "finite"),
        (("row", torch.tensor([1.0, 0.0])), "positive"),
        (("row", torch.tensor([1.0, -1.0])), "positive"),
        (("aware", torch.tensor([3e38]), CODES), "finite"),
        (("row", torch.ones(3), CODES), "aware"),
        (("tensor", STEP, None, CODES), "aware"),
        (("aware", STEP, CODES.int()), "rows"),
        (("aware", STEP, None, CODES[:0]), "columns"),
    ],
)
def test_scales_that_cannot_be(arguments, why):
    with pytest.raises(ValueError, match=why):
        Scales(*arguments)


@pytest.mark.parametrize(
    "scales", [Scales("row", torch.ones(3)), Scales("aware", STEP, CODES), Scales("aware", STEP, None, CODES)]
)
def test_scales_of_another_shape(scales):
    with pytest.raises(ValueError, match="matrix of 2 x 4"):
        Quantised(torch.zeros(2, 4, dtype=torch.int8), scales)


def test_plain_rows_are_refused_where_columns_have_factors():
    q = torch.zeros(2, 3, dtype=torch.int8)
    assert Quantised(q, Scales("aware", STEP, CODES[:2])).row_scaled()[1].tolist() == [0.5, 1.0]
    assert Quantised(q, Scales("tensor", STEP)).row_scaled()[1].tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="columns"):
        Quantised(q, Scales("aware", STEP, None, CODES)).row_scaled()


def test_aware_scales_do_not_come_from_weights():
    with pytest.raises(ValueError, match="weights alone"):
        absmax_scales(torch.ones(2, 2), "aware")
    with pytest.raises(ValueError, match="int8 matrix"):
        Quantised(torch.zeros(2, 3), Scales("tensor", STEP))
