"""From reports and a result of tuning to curves and to what the slider brings."""

import pytest

from app.closing import LOSSLESS, NO_ROOM, NOTHING, PLAIN, Lossless, foretold, positions, share
from app.surroundings import Surroundings
from app.tune_findings import DetentRow, Token, TuneFindings, knee
from runtime.protocol.events import KChunk, Progress
from runtime.sources.fit import Room
from runtime.sources.speed import CpuRates
from runtime.tuner import costs

ZERO = {"qkv": 0, "o": 0, "gate_up": 0, "down": 0}
RESULT = {
    "path": [
        {"slowdown_pct": 0.0, "k_chunk": ZERO},
        {"slowdown_pct": 4.0, "k_chunk": {**ZERO, "qkv": 32}},
        {"slowdown_pct": 9.5, "k_chunk": {**ZERO, "qkv": 32, "down": 64}},
    ],
    "report": {
        "base_us": {"o": 30.0},
        "curves": {"o": [[0, 30.0], [8, 30.5], [64, 36.0]]},
        "knees": {"o": 8},
        "token": {
            "us": 10_000.0,
            "of_us": 5_000.0,
            "layers": 10,
            "inputs": {"qkv": 1024, "o": 1024, "gate_up": 1024, "down": 2048},
        },
    },
}


def report(**data):
    return Progress("tune", "tune", 1, 2, "points", data=data)


def ended():
    found = TuneFindings()
    found.end(RESULT)
    return found


def test_a_curve_grows_and_takes_the_cheapest_way_of_every_k():
    found = TuneFindings()
    assert found.curve("o") is None
    found.push(report(base_us={"o": 30.0}, points=[["o", 16, 8, 33.0], ["o", 16, 32, 40.0]]))
    found.push(report(points=[["o", 32, 8, 31.0], ["o", 32, 32, 41.0], ["nobody", 1, 1, 1.0]]))
    curve = found.curve("o")
    assert (curve.base_us, curve.points) == (30.0, ((8, 31.0), (32, 40.0)))
    assert found.has_points


@pytest.mark.parametrize(
    "data", [{"points": "many"}, {"points": [["o", 1]]}, {"base_us": {"o": "x"}}, {"report": {}}]
)
def test_reports_that_make_no_sense_are_left_out(data):
    found = TuneFindings()
    found.push(report(**data))
    found.end({"path": "none"})
    assert not found.has_points
    assert found.rows() == []


def test_the_knee_is_the_tuner_s():
    points = ((4, 40.8), (8, 41.0), (16, 41.5), (32, 43.0), (64, 50.0))
    for base in (10.0, 40.0, 100.0):
        curve = {0: 0.0, **{k: us - base for k, us in points}}
        assert knee(points, base) == costs.knee(curve, base)
    assert knee((), 40.0) == 0


def test_the_end_gives_the_chosen_curve_without_its_zero():
    curve = ended().curve("o")
    assert (curve.base_us, curve.points, curve.knee) == (30.0, ((8, 30.5), (64, 36.0)), 8)


def test_what_the_detents_bring_by_hand():
    """5 % is the point at 4 %: 10 ms + 4 % of 5 ms; 32 of 1024 of one input of 1024 in 10 layers."""
    rows = {row.pct: row for row in ended().rows()}
    assert list(rows) == [0.0, 2.5, 5.0, 10.0, 20.0]
    assert rows[0.0].tokens_per_s == pytest.approx(100.0)
    assert (rows[2.5].k_chunk.total, rows[2.5].channels) == (0, 0)
    assert rows[5.0].tokens_per_s == pytest.approx(1e6 / 10_200)
    assert rows[5.0].channels == 320
    assert rows[5.0].share == pytest.approx(32 / 5120)
    assert rows[10.0].channels == 320 + 10 * 128
    assert rows[20.0].k_chunk == rows[10.0].k_chunk


def test_without_a_token_s_time_tables_remain():
    found = TuneFindings()
    found.end({"path": RESULT["path"]})
    assert found.rows()[2] == DetentRow(5.0, KChunk(qkv=32))


def test_the_card_says_what_every_position_means():
    lines = positions(ended().rows(), Lossless(True, 0.5))
    assert [line.name for line in lines] == ["0 %", "2.5 %", "5 %", "10 %", "20 %", "lossless"]
    assert [line.meaning for line in lines] == [
        PLAIN,
        NOTHING,
        "320 channels a token, 0.6 % of all",
        "1 600 channels a token, 3.1 % of all",
        "no more than at 10 %",
        LOSSLESS,
    ]
    assert [line.table for line in lines[:3]] == ["", "", "32·0·0·0"]
    assert (lines[0].speed, lines[-1].speed) == ("100 tok/s", "50.0 tok/s")


def test_what_is_free_is_said_so():
    rows = [DetentRow(0.0, KChunk(qkv=8), 100.0, 80, 0.01)]
    assert positions(rows, Lossless())[0].meaning == "free: 80 channels a token, 1 % of all"


@pytest.mark.parametrize(
    ("lossless", "meaning"),
    [
        (Lossless(False, 0.5), NO_ROOM),
        (Lossless(True), LOSSLESS),
        (Lossless(), f"{LOSSLESS}, where memory allows"),
    ],
)
def test_the_last_stop(lossless, meaning):
    last = positions(ended().rows(), lossless)[-1]
    assert (last.meaning, last.speed) == (meaning, "")


def test_lossless_is_foretold_for_the_catalogue_on_a_measured_machine():
    cpu = Surroundings(Room(None, 16_000_000_000), CpuRates(10.0, 10.0), False)
    known = foretold("SmolLM2-135M-Instruct", "awq4", cpu)
    assert known.fits
    assert 0.4 < known.relative < 1.0
    tight = Surroundings(Room(None, 400_000_000), None, False)
    assert foretold("SmolLM2-135M-Instruct", "awq4", tight) == Lossless(False)
    assert foretold("somebody/else", "awq4", cpu) == Lossless()
    assert foretold("SmolLM2-135M-Instruct", "awq4", None) == Lossless()


def test_where_products_are_a_part_of_a_token_it_is_said_what_percents_are_of():
    assert share(None) == ""
    assert share(Token(1000.0, 950.0, 1, {})) == ""
    assert share(Token(1000.0, 120.0, 1, {})) == (
        "Percents are of the low-bit products, which take 12 % of a token's time here: "
        "20 % of them is 2.4 % of the whole."
    )
