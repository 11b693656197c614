"""Long runs: what is counted and compared, and what a leak or a slow end would look like."""

import json
import sys
from dataclasses import replace
from itertools import repeat

import pytest

from runtime.bench.long_run import driving, report
from runtime.bench.long_run.__main__ import page, write
from runtime.bench.long_run.driving import Driver, Run
from runtime.bench.long_run.readings import Reading
from runtime.bench.long_run.speakers import SessionSpeaker, WorkerSpeaker
from runtime.bench.long_run.vocabulary import write_tokenizer
from runtime.engine.opened import LoadedEngine
from runtime.errors import DecdecError
from runtime.protocol import Done, Generate, Load, Loaded, Message, SetSlowdown
from runtime.text import Tokenizer
from runtime.text.endings import end_ids
from tests.fakes import engine_worker
from tests.fakes.fake_engine import PATH, FakeEngine
from tests.fakes.small_tokenizers import write_byte_level

CONTEXT = 400


@pytest.fixture
def speaker(tmp_path):
    """Answers of 300 tokens each, unless the context ends them."""
    write_tokenizer(600, tmp_path)
    engine = FakeEngine(repeat(list(range(300, 600))), 600, 2, CONTEXT)
    loaded = Loaded("m", "awq4", "cpu", CONTEXT, 1, PATH, lossless=True)
    return SessionSpeaker(LoadedEngine(engine, loaded, tmp_path))


@pytest.fixture
def said(monkeypatch):
    monkeypatch.setattr(driving, "EVERY", 100)
    monkeypatch.setattr(driving, "MOVE_EVERY", 1)
    monkeypatch.setattr(driving, "ANSWER_TOKENS", 120)
    monkeypatch.setattr("runtime.generation.answer.FLUSH_INTERVAL_S", 0.0)
    return []


def test_one_answer_goes_to_the_end_of_the_context(speaker, said):
    run = Driver(speaker, say=said.append).long_answer()
    assert run.longest_context == CONTEXT
    # The last token that is shown has no place in the cache.
    assert CONTEXT - 120 <= run.tokens < CONTEXT
    assert [reading.tokens // 100 for reading in run.readings] == list(range(len(run.readings)))
    assert len(said) == len(run.readings) - 1 == run.tokens // 100
    # All but the first piece of each answer has a duration.
    assert sum(run.pieces.tokens) == run.tokens - run.answers
    assert max(run.pieces.position) == CONTEXT


def test_a_conversation_has_exactly_its_tokens_drops_old_turns_and_moves_the_slider(speaker, said):
    run = Driver(speaker, say=said.append).conversation(1000)
    assert (run.tokens, run.readings[-1].tokens) == (1000, 1000)
    assert run.answers == 9
    assert run.dropped > 0
    moves = speaker._session._engine.moves
    assert len({pct for _, pct, _ in moves}) > 100
    assert any(lossless for _, _, lossless in moves)
    assert run.moves >= len(moves)


def test_a_model_that_says_nothing_is_let_be(speaker, said):
    speaker._session._engine.replies = repeat([])
    speaker._session._ends = frozenset({2})
    assert Driver(speaker, say=said.append).long_answer().tokens == 0


def made_run(ms, leak=0.0):
    """5000 tokens at `ms(position)`, `leak` bytes of a thousand."""
    run = Run("conversation", tokens=5000, answers=5)
    for thousand in range(6):
        size = int(5e8 + leak * thousand)
        reading = Reading(1000 * thousand, size, size - 100, 7, 5, 1.0 * thousand, 2.0 * thousand)
        run.readings.append(replace(reading, device={"allocated": 1 << 30}))
    for token in range(5000):
        run.pieces.add(1, ms(token) / 1e3, token % 1000)
    return run


def test_growth_is_told_by_what_grows():
    assert report.slopes(made_run(lambda token: 2.0, leak=3e6)) == pytest.approx(
        {"RSS MB": 3.0, "private MB": 3.0, "files": 0.0, "threads": 0.0, "allocated MB": 0.0}
    )


def test_speed_is_compared_at_the_same_places_of_the_context():
    steady = made_run(lambda token: 1.0 + (token % 1000) / 1000)
    rows = report.thousand_rows(steady, (1.0, 0.001))
    assert [row["tokens"] for row in rows] == [1000, 2000, 3000, 4000, 5000]
    assert all(row["x expected"] == pytest.approx(1.0) for row in rows)
    assert rows[0]["processor ms a token"] == 1.0
    slow = report.thousand_rows(made_run(lambda token: 2.0 if token >= 4000 else 1.0), (1.0, 0.0))
    assert [row["x expected"] for row in slow] == pytest.approx([1, 1, 1, 1, 2])
    assert report.band_rows([made_run(lambda token: 1.0 if token < 2500 else 3.0)])[0]["last / first"] == 3.0


def test_parts_of_other_runs_stay_on_the_page(tmp_path):
    for name in ("a machine", "another"):
        found = report.tables({"name": name}, [made_run(lambda token: 1.0)])
        write(tmp_path, {name: {"about": {"name": name}, "tables": [table.as_json() for table in found]}})
    parts = json.loads((tmp_path / "long-run.json").read_text())
    assert list(parts) == ["a machine", "another"]
    text = (tmp_path / "long-run.md").read_text()
    assert text == page(parts)
    assert text.count("## another: growth a thousand tokens") == 1


def test_every_id_of_the_vocabulary_is_text_and_one_ends_an_answer(tmp_path):
    write_tokenizer(700, tmp_path)
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.vocab_size == 700
    assert all(tokenizer.token_of(token) for token in range(700))
    assert len(tokenizer.encode("ab\n")) == 3
    assert end_ids(tmp_path, tokenizer) == {tokenizer.control["<|im_end|>"]}


def test_a_worker_is_spoken_to_by_the_protocol(tmp_path, monkeypatch):
    write_byte_level(tmp_path)
    monkeypatch.setenv("FAKE_FOLDER", str(tmp_path))
    monkeypatch.setenv("DECDEC_WORKER", f"{sys.executable} -m {engine_worker.__name__}")
    speaker = WorkerSpeaker(Load("m"))
    try:
        speaker.move(SetSlowdown(5.0))
        events = list(speaker.answer(Generate((Message("user", "hi"),))))
        assert isinstance(events[-1], Done)
        assert events[-1].result["text"] == "hello 😀 world"
        assert events[-1].result["slowdown_target_pct"] == 5.0
        with pytest.raises(DecdecError, match="nothing to answer"):
            list(speaker.answer(Generate(())))
        assert speaker.pid > 0
    finally:
        speaker.close()
