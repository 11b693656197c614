"""Rows about steps from made-up times: slowdown, ratios, shares of the ceiling."""

import pytest

from runtime.bench.decode.step_rows import (
    POSITION,
    SLIDER,
    Known,
    Subject,
    context_rows,
    described,
    kernel_rows,
    step_rows,
)
from runtime.bench.decode.stepping import Tables, added_ms, fill, step_ms
from runtime.engine.slider import TunedPath
from runtime.protocol import KChunk, SlowdownPoint
from tests.fakes.step_engine import BASE_MS, MS_A_CHANNEL, MS_A_TOKEN, FakeStepEngine

SOME, MORE = KChunk(0, 2, 4, 4), KChunk(8, 8, 8, 16)
TABLES = Tables(
    TunedPath([SlowdownPoint(0.0, KChunk()), SlowdownPoint(4.0, SOME), SlowdownPoint(15.0, MORE)]), {}
)
AT_REST = BASE_MS + POSITION * MS_A_TOKEN


def test_a_step_is_measured_where_the_cache_really_is():
    engine = FakeStepEngine()
    assert step_ms(engine, 100) == pytest.approx(BASE_MS + 0.1)
    assert engine.position == 100
    assert added_ms(engine, SOME, 200) == pytest.approx((10 * MS_A_CHANNEL, BASE_MS + 0.2))
    # Base and table in turn.
    assert [table for _, table in engine.timed[1:5]] == [KChunk(), SOME, KChunk(), SOME]


def test_the_cache_holds_the_same_tokens_again():
    engine = FakeStepEngine()
    fill(engine, 30)
    first = list(engine.history)
    fill(engine, 30)
    assert engine.history == first
    assert len(set(first)) > 10


def test_every_position_of_the_slider_has_its_slowdown():
    engine = FakeStepEngine()
    rows = list(step_rows(Subject("M", "awq4", engine), TABLES, Known()))
    assert [row["slider"] for row in rows] == [f"{pct:g} %" for pct in SLIDER]
    assert [row["k_chunk"] for row in rows[:3]] == ["-", "-", described(SOME)]
    assert [row["slowdown %"] for row in rows] == pytest.approx(
        [0.0, 0.0, 10 / AT_REST, 10 / AT_REST, 40 / AT_REST]
    )
    assert rows[-1]["ms"] == pytest.approx(AT_REST + 40 * MS_A_CHANNEL)
    assert rows[-1]["tokens/s"] == pytest.approx(1e3 / rows[-1]["ms"])
    # Answers are driven through the slider, not through tables.
    assert [pct for _, pct, _ in engine.moves] == list(SLIDER)


def test_without_tables_there_is_one_row_and_no_slowdown():
    (row,) = step_rows(Subject("M", "bf16", FakeStepEngine()), None, Known())
    assert (row["slider"], row["slowdown %"]) == ("-", None)
    assert row["x bf16"] is row["x eager"] is row["GB read"] is row["of ceiling"] is None


def test_ratios_are_of_speeds_and_shares_of_bytes():
    known = Known(ceiling_gb_s=4000.0, bf16_ms={"M": 3 * AT_REST}, eager_ms={"M": 10 * AT_REST})
    (row,) = step_rows(Subject("M", "awq4", FakeStepEngine(), read=5e9), None, known)
    assert row["x bf16"] == pytest.approx(3.0)
    assert row["x eager"] == pytest.approx(10.0)
    assert row["GB read"] == 5.0
    assert row["of ceiling"] == pytest.approx(5e9 / (AT_REST / 1e3) / 4e12)
    assert Known(bf16_ms={"other": 1.0}).beside("M", 1.0, None)["x bf16"] is None


def test_kernels_are_counted_with_and_without_corrections():
    engine = FakeStepEngine()
    rows = list(kernel_rows(Subject("M", "awq4", engine), TABLES))
    assert [(row["corrected"], row["kernels"]) for row in rows] == [(False, 77), (True, 77 + 8)]
    assert [row["corrected"] for row in kernel_rows(Subject("M", "int8x", engine), None)] == [False]


def test_contexts_are_filled_before_they_are_measured():
    engine = FakeStepEngine(context_limit=9000)
    engine.set_k_chunk(MORE)
    rows = list(
        context_rows(Subject("M", "awq3", engine), (100, 8000), lambda position: 1_000_000 * position)
    )
    assert [row["ms"] for row in rows] == pytest.approx([BASE_MS + 0.1, BASE_MS + 8.0])
    assert [row["GB read"] for row in rows] == pytest.approx([0.1, 8.0])
