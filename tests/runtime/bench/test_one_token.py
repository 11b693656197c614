"""One token through a tiny model in every format, in triton's interpreter where there is no GPU."""

import pytest
import torch

from runtime.bench import eager_model, warming
from runtime.bench.one_token import draw_weights, measure_formats, pack_block, run_exactly, run_token
from runtime.bench.shapes import ModelShape
from runtime.bench.token_formats import FORMATS, SMALLEST, Dense, Planes, copied, matrix_bytes

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TINY = ModelShape("Tiny", 2, 16, 16, 1, 1, 16, 50)


@pytest.mark.parametrize("form", [f for f in FORMATS if f.comparable], ids=lambda form: form.name)
def test_a_block_is_what_float64_makes_of_it(form):
    weights = draw_weights(TINY, DEVICE)
    block = pack_block(weights, form)
    found = run_token(TINY, [block], form, weights.norm, weights.x).double()
    exact = run_exactly(TINY, weights)
    assert float((found - exact).norm() / exact.norm()) < 0.03
    assert matrix_bytes(block["down"]) > 16 * 16 * 0.5


def test_reference_is_the_model_it_claims_to_be():
    weights = draw_weights(TINY, DEVICE)
    w = {kind: q.double() * weights.scale[kind].double() for kind, q in weights.q.items()}
    norm = torch.nn.RMSNorm(16, eps=1e-6, device=DEVICE, dtype=torch.float64)
    h = w["o"] @ (w["qkv"] @ norm(weights.x.double()))[:16]
    gate, up = (w["gate_up"] @ norm(h)).split(16)
    assert torch.allclose(run_exactly(TINY, weights), w["down"] @ (torch.nn.functional.silu(gate) * up))


def refuse(name, error):
    raise error


def test_measurement_counts_bytes_of_all_blocks():
    forms = [Dense(), Dense("bf16, linears alone", prologues=False)]
    rows = list(measure_formats(TINY, DEVICE, forms, refuse))
    assert rows[0]["ratio"] == 1.0
    assert rows[1]["ratio"] == rows[0]["ms"] / rows[1]["ms"]
    assert rows[0]["weight_bytes"] == 2 * TINY.linear_weights
    assert rows[0]["bytes_of_bf16"] == 1.0
    assert rows[0]["error"] < 0.03
    assert rows[1]["error"] is None


def test_times_of_some_blocks_are_scaled_to_all(monkeypatch):
    monkeypatch.setattr("runtime.bench.one_token._milliseconds", lambda token, x: 3.0)
    rows = list(measure_formats(TINY, DEVICE, [Dense()], refuse, timed_blocks=1))
    assert (rows[0]["ms"], rows[0]["timed_blocks"]) == (6.0, 1)
    assert rows[0]["weight_bytes"] == 2 * TINY.linear_weights


def test_a_format_that_fails_leaves_the_others(monkeypatch):
    failures = []
    monkeypatch.setattr(Planes, "pack", lambda self, q, scale: 1 / 0)
    rows = measure_formats(TINY, DEVICE, [SMALLEST, Dense()], lambda name, error: failures.append(name))
    assert [(row["format"], row["ratio"]) for row in rows] == [("bf16", 1.0)]
    assert failures == [f"Tiny, {SMALLEST.name}"]


def test_copies_share_no_memory():
    planes = SMALLEST.pack(draw_weights(TINY, DEVICE).q["o"], torch.ones(1, device=DEVICE))
    twin = copied(planes)
    assert torch.equal(twin.planes.planes, planes.planes.planes)
    assert twin.planes.planes.data_ptr() != planes.planes.planes.data_ptr()
    assert matrix_bytes(twin) == matrix_bytes(planes)


def test_warming_goes_on_after_a_failure(capsys):
    done = []
    tasks = [lambda: done.append(0), lambda: 1 / 0, lambda: done.append(2), lambda: done.append(3)]
    warming.run_part(tasks, 1, 2)
    assert done == [3]
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_every_linear_and_launch_has_a_task():
    forms = [Planes("p")]
    count = sum(2 + len(forms[0].launches_for(rows)) for rows, _ in TINY.linears.values())
    assert len(list(warming.tasks([TINY], forms, DEVICE))) == count


def test_whole_model_is_timed_with_all_its_weights():
    pytest.importorskip("transformers")
    row = next(eager_model.model_rows(TINY, DEVICE))
    norms = (2 * TINY.blocks + 1) * TINY.hidden
    assert row["weight_bytes"] == 2 * (TINY.linear_weights + TINY.table_weights + norms)
    assert row["ms"] > 0
