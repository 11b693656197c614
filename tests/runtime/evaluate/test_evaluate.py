"""The evaluation against the same sums made the long way with transformers."""

import math

import pytest
import torch

from kernels.dec import dequantise, dequantise_residual, exact_mask, quantise_residual, quantise_rtn
from runtime.errors import DecdecError, Interrupted
from runtime.evaluate.jobs import ppl
from runtime.evaluate.linear import int8_rounded
from runtime.evaluate.score import Score
from runtime.evaluate.source import read_text
from runtime.progress import JobContext

CONTEXT = 24


def test_reference_is_transformers(folder, text, model, tokens, evaluate, expected, check):
    result = evaluate(folder, text, base="bf16")
    assert (result["tokens"], result["text"], result["model"]) == (2 * CONTEXT, str(text), str(folder))
    (row,) = result["rows"]
    check(row, expected(model, tokens, None))
    assert (row["base"], row["bits"], row["kl"], row["top1"]) == ("bf16", 16, 0, 1)


@pytest.mark.parametrize("scale", ["row", "tensor"])
def test_int8(folder, text, model, tokens, scale, evaluate, expected, check):
    (row,) = evaluate(folder, text, base="int8", scale=scale)["rows"]

    def change(weight, x):
        step = weight.abs().amax(1, keepdim=True) / 127 if scale == "row" else weight.abs().max() / 127
        return x @ ((weight / step).round() * step).t()

    check(row, expected(model, tokens, change))


def test_rtn_with_exact_correction(folder, text, model, tokens, evaluate, expected, check):
    rows = evaluate(folder, text, base="rtn", bits=3, k_chunk=[0, 128], select="exact")["rows"]

    def corrected(k):
        def change(weight, x):
            base = dequantise(quantise_rtn(weight, 3))
            lost = dequantise_residual(quantise_residual(weight - base))
            return x @ base.t() + (x * exact_mask(x, k)) @ lost.t()

        return change

    for row, k in zip(rows, (0, 128), strict=True):
        assert (row["k_chunk"], row["bits"], row["select"]) == (k, 3, "exact")
        check(row, expected(model, tokens, corrected(k)))


def test_more_channels_and_better_choice_come_nearer(folder, text, evaluate):
    kl = {}
    for select in ("exact", "bucket", "static", "random"):
        rows = evaluate(folder, text, bits=3, k_chunk=[0, 256, 1024], select=select)["rows"]
        kl[select] = [row["kl"] for row in rows]
        assert kl[select][0] == pytest.approx(kl["exact"][0])
        assert kl[select][2] == pytest.approx(kl["exact"][2], rel=1e-3)
    assert kl["exact"][2] < kl["exact"][1] < kl["exact"][0]
    assert kl["exact"][1] < kl["random"][1]
    assert kl["bucket"][1] < kl["random"][1]


def test_windows_are_counted_and_progress_ends_at_all_tokens(folder, text):
    events = []
    args = {"model": str(folder), "text": str(text), "context": CONTEXT, "windows": 1, "k_chunk": [8]}
    result = ppl(args, JobContext("eval_ppl", events.append, lambda: False))
    assert result["tokens"] == CONTEXT
    last = [event for event in events if event.step == "evaluate"][-1]
    assert (last.done, last.total, last.unit) == (CONTEXT, CONTEXT, "tokens")


def test_it_can_be_stopped(folder, text):
    with pytest.raises(Interrupted):
        ppl(
            {"model": str(folder), "text": str(text), "context": CONTEXT},
            JobContext("x", print, lambda: True),
        )


REFUSED = [
    ({"base": "gptq"}, "gptq"),
    ({"base": "awq5"}, "5"),
    ({"base": ["rtn3", "int7"]}, "int7"),
    ({"bits": 2.5}, r"2\.5"),
    ({"residual_bits": 3}, "3"),
    ({"prompt": CONTEXT - 1}, "nothing to score"),
    ({"base": "int8", "k_chunk": [8]}, "no residual"),
    ({"k_chunk": [2000]}, "1024"),
    ({"select": "best"}, "best"),
    ({"context": 1}, "2"),
    ({"context": 64}, "too short"),
    ({"context": 1000}, "128"),
    ({"model": "no-such-model-here"}, "no-such-model-here"),
    ({"text": "/nowhere.txt"}, "nowhere"),
]


@pytest.mark.parametrize(("args", "named"), REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence(folder, text, args, named, evaluate, monkeypatch, tmp_path):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))
    with pytest.raises(DecdecError, match=named):
        evaluate(folder, text, **args)


def test_a_text_that_is_not_utf8_is_refused(folder, tmp_path, evaluate):
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DecdecError, match="UTF-8"):
        evaluate(folder, tmp_path / "bad.txt")


def test_line_ends_do_not_change_the_text(tmp_path):
    (tmp_path / "dos.txt").write_bytes("a \r\nb\n\rç".encode())
    assert read_text(tmp_path / "dos.txt") == "a \nb\n\nç"


def test_int8_keeps_a_zero_row():
    weight = torch.tensor([[0.0, 0.0], [1.27, -0.5]])
    torch.testing.assert_close(int8_rounded(weight, "row"), weight, atol=1e-6, rtol=0)


def test_a_hopeless_model_has_infinite_perplexity():
    score = Score(predictions=1, nll=1000.0)
    assert score.figures(Score(predictions=1, nll=1.0))["ppl"] == math.inf


def test_int8x_with_a_scale_per_row_is_int8_per_row(folder, text, evaluate):
    coded = evaluate(folder, text, base="int8x", quality={"preset": "fine"})["rows"][0]
    plain = evaluate(folder, text, base="int8", scale="row")["rows"][0]
    assert coded["kl"] == pytest.approx(plain["kl"], rel=1e-4)
    assert coded["ppl"] == pytest.approx(plain["ppl"], rel=1e-6)


def test_int8x_at_a_rate_takes_about_as_many_bits_and_more_bits_are_better(folder, text, evaluate):
    rows = [evaluate(folder, text, base="int8x", bits=bits)["rows"][0] for bits in (5.0, 7.0)]
    assert [row["bits"] for row in rows] == pytest.approx([5.0, 7.0], abs=0.4)
    assert rows[1]["kl"] < rows[0]["kl"] / 4
