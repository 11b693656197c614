"""Bits per block against every choice there is, and sizes against what is really stored."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.dec import GroupCodes, TableCodes, dequantise, pack_codes, quantise_rtn
from kernels.dec.kmeans import quantise_table
from runtime import sensitivity
from runtime.checkpoint import open_checkpoint
from runtime.errors import DecdecError
from runtime.layers.base import LINEAR_KINDS
from runtime.layers.dense import Dense
from runtime.model.build import build_dense
from runtime.model.source import SourceModel
from runtime.model.spec import ModelSpec
from runtime.progress import JobContext
from runtime.protocol.bases import BaseSpec
from runtime.quantise import allocation
from runtime.quantise.allocation import allocate, base_bytes, base_that_fits, predict, predicted_kl
from runtime.sensitivity import Sensitivity
from tests.runtime.model.tiny import tiny_model

SILENT = JobContext.silent()


def spec(blocks=6, hidden=576, intermediate=1536):
    return ModelSpec.from_config(
        {
            "model_type": "llama", "vocab_size": 100, "hidden_size": hidden,
            "intermediate_size": intermediate, "num_hidden_layers": blocks, "num_attention_heads": 9,
            "num_key_value_heads": 3, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
        }
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8), st.floats(3, 4))
def test_no_other_choice_of_as_many_blocks_costs_less(costs, bits):
    predicted = [{3: max(pair), 4: min(pair)} for pair in costs]
    chosen = allocate(predicted, bits)
    four = chosen.count(4)
    assert four == allocation.blocks_of_four(bits, len(costs))

    def cost(choice):
        return sum(block[width] for block, width in zip(predicted, choice, strict=True))

    others = (c for c in product((3, 4), repeat=len(costs)) if c.count(4) == four)
    assert cost(chosen) == pytest.approx(min(map(cost, others)))


def test_half_of_the_blocks_for_three_and_a_half():
    predicted = [{3: gain, 4: 0.0} for gain in (0.1, 0.9, 0.3, 0.2)]
    assert allocate(predicted, 3.5) == (3, 4, 4, 3)
    assert allocate(predicted, 3) == (3,) * 4
    assert allocate(predicted, 4) == (4,) * 4


def test_prediction_is_half_of_fisher_times_error_squared():
    outputs, inputs = torch.tensor([1.0, 3.0]), torch.tensor([2.0, 1.0, 1.0])
    lost = torch.tensor([[0.1, 0.0, -0.2], [0.3, 0.1, 0.0]])
    expected = sum(
        float(outputs[o] * inputs[i] / 4 * lost[o, i] ** 2) / 2 for o in range(2) for i in range(3)
    )
    assert predicted_kl(Sensitivity(outputs, inputs), lost) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["rtn", "squeezellm"])
def test_four_bits_are_predicted_to_cost_a_fraction_of_three(method, tmp_path):
    tiny_model("llama")[0].save_pretrained(tmp_path)
    model = SourceModel(open_checkpoint(tmp_path))
    texts = [torch.randint(0, 97, (20,), generator=torch.Generator().manual_seed(1))]
    measured = sensitivity.measure(model, texts, SILENT)
    for block in predict(model, measured, allocation.MAKES[method], SILENT):
        assert 0 < block[4] < 0.5 * block[3]


def test_predictions_add_up_over_the_linears_of_a_block(tmp_path):
    tiny_model("llama")[0].save_pretrained(tmp_path)
    model = SourceModel(open_checkpoint(tmp_path))
    shapes = {kind: torch.cat(parts).shape for kind, parts in model.parts(1).items()}
    even = {
        kind: Sensitivity(torch.full((o,), float(i)), torch.full((i,), float(o)))
        for kind, (o, i) in shapes.items()
    }
    weights = {kind: torch.cat(parts) for kind, parts in model.parts(1).items()}
    lost = sum(
        float((weights[kind] - dequantise(quantise_rtn(weights[kind], 3))).square().sum())
        for kind in LINEAR_KINDS
    )
    found = predict(model, [even] * len(model.spec.layers), allocation.groups, SILENT)
    assert found[1][3] == pytest.approx(lost / 2, rel=1e-4)


def stored_bytes(base: GroupCodes | TableCodes):
    tables = [base.table] if isinstance(base, TableCodes) else [base.scale, base.zero]
    return pack_codes(base.codes, base.bits).nbytes + sum(table.bfloat16().nbytes for table in tables)


@pytest.mark.parametrize("bits", [3, 4])
def test_bytes_are_those_of_what_is_stored(bits):
    model, weight = spec(1), torch.randn(960, 576, generator=torch.Generator().manual_seed(0))
    shapes = [allocation.linear_shape(model, kind) for kind in LINEAR_KINDS]
    rest = [torch.zeros(shape) for shape in shapes[1:]]
    for method, quantise in (
        ("rtn", lambda w: quantise_rtn(w, bits)),
        ("squeezellm", lambda w: quantise_table(w, torch.ones(w.shape[1]), bits)),
    ):
        assert base_bytes(model, method, bits) == sum(stored_bytes(quantise(w)) for w in (weight, *rest))


@pytest.mark.parametrize("method", ["rtn", "awq", "squeezellm"])
@pytest.mark.parametrize("four", [0, 1, 4, 6])
def test_the_base_that_fits_is_the_largest_that_does(method, four):
    model, other = spec(6), 12_345
    exact = other + base_bytes(model, method, 3 + four / 6)
    found = base_that_fits(model, method, exact, other)
    assert allocation.blocks_of_four(found.bits, 6) == four
    assert base_bytes(model, method, found.bits) + other == exact
    assert BaseSpec.parse(found.name) == found
    if four:
        less = base_that_fits(model, method, exact - 1, other)
        assert allocation.blocks_of_four(less.bits, 6) == four - 1


@pytest.mark.parametrize("method", ["awq", "squeezellm", "int8x"])
def test_what_cannot_fit_is_refused_with_what_would(method):
    with pytest.raises(DecdecError, match="or more"):
        base_that_fits(spec(), method, 20_000, 12_345)


def test_int8x_takes_what_room_there_is():
    weights = 6 * sum(a * b for a, b in (allocation.linear_shape(spec(), kind) for kind in LINEAR_KINDS))
    found = base_that_fits(spec(), "int8x", 1000 + int(weights * 3.418 / 8), 1000)
    assert found == BaseSpec("int8x", 3.41)
    assert base_that_fits(spec(), "int8x", 1 << 40, 0).bits == 8


@pytest.mark.parametrize("count", [1, 7, 24, 30, 32, 80])
def test_names_of_mixes_are_short_and_mean_what_they_say(count):
    for four in range(count + 1):
        bits = allocation._shortest(four, count)
        assert allocation.blocks_of_four(BaseSpec.parse(BaseSpec("awq", bits).name).bits, count) == four
        assert len(f"{bits:g}") <= 4


def uneven_model(folder):
    """A tiny model whose middle block writes more than the others."""
    model = tiny_model("llama")[0]
    with torch.no_grad():
        for layer, size in zip(model.model.layers, (0.5, 3.0, 1.0), strict=True):
            layer.self_attn.o_proj.weight *= size
            layer.mlp.down_proj.weight *= size
        model.lm_head.weight *= 4
    model.save_pretrained(folder)
    return SourceModel(open_checkpoint(folder))


def measured_kl(model, texts, make, measured, bits):
    """KL of the model with every block in its bits, over all positions of the texts."""
    decoder = build_dense(model.checkpoint)
    with torch.no_grad():
        reference = [decoder.forward(text).log_softmax(-1) for text in texts]
        for block, sensitivities, width in zip(decoder.blocks, measured, bits, strict=True):
            for kind in LINEAR_KINDS:
                block.linears[kind] = Dense(make(block.linears[kind].weight, sensitivities[kind], width))
        changed = [decoder.forward(text).log_softmax(-1) for text in texts]
    pairs = zip(reference, changed, strict=True)
    return float(torch.cat([(r.exp() * (r - c)).sum(-1) for r, c in pairs]).mean())


@pytest.mark.parametrize("method", ["rtn", "squeezellm"])
def test_the_choice_lies_between_three_and_four_bits_and_beats_its_reverse(method, tmp_path):
    model, make = uneven_model(tmp_path), allocation.MAKES[method]
    texts = [torch.randint(0, 97, (40,), generator=torch.Generator().manual_seed(i)) for i in range(8)]
    measured = sensitivity.measure(model, texts, SILENT)
    predicted = predict(model, measured, make, SILENT)
    reverse = [{3: -block[3], 4: -block[4]} for block in predicted]
    choices = ((3,) * 3, allocate(reverse, 3 + 1 / 3), allocate(predicted, 3 + 1 / 3), (4,) * 3)
    kl = [measured_kl(model, texts, make, measured, bits) for bits in choices]
    assert kl == sorted(kl, reverse=True)
    assert kl[2] < 0.75 * kl[1]
