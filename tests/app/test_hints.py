"""Hints: each once, at its moment, never two together."""

import itertools

import pytest

from app import hints
from app.actions import by_name
from app.hints import HINTS, QUIET_S, Hinting
from app.keymap import Keymap
from app.session import ChatSession
from runtime.protocol.events import Done, KChunk, Loaded, SlowdownPoint, Stats, Token

BY_NAME = {hint.name: hint for hint in HINTS}


@pytest.fixture(autouse=True)
def all_hints(_as_a_person_has_it, monkeypatch):
    monkeypatch.setattr(hints, "HINTS", HINTS)


def loaded(path=()):
    return Loaded("m", "awq4", "cpu", 100, 0, path, "" if path else "untuned", False)


def stats(used=10, reused=0):
    return Stats(10.0, 0.1, 5, reused, 5, used, 100, 0.0, None, KChunk())


def answered(session, text="Yes.", reused=0):
    session.ask("q")
    session.push(stats(reused=reused))
    done = Done("generate", {"text": text, "finish_reason": "stop"})
    session.push(done)
    return done


@pytest.fixture
def session():
    session = ChatSession()
    session.load("m")
    session.push(loaded())
    return session


def test_the_slider_is_explained_after_the_first_answer_where_there_is_one(session):
    hinting = Hinting()
    assert hinting.push(answered(session), session, 0.0) is None
    session.push(loaded((SlowdownPoint(0.0, KChunk()),)))
    assert hinting.push(answered(session), session, 1.0).name == "slider"
    assert hinting.seen == {"slider"}


def test_never_two_within_a_while_and_each_once(session):
    session.push(loaded((SlowdownPoint(0.0, KChunk()),)))
    hinting, shown = Hinting(), []
    for index in range(12):
        if hint := hinting.push(answered(session, "```x```", 3), session, index * QUIET_S / 2):
            shown.append((index, hint.name))
    assert [name for _, name in shown] == ["slider", "code", "reused", "variants", "history"]
    times = [index for index, _ in shown]
    assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(times))


def test_what_was_seen_before_does_not_come_again(session):
    hinting = Hinting([hint.name for hint in HINTS])
    assert hinting.push(answered(session, "<think>a</think>```"), session, 0.0) is None


MOMENTS = [
    ("stop", lambda session: Token("x", hints.LONG_TOKENS), True),
    ("stop", lambda session: Token("x", hints.LONG_TOKENS - 1), False),
    ("context", lambda session: stats(used=80), True),
    ("context", lambda session: stats(used=79), False),
    ("think", lambda session: answered(session, "<think>a</think>b"), True),
    ("think", lambda session: answered(session, "a</think>b"), False),
    ("code", lambda session: answered(session, "```py\nx\n```"), True),
    ("code", lambda session: answered(session, "`x`"), False),
    ("reused", lambda session: answered(session, reused=1), True),
    ("reused", lambda session: answered(session), False),
    ("variants", lambda session: answered(session), False),
    ("slider", lambda session: Done("tune", {}), False),
]


@pytest.mark.parametrize(("name", "event", "due"), MOMENTS)
def test_moments(session, name, event, due):
    assert BY_NAME[name].moment(event(session), session) is due


def test_hints_name_the_keys_of_now():
    keymap = Keymap({"stop": "f11"})
    assert BY_NAME["stop"].words(keymap).startswith("F11 stops")
    for hint in HINTS:
        assert "{" not in hint.words(Keymap())
        for name in hints._names(hint.text):
            assert by_name(name)
