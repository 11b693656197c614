import msgspec
import pytest

from app import facts
from app.conversation import Turn, TurnState
from runtime.protocol.events import KChunk, Stats

STATS = Stats(71.23, 0.1, 500, 480, 1041, 1500, 2048, 5.0, 4.8, KChunk(1), 312)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "1 041 tokens · 71.2 tok/s · at 5 % · 312 channels corrected · 480 reused"),
        ({"lossless": True}, "1 041 tokens · 71.2 tok/s · lossless · 480 reused"),
        (
            {"slowdown_target_pct": 0.0, "channels_corrected": 0, "reused_tokens": 0},
            "1 041 tokens · 71.2 tok/s",
        ),
        ({"completion_tokens": 0}, ""),
    ],
)
def test_speed_and_slider(changes, line):
    turn = Turn("q", "a", TurnState.DONE, "stop", stats=msgspec.structs.replace(STATS, **changes))
    assert facts.of(turn) == line


@pytest.mark.parametrize(
    ("reason", "failure", "words"),
    [
        ("stop", "", ""),
        ("length", "", "length limit reached"),
        ("context", "", "context is full"),
        ("stopped", "", "stopped"),
        ("interrupted", "", "interrupted, the program ended before the answer did"),
        ("", "It broke.", "It broke."),
    ],
)
def test_how_it_ended(reason, failure, words):
    assert facts.of(Turn("q", "a", TurnState.DONE, reason, failure)) == words


def test_variants_and_a_full_context():
    turn = Turn("q", "a", TurnState.DONE, "stop", dropped_messages=4)
    assert facts.of(turn, (2, 3)) == "variant 2 of 3 · context full: 4 oldest messages left out"
