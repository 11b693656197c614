"""The AWQ base on small linears: what it loses, and that it is built as the format asks."""

import pytest
import torch

from kernels.dec import dequantise, exact_mask, quantise_rtn
from runtime.lowbit.weights import scaled_base, with_residual
from runtime.quantise.awq import Awq, column_factors
from runtime.quantise.inputs import InputMoments, uncorrected
from runtime.quantise.method import Place
from runtime.quantise.rtn import Rtn
from runtime.quantise.squeezellm import SqueezeLLM

PLACE = Place(0, "down")


@pytest.fixture(autouse=True)
def full_precision(monkeypatch):
    monkeypatch.setattr("runtime.quantise.inputs.compute_type", lambda: torch.float32)


def seen(tokens, n_in, seed=0):
    """Correlated inputs, a few channels of which are far larger."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(tokens, n_in, generator=generator) @ torch.randn(n_in, n_in, generator=generator)
    return InputMoments(x / n_in**0.5 * torch.randn(n_in, generator=generator).exp())


def output_error(weight, inputs, base, columns):
    lost = weight - dequantise(base) / (1 if columns is None else columns)
    return float((inputs.inputs @ lost.t()).square().mean())


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("n_in", [96, 200])
def test_outputs_lose_far_less_than_by_rounding(bits, n_in):
    weight, inputs = torch.randn(48, n_in, generator=torch.Generator().manual_seed(1)), seen(1000, n_in)
    lost = [
        output_error(weight, inputs, *method.quantise(PLACE, weight, inputs))
        for method in (Awq(bits), Rtn(bits))
    ]
    assert lost[0] < 0.4 * lost[1]


def test_columns_are_positive_and_follow_the_inputs():
    inputs = seen(500, 64)
    columns = column_factors(inputs)
    assert bool((columns > 0).all())
    assert torch.equal(columns.argsort(), inputs.mean_square.argsort())
    assert float(columns.log().mean()) == pytest.approx(0, abs=1e-5)


def test_tables_are_exact_in_bfloat16():
    base, _ = Awq(3).quantise(PLACE, torch.randn(20, 130), seen(300, 130))
    for table in (base.scale, base.zero):
        assert torch.equal(table, table.bfloat16().float())


@pytest.mark.parametrize("tokens", [0, 1, 20])
def test_few_tokens_are_enough_to_give_a_base(tokens):
    weight, inputs = torch.randn(8, 160), InputMoments(torch.randn(tokens, 160))
    base, columns = Awq(4).quantise(PLACE, weight, inputs)
    assert (weight - dequantise(base) / columns).square().mean() < 0.1


def test_zero_inputs_and_zero_weights_are_fine():
    base, columns = Awq(3).quantise(PLACE, torch.zeros(8, 64), InputMoments(torch.zeros(10, 64)))
    assert torch.isfinite(columns).all()
    assert not dequantise(base).any()


def test_a_weight_that_is_not_finite_is_refused():
    weight = torch.zeros(8, 64)
    weight[3, 5] = torch.inf
    for method in (Awq(3), Rtn(3)):
        with pytest.raises(ValueError, match="not finite"):
            method.quantise(PLACE, weight, seen(10, 64))


def test_rtn_is_the_plain_rounding():
    weight = torch.randn(8, 64)
    base, columns = Rtn(4).quantise(PLACE, weight, seen(5, 64))
    assert columns is None
    assert torch.equal(base.codes, quantise_rtn(weight, 4).codes)


def test_moments_by_their_definitions():
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0], [torch.nan, 0.0]])
    inputs = InputMoments(x)
    assert inputs.tokens == 2
    assert inputs.mean_abs.tolist() == [2.0, 3.0]
    assert inputs.mean_square.tolist() == [5.0, 10.0]
    assert inputs.second_moment().tolist() == [[5.0, 5.0], [5.0, 10.0]]
    assert inputs.second_moment(torch.tensor([1.0, 2.0])).tolist() == [[5.0, 2.5], [2.5, 2.5]]


@pytest.mark.parametrize("n_in", [64, 1300])
def test_what_is_corrected_does_not_count(n_in):
    generator = torch.Generator().manual_seed(2)
    x, columns = torch.randn(50, n_in, generator=generator), torch.rand(n_in, generator=generator) + 0.5
    left = x / columns * ~exact_mask(x / columns, 64)
    assert torch.equal(uncorrected(x / columns, 64), left)
    assert torch.allclose(InputMoments(x).second_moment(columns, (64,)), left.t() @ left / 50, atol=1e-5)
    both = InputMoments(x).second_moment(columns, (0, 64))
    assert torch.allclose(
        both, (InputMoments(x / columns).second_moment() + left.t() @ left / 50) / 2, atol=1e-5
    )


def test_moments_in_bfloat16_are_off_by_its_rounding_only(monkeypatch):
    exact = seen(3000, 40).second_moment()
    monkeypatch.setattr("runtime.quantise.inputs.compute_type", lambda: torch.bfloat16)
    assert (seen(3000, 40).second_moment() - exact).norm() < 0.005 * exact.norm()


@pytest.mark.parametrize("method", [Awq(3), SqueezeLLM(3)])
@pytest.mark.parametrize("value", [1e20, 3e38, float("nan"), float("inf")])
def test_a_token_whose_inputs_overflow_is_left_out(method, value):
    inputs, weight = seen(40, 64).inputs, torch.randn(8, 64)
    spoilt = torch.cat([inputs[:7], torch.full((1, 64), value), inputs[7:]])
    found, expected = (method.quantise(PLACE, weight, InputMoments(x))[0] for x in (spoilt, inputs))
    assert torch.equal(found.codes, expected.codes)


@pytest.mark.parametrize("method", [Awq(3), Awq(4), Rtn(3), SqueezeLLM(3), SqueezeLLM(4)])
@pytest.mark.parametrize("shape", [(3, 200), (1, 1), (5, 127), (2, 129)])
def test_weights_of_every_odd_kind_have_a_base_and_a_residual(method, shape):
    plain = torch.randn(shape, generator=torch.Generator().manual_seed(4))
    outlier, rows, columns = plain.clone(), plain.clone(), plain.clone()
    outlier[0, 0], rows[0], columns[:, ::3] = 1e14, 0.0, 0.0
    constant, zero = torch.full(shape, -0.25), torch.full(shape, -0.0)
    for weight in (plain, outlier, rows, columns, constant, zero, plain * 1e-40):
        for inputs in (seen(20, shape[1]), InputMoments(torch.zeros(4, shape[1])), seen(1, shape[1])):
            low = with_residual(weight, *method.quantise(PLACE, weight, inputs), torch.zeros(shape[1]))
            scaled = weight if low.columns is None else weight * low.columns
            lost = (scaled - scaled_base(low.base)).abs().amax()
            assert lost <= scaled.abs().amax() + 1e-38
            assert torch.isfinite(low.correction.scale).all()
            assert (low.correction.scale > 0).all()


@pytest.mark.parametrize("method", [Awq(3), Rtn(3), SqueezeLLM(3)])
@pytest.mark.parametrize("value", [1e16, -3e38])
def test_weights_whose_squares_overflow_are_refused(method, value):
    weight = torch.ones(8, 64)
    weight[3, 5] = value
    with pytest.raises(ValueError, match="beyond all reason"):
        method.quantise(PLACE, weight, seen(10, 64))
