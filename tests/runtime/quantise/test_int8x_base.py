"""INT8-X as a base: what base and residual add up to, what it takes, and that its error is spent well."""

import pytest
import torch

from kernels.dec import dequantise_residual
from kernels.int8x import factors
from runtime import lowbit
from runtime.checkpoint import open_checkpoint
from runtime.int8x.choice import CodecChoice
from runtime.int8x.codecs import code_matrix
from runtime.layers.base import LINEAR_KINDS
from runtime.lowbit import scaled_base, with_residual
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.protocol.quality import Quality
from runtime.quantise.allocation import predicted_kl
from runtime.quantise.int8x_base import Int8xBase, int8x_base
from runtime.quantise.method import Place
from runtime.rate import Rounder
from runtime.rate.plan import make_plan
from runtime.rate.sample import Sample
from runtime.sensitivity import Sensitivity
from tests.runtime.model.tiny import tiny_model

N_OUT, N_IN = 160, 192


def random(*size, seed=0):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def sensitivity():
    outputs, inputs = random(N_OUT, seed=1).exp(), random(N_IN, seed=2).mul(1.5).exp()
    return Sensitivity(outputs * inputs.sum(), inputs * outputs.sum())


@pytest.fixture(scope="module")
def weight():
    return random(N_OUT, N_IN) * 0.05


def base_of(sensitivity, weight, bits):
    samples = [Sample(0, "o", weight, torch.arange(N_OUT), N_OUT)]
    blocks = [dict.fromkeys(LINEAR_KINDS, sensitivity)]
    return Int8xBase(Rounder(Quality(bits=bits), make_plan(blocks, Quality(bits=bits), lambda: samples, 0)))


def stored(sensitivity, weight, bits=3.4):
    base, columns = base_of(sensitivity, weight, bits).quantise(Place(0, "o"), weight)
    return with_residual(weight, base, columns, torch.zeros(N_IN))


def test_base_and_residual_are_the_scaled_weight_within_half_a_step(sensitivity, weight):
    low = stored(sensitivity, weight)
    lost = weight * low.columns - scaled_base(low.base)
    left = (lost - dequantise_residual(low.correction)).abs()
    clipped = low.correction.codes.t().abs() == 7
    step = low.correction.scale[:, None].expand_as(left)
    assert bool((left <= step * 0.5001)[~clipped].all())
    assert float((left > step * 0.5001).float().mean()) < 0.02
    assert float(left.square().sum()) < 0.03 * float(lost.square().sum())


def test_the_base_alone_is_within_half_a_step_or_clipped_for_its_code(sensitivity, weight):
    base, columns = base_of(sensitivity, weight, 4.0).quantise(Place(0, "o"), weight)
    steps = (weight * columns - scaled_base(base)).abs() / base.row_scale()[:, None]
    assert float((steps <= 0.5001).float().mean()) > 0.97
    assert float(steps.max()) < 2


def test_columns_are_the_factors_that_the_codes_are_stored_with(sensitivity, weight):
    base, columns = base_of(sensitivity, weight, 3.4).quantise(Place(0, "o"), weight)
    assert torch.equal(columns, factors(base.scales.columns))
    torch.testing.assert_close(scaled_base(base) / columns, base.dequantise())


@pytest.mark.parametrize("bits", [3.4, 4.5])
def test_bits_are_those_of_the_stored_form(sensitivity, weight, bits):
    base, _ = base_of(sensitivity, weight, bits).quantise(Place(0, "o"), weight)
    entry, parts = code_matrix(base, CodecChoice(), "economical")
    counted = 8 * sum(part.numel() * part.element_size() for part in parts.values()) / weight.numel()
    assert counted == entry.stored_bits / weight.numel() == pytest.approx(bits, abs=0.06)


def test_error_is_spent_where_it_costs_least(sensitivity, weight):
    """Of equally many bits, steps by sensitivity cost less predicted KL than one step for all weights."""
    even = Sensitivity(torch.full((N_OUT,), float(N_IN)), torch.full((N_IN,), float(N_OUT)))

    def cost(known):
        base, _ = base_of(known, weight, 3.4).quantise(Place(0, "o"), weight)
        return predicted_kl(sensitivity, weight - base.dequantise())

    assert cost(sensitivity) < 0.8 * cost(even)


def test_a_models_block_comes_back_from_disk_as_it_was_made(tmp_path):
    tiny_model("llama")[0].save_pretrained(tmp_path / "source")
    checkpoint, ctx = open_checkpoint(tmp_path / "source"), JobContext.silent()
    texts = [torch.randint(0, 97, (30,), generator=torch.Generator().manual_seed(1))]
    maker = int8x_base(checkpoint, 5.0, lambda: texts, ctx)
    made = {}
    for kind, parts in SourceModel(checkpoint).parts(1).items():
        fused = torch.cat(parts)
        made[kind] = with_residual(fused, *maker.quantise(Place(1, kind), fused), torch.ones(fused.shape[1]))
    lowbit.write_block(tmp_path, "int8x5", 1, made)
    for kind, found in lowbit.read_block(tmp_path, "int8x5", 1).items():
        assert torch.equal(found.base.q, made[kind].base.q)
        assert torch.equal(found.columns, made[kind].columns)
        assert torch.equal(scaled_base(found.base), scaled_base(made[kind].base))
        assert torch.equal(found.correction.codes, made[kind].correction.codes)


def test_what_is_no_number_is_refused(sensitivity, weight):
    damaged = weight.clone()
    damaged[3, 4] = torch.nan
    with pytest.raises(ValueError, match="finite"):
        base_of(sensitivity, weight, 3.4).quantise(Place(0, "o"), damaged)


def test_steps_that_follow_nothing_are_refused():
    with pytest.raises(ValueError, match="sensitivity"):
        Int8xBase(Rounder(Quality(preset="fine")))
