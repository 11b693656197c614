"""A clock that is set back or forward by years: order, waiting and speeds do not hang on it."""

import ast
from pathlib import Path

import pytest

from app.history import History, dates
from app.history.store import FIRST_S
from tests.app.history.conversations import said

ROOT = Path(__file__).resolve().parents[3]
DAY, YEAR = 86_400.0, 365 * 86_400.0
NOW = FIRST_S + 200 * DAY
# Everything else that waits, measures or decides uses a clock that nobody sets.
WALL_CLOCK = {
    "app/chat/screens/history.py": "the headings Today and Yesterday",
    "app/conversation.py": "when something was said, to be shown",
    "app/history/store.py": "the order of conversations, which stays where the clock is certainly wrong",
    "app/unexpected.py": "the head of an entry in a log",
    "runtime/bench/decode/agreement.py": "the date of a report",
    "runtime/bench/decode/lookup.py": "the date of a report",
    "runtime/bench/long_run/__main__.py": "the date of a report",
    "runtime/bench/run_gpu.py": "the date of a report",
    "runtime/details/tuning.py": "the day of a tuning, to be shown",
    "runtime/download/limits.py": "a server's Retry-After as a date, limited by the reader",
    "runtime/server/replies.py": "a field of the protocol",
    "runtime/tasks/judge.py": "a field of the results",
    "runtime/tasks/mt_bench.py": "a field of the results",
    "runtime/text/template_environment.py": "what templates of models ask for",
    "runtime/worker/failures.py": "the head of an entry in a log",
}
NAMES = {
    ("time", "time"),
    ("time", "strftime"),
    ("datetime", "now"),
    ("datetime", "today"),
    ("date", "today"),
}


def reads_the_wall_clock(path):
    text = path.read_text("utf-8")
    if not any(f".{name}" in text for _, name in NAMES):
        return False
    found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute))
    return any((getattr(n.value, "id", getattr(n.value, "attr", "")), n.attr) in NAMES for n in found)


def test_whoever_reads_the_clock_of_the_wall_says_why():
    sources = (path for folder in ("app", "runtime", "kernels") for path in (ROOT / folder).rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix() for path in sources if reads_the_wall_clock(path)}
    assert found == set(WALL_CLOCK), (
        "a clock that can be set: use time.monotonic(), or say here what it is for"
    )


@pytest.mark.parametrize("back", [5.0, 1800.0, NOW - FIRST_S + DAY, NOW])
def test_the_newest_conversation_stays_the_first_where_the_clock_went_back(tmp_path, back):
    at = NOW
    history = History(tmp_path / "history.db", lambda: at)
    try:
        first, second, third = (said((f"{name} question", "answer")) for name in ("old", "middle", "new"))
        history.save(first)
        at = NOW + 1
        history.save(second)
        at -= back
        history.save(third)
        assert [entry.title[:3] for entry in history.page().entries] == ["new", "mid", "old"]
        first.ask("one more")
        history.save(first)
        assert [entry.title[:3] for entry in history.page().entries] == ["old", "new", "mid"]
    finally:
        history.close()


def test_one_moment_in_the_future_does_not_hold_the_dates_of_all_that_follows(tmp_path):
    at = NOW + 10 * YEAR
    history = History(tmp_path / "history.db", lambda: at)
    try:
        history.save(said(("from the future", "answer")))
        at = NOW
        history.save(said(("now", "answer")))
        assert {entry.updated for entry in history.page().entries} == {NOW, NOW + 10 * YEAR}
    finally:
        history.close()


@pytest.mark.parametrize("then", [0.0, -1e12, 1e18, NOW + 10 * YEAR, NOW - 10 * YEAR, NOW + 5])
def test_any_time_has_words(then):
    words = f"{dates.day(then, NOW)} {dates.moment(then, NOW)} {dates.stamp(then)}"
    assert "-1 min" not in words
    assert words.strip()
