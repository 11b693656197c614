"""Plans for bits, quality and size: promises against what coding and noise really do."""

import pytest
import torch

from kernels.int8x import Quantised, plan_adaptive
from kernels.int8x.economical import round_economically
from kernels.int8x.scales import factors
from runtime.errors import DecdecError
from runtime.protocol.quality import Quality
from runtime.rate.factors import step_shape
from runtime.rate.plan import bits_at, make_plan
from runtime.rate.rounder import Rounder
from runtime.rate.sample import Sample
from runtime.sensitivity import Sensitivity

N_OUT, N_IN, BLOCKS = 96, 128, 3


def skewed(size, seed, spread=1.5):
    return torch.exp(spread * torch.randn(size, generator=torch.Generator().manual_seed(seed)))


def sensitivity_of(seed, total):
    outputs, inputs = skewed(N_OUT, seed), skewed(N_IN, seed + 50)
    return Sensitivity(outputs / outputs.sum() * total, inputs / inputs.sum() * total)


@pytest.fixture
def blocks():
    return [{"o": sensitivity_of(i, 10.0 ** (i + 2))} for i in range(BLOCKS)]


@pytest.fixture
def weights():
    return [
        torch.randn(N_OUT, N_IN, generator=torch.Generator().manual_seed(i)) * 0.05 for i in range(BLOCKS)
    ]


def samples_of(weights):
    return [Sample(i, "o", w, torch.arange(N_OUT), N_OUT) for i, w in enumerate(weights)]


def steps(shape, weight, noise):
    scales = shape.scales(weight, slice(0, len(weight)), noise)
    return scales.row_scale(len(weight))[:, None] / scales.column_scale()


def test_every_linear_adds_the_same_noise_per_weight(blocks, weights):
    """Mean of F * step^2 is noise^2, up to the floor, where no row had to be widened."""
    for block, weight in zip(blocks, weights, strict=True):
        one = block["o"]
        f = one.outputs[:, None].double() * one.inputs / one.total
        mean = float((f * steps(step_shape(one), weight * 1e-3, 0.02).double() ** 2).mean())
        assert mean == pytest.approx(0.02**2, rel=0.1)


def test_sensitive_rows_and_columns_get_smaller_steps():
    outputs, inputs = torch.ones(N_OUT), torch.ones(N_IN)
    outputs[7], inputs[9] = 256.0, 256.0
    outputs *= inputs.sum() / outputs.sum()
    shape = step_shape(Sensitivity(outputs, inputs))
    assert float(factors(shape.rows[7:8]) / factors(shape.rows[:1])) == pytest.approx(256**-0.25, rel=0.1)
    assert float(factors(shape.columns[9:10]) / factors(shape.columns[:1])) == pytest.approx(4, rel=0.1)


def test_large_rows_get_steps_that_hold_them(weights):
    weight = weights[0].clone()
    weight[5] *= 1000
    scales = step_shape(sensitivity_of(0, 100.0)).scales(weight, slice(0, N_OUT), 0.001)
    scaled = (weight * scales.column_scale() / scales.row_scale(N_OUT)[:, None]).abs()
    assert scaled.max() <= 127.001
    assert scaled[5].max() > 120


def test_a_rate_is_met(blocks, weights):
    plan = make_plan(blocks, Quality(bits=4.2), lambda: samples_of(weights), 0)
    rounder = Rounder(Quality(bits=4.2), plan)
    coded = [rounder.round(i, "o", weight, 0) for i, weight in enumerate(weights)]
    size = sum(plan_adaptive(m.q).nbytes + sum(p.nbytes for p in m.scales.parts().values()) for m in coded)
    assert 8 * size / (BLOCKS * N_OUT * N_IN) == pytest.approx(4.2, abs=0.05)


def test_a_quality_is_the_noise_that_rounding_makes(blocks, weights):
    plan = make_plan(blocks, Quality(kl=0.05), list, 0)
    assert plan.predicted_kl == pytest.approx(0.05)
    cost = 0.0
    for i, (block, weight) in enumerate(zip(blocks, weights, strict=True)):
        one = block["o"]
        scales = plan.scales(i, "o", weight, 0)
        error = Quantised(round_economically(weight, scales, 0.0), scales).dequantise() - weight
        f = one.outputs[:, None].double() * one.inputs / one.total
        cost += float((f * error.double() ** 2).sum()) / 2
    assert cost == pytest.approx(0.05, rel=0.15)


def test_more_quality_takes_more_bits(blocks, weights):
    samples = samples_of(weights)
    shapes = [{"o": step_shape(block["o"])} for block in blocks]
    rates = [bits_at(shapes, samples, noise) for noise in (0.001, 0.002, 0.004)]
    assert rates[0] - rates[1] == pytest.approx(1, abs=0.15)
    assert rates[1] > rates[2]


def test_a_size_that_cannot_be_is_refused_with_the_smallest(blocks, weights):
    with pytest.raises(DecdecError, match="Ask for"):
        make_plan(blocks, Quality(bytes=40_000_000), lambda: samples_of(weights), 50_000_000)


def test_a_size_leaves_room_for_what_is_no_linear(blocks, weights):
    linears = BLOCKS * N_OUT * N_IN
    size = 1000 + linears * 4 // 8
    by_size = make_plan(blocks, Quality(bytes=size), lambda: samples_of(weights), 1000)
    by_bits = make_plan(blocks, Quality(bits=4.0), lambda: samples_of(weights), 0)
    assert by_size.noise == pytest.approx(by_bits.noise, rel=0.01)


@pytest.mark.parametrize(("preset", "granularity"), [("paper", "tensor"), ("fine", "row")])
def test_plain_presets_round_by_the_largest_weight(preset, granularity, weights):
    matrix = Rounder(Quality(preset=preset)).round(0, "o", weights[0], 0)
    assert matrix.scales.granularity == granularity
    largest = weights[0].abs().amax() if granularity == "tensor" else weights[0].abs().amax(1)
    assert torch.equal(matrix.scales.scale, (largest / 127).reshape(-1))


@pytest.mark.parametrize("wish", [{}, {"bits": 4.0, "kl": 0.1}, {"bits": 0.5}, {"kl": -1.0}, {"preset": "x"}])
def test_impossible_wishes_are_wrong_usage(wish):
    with pytest.raises(DecdecError) as error:
        Quality.parse(wish)
    assert error.value.code == 2
