"""Several bases, residual widths, selections and prompts in one walk."""

import itertools

import pytest
import torch

from kernels.dec import bucket_mask, dequantise, dequantise_residual, quantise_residual, quantise_rtn
from runtime.calibration import InputStatistics
from runtime.evaluate.linear import Corrected, Recall, Scaled, mask_rule
from runtime.evaluate.request import Request

CPU = torch.device("cpu")


def draw(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def names(**args):
    rows = Request.parse({"model": "m", "text": "t", **args}).rows()
    return [(row.base.name, row.residual, row.select, row.k_chunk) for row in rows]


def test_everything_is_combined_and_nothing_twice():
    found = names(base=["rtn", "int8x3.4", "int8"], bits=[3, 4], k_chunk=[0, 8], select=["exact", "random"])
    assert found[:3] == [("rtn3", 4, "exact", 0), ("rtn3", 4, "exact", 8), ("rtn3", 4, "random", 8)]
    assert [name for name, _ in itertools.groupby(row[0] for row in found)] == [
        "rtn3",
        "rtn4",
        "int8x3.4",
        "int8",
    ]
    assert found[-1] == ("int8", 4, "exact", 0)
    assert len(found) == 10


def test_without_channels_a_residual_matters_only_to_a_corrected_prompt():
    assert len(names(base="rtn3", residual_bits=[2, 4], context=24)) == 1
    assert len(names(base="rtn3", residual_bits=[2, 4], context=24, prompt=4)) == 2
    assert len(names(base="rtn3", residual_bits=[2, 4], context=24, prompt=4, prompt_correction=False)) == 1


def test_a_scaled_base_is_corrected_in_its_own_domain():
    n_in, k = 96, 128
    base, residual, columns = draw(8, n_in), draw(8, n_in, seed=2), draw(n_in, seed=3).abs() + 0.2
    x, seen = draw(5, n_in, seed=4), draw(50, n_in, seed=5)
    statistics = InputStatistics(n_in)
    statistics.add(seen / columns)
    recall = Recall()
    linear = Corrected(Scaled(base, columns), residual, k, mask_rule("bucket", statistics, 0, CPU), recall)
    mask = bucket_mask(x / columns, k, statistics.profile)
    for row, y, chosen in zip(x / columns, linear.prefill(x), mask, strict=True):
        wanted = base @ row + sum(residual[:, i] * row[i] for i in chosen.nonzero()[:, 0])
        torch.testing.assert_close(y, wanted, atol=1e-4, rtol=1e-4)


def test_a_prompt_is_corrected_whole_or_not_at_all():
    base, residual, x = draw(8, 64), draw(8, 64, seed=2), draw(6, 64, seed=4)
    exact = mask_rule("exact", None, 0, CPU)
    for corrected in (True, False):
        y = Corrected(Scaled(base, None), residual, 0, exact, Recall(), 4, corrected).prefill(x)
        wanted = x @ base.t() + (torch.arange(6) < (4 if corrected else 0))[:, None] * (x @ residual.t())
        torch.testing.assert_close(y, wanted)


def test_recall_counts_what_the_exact_choice_would_take():
    recall = Recall()
    mask = torch.zeros(1, 1024, dtype=torch.bool)
    mask[0, [0, 1, 5]] = True
    x = torch.zeros(1, 1024)
    x[0, :4] = torch.tensor([9.0, 8.0, 7.0, 6.0])
    recall.add(x, mask, 4)
    assert recall.share == 0.5
    assert Recall().share is None


def test_random_and_static_recall(folder, text, evaluate):
    selects = ["exact", "bucket", "static", "random"]
    rows = evaluate(folder, text, base="rtn3", k_chunk=[256], select=selects)["rows"]
    recall = {row["select"]: row["recall"] for row in rows}
    assert recall["exact"] == 1.0
    assert 0.6 < recall["bucket"] <= 1.0
    assert recall["random"] == pytest.approx(0.25, abs=0.06)
    assert recall["random"] < recall["static"] < recall["bucket"]


def test_bases_of_one_call_are_what_each_alone_is(folder, text, evaluate):
    bases = ["rtn3", "int8", "bf16", "int8x5"]
    together = evaluate(folder, text, base=bases, k_chunk=[0, 64], select="exact")["rows"]
    assert [(row["base"], row["k_chunk"]) for row in together] == [
        ("rtn", 0), ("rtn", 64), ("int8", 0), ("bf16", 0), ("int8x", 0), ("int8x", 64),
    ]  # fmt: skip
    alone = [row for base in bases[:3] for row in evaluate(folder, text, base=base)["rows"]]
    for row in alone:
        same = next(r for r in together if (r["name"], r["k_chunk"]) == (row["name"], 0))
        assert row["kl"] == pytest.approx(same["kl"], rel=1e-5)


def test_int8x_is_corrected_too(folder, text, evaluate):
    rows = evaluate(folder, text, base="int8x4", k_chunk=[0, 64, 1024], select="exact")["rows"]
    assert rows[0]["kl"] > rows[1]["kl"] > 20 * rows[2]["kl"]


def test_more_bits_of_residual_are_nearer_and_the_exact_one_is_the_source(folder, text, evaluate):
    widths = [2, 4, 8, "exact"]
    rows = evaluate(folder, text, base="rtn3", k_chunk=[1024], residual_bits=widths)["rows"]
    kl = [row["kl"] for row in rows]
    assert [row["residual_bits"] for row in rows] == widths
    assert kl[0] > 10 * kl[1] > 100 * kl[2]
    assert kl[3] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("corrected", [True, False])
def test_a_prompt_is_not_scored(folder, text, model, tokens, evaluate, expected, check, corrected):
    def change(weight, x):
        base = dequantise(quantise_rtn(weight, 3))
        lost = dequantise_residual(quantise_residual(weight - base))
        prompt = (torch.arange(len(x)) < (10 if corrected else 0))[:, None]
        return x @ base.t() + prompt * (x @ lost.t())

    result = evaluate(folder, text, base="rtn3", prompt=10, prompt_correction=corrected)
    assert (result["prompt"], result["prompt_correction"]) == (10, corrected)
    check(result["rows"][0], expected(model, tokens, change, prompt=10))


def test_bits_are_counted_with_their_tables(folder, text, model, evaluate):
    rows = evaluate(folder, text, base=["bf16", "int8", "rtn3"], scale="tensor")["rows"]
    shapes = [p.shape for name, p in model.named_parameters() if "layers" in name and p.dim() == 2]
    weights = sum(n_out * n_in for n_out, n_in in shapes)
    int8, rtn = 32 * len(shapes), sum(2 * 16 * n_out * -(-n_in // 128) for n_out, n_in in shapes)
    bits = [row["bits_per_weight"] for row in rows]
    assert bits == pytest.approx([16, 8 + int8 / weights, 3 + rtn / weights])


@pytest.fixture(scope="module")
def quantised(folder, text, evaluate):
    bases = ["awq3", "awq3.5", "awq4", "squeezellm3", "squeezellm3.5", "squeezellm4"]
    rows = evaluate(folder, text, base=bases, k_chunk=[0, 128, 1024], select=["bucket"])["rows"]
    return {(row["name"], row["k_chunk"]): row for row in rows}


@pytest.mark.parametrize("method", ["awq", "squeezellm"])
def test_more_bits_lose_less(quantised, method):
    kl = {bits: quantised[f"{method}{bits}", 0]["kl"] for bits in ("3", "3.5", "4")}
    assert kl["4"] < kl["3.5"] < kl["3"]


@pytest.mark.parametrize("name", ["awq3", "awq3.5", "squeezellm3", "squeezellm4"])
def test_every_base_is_corrected_in_its_domain(quantised, name):
    kl = [quantised[name, k]["kl"] for k in (0, 128, 1024)]
    assert kl[0] > kl[1] > 8 * kl[2]
    assert quantised[name, 128]["recall"] > 0.6


def test_a_mix_takes_the_bits_of_its_blocks(quantised):
    bits = {name: quantised[name, 0]["bits_per_weight"] for name in ("awq3", "awq3.5", "awq4")}
    # Of three blocks two have 4 bits.
    assert bits["awq3.5"] - bits["awq3"] == pytest.approx(2 / 3, abs=0.01)
    assert bits["awq4"] - bits["awq3"] == pytest.approx(1, abs=0.01)
