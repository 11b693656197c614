"""Pieces to events, on a clock that the test moves."""

import pytest

from runtime.client.remote import Server, limits
from runtime.client.remote.answer import RemoteAnswer
from runtime.client.remote.documents import Figures, Piece, Usage
from runtime.client.remote.meter import RemoteMeter
from runtime.errors import DecdecError
from runtime.protocol import Done, KChunk, Loaded, Stats, Token

SERVER = Server.of("http://localhost:8000")


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def answering(clock, limit=0, guess=0, continued=""):
    loaded = Loaded("small", "", "server localhost:8000", limit, 0)
    return RemoteAnswer(SERVER, loaded, RemoteMeter(limit, guess, clock=clock), continued, clock)


def pushed(answer, clock, *texts, step=0.1):
    events = []
    for text in texts:
        clock.now += step
        events += answer.push(Piece(text))
    return events


def test_a_whole_answer(clock):
    answer = answering(clock, limit=100)
    events = pushed(answer, clock, "", "Hel", "lo", step=0.2)
    assert [event.text for event in events if isinstance(event, Token)] == ["Hel", "lo"]
    assert not answer.finished
    answer.push(Piece(finish_reason="stop"))
    assert answer.finished
    assert not answer.complete
    answer.push(Piece(usage=Usage(30, 5, 20)))
    answer.push(Piece(last=True))
    assert answer.complete
    stats, done = answer.end()
    assert (stats.prompt_tokens, stats.completion_tokens, stats.reused_tokens) == (30, 5, 20)
    assert (stats.context_used, stats.context_limit) == (35, 100)
    assert stats.prefill_s == pytest.approx(0.4)
    # Four steps after the first token took one interval.
    assert stats.decode_tokens_per_s == pytest.approx(4 / 0.2)
    assert done.result == {
        "text": "Hello", "model": "small", "device": "server localhost:8000", "finish_reason": "stop",
        "prompt_tokens": 30, "completion_tokens": 5, "prefill_s": stats.prefill_s,
        "decode_tokens_per_s": stats.decode_tokens_per_s, "slowdown_target_pct": 0.0,
        "slowdown_measured_pct": None, "k_chunk": {"qkv": 0, "o": 0, "gate_up": 0, "down": 0},
        "dropped_messages": 0,
    }  # fmt: skip


def test_text_in_quick_succession_is_one_event_and_none_is_lost(clock):
    answer = answering(clock)
    events = pushed(answer, clock, *"abcdefgh", step=0.01)
    tokens = [event for event in events if isinstance(event, Token)]
    assert tokens[0] == Token("a", 1)
    assert 1 < len(tokens) < 6
    assert "".join(token.text for token in [*tokens, *answer.rest()]) == "abcdefgh"
    assert answer.rest() == []


def test_figures_come_a_few_times_a_second_with_a_guessed_prompt(clock):
    answer = answering(clock, guess=40)
    stats = [e for e in pushed(answer, clock, *["x"] * 20, step=0.1) if isinstance(e, Stats)]
    assert 5 <= len(stats) <= 8
    assert stats[-1].decode_tokens_per_s == pytest.approx(10)
    assert stats[-1].prompt_tokens == 0
    assert stats[-1].context_used == 40 + stats[-1].completion_tokens


@pytest.mark.parametrize(
    ("said", "limit", "reason"),
    [
        ("stop", 0, "stop"),
        ("tool_calls", 0, "stop"),
        ("eos", 0, "stop"),
        ("length", 0, "length"),
        ("length", 100, "length"),
        ("length", 15, "context"),
    ],
)
def test_how_it_ended(clock, said, limit, reason):
    answer = answering(clock, limit)
    answer.push(Piece("x", finish_reason=said, usage=Usage(10, 5)))
    assert answer.end()[-1].result["finish_reason"] == reason


def test_a_stop_keeps_the_text_and_leaves_thinking_open(clock):
    answer = answering(clock)
    answer.push(Piece(reasoning="hm"))
    clock.now += 0.001
    answer.push(Piece(reasoning="m"))
    rest, stats, done = answer.end(stopped=True)
    assert rest == Token("m", 2)
    assert isinstance(stats, Stats)
    assert isinstance(done, Done)
    assert (done.result["text"], done.result["finish_reason"]) == ("<think>\nhmm", "stopped")


def test_thinking_that_nothing_followed_is_closed(clock):
    answer = answering(clock)
    answer.push(Piece(reasoning="hm", finish_reason="stop"))
    assert answer.end()[-1].result["text"] == "<think>\nhm\n</think>\n"


def test_the_text_of_an_answer_that_goes_on_is_what_is_new(clock):
    answer = answering(clock, continued="half an")
    answer.push(Piece(" answer", finish_reason="stop"))
    assert answer.end()[-1].result["text"] == " answer"


def test_an_emoji_in_two_halves_is_whole(clock):
    answer = answering(clock)
    texts = [e.text for e in pushed(answer, clock, "a\ud83d", "\ude00") if isinstance(e, Token)]
    assert texts == ["a", "\U0001f600"]


def test_a_stream_that_ends_too_early_is_a_failure_after_the_rest(clock):
    answer = answering(clock)
    answer.push(Piece("a"))
    answer.push(Piece("b"))
    with pytest.raises(DecdecError, match="broke off"):
        answer.end()
    assert answer.rest() == [Token("b", 2)]


def test_an_end_without_a_reason_is_an_end(clock):
    answer = answering(clock)
    answer.push(Piece("a"))
    answer.push(Piece(last=True))
    assert answer.end()[-1].result["finish_reason"] == "stop"


def test_what_our_own_server_tells_is_in_the_result(clock):
    answer = answering(clock)
    answer.dropped = 2
    answer.push(Piece("a", finish_reason="stop", figures=Figures(5.0, 4.5, KChunk(8, 4, 2, 1), 60, 4)))
    stats, done = answer.end()
    assert (stats.slowdown_target_pct, stats.channels_corrected) == (5.0, 60)
    assert done.result["slowdown_measured_pct"] == 4.5
    assert done.result["k_chunk"] == {"qkv": 8, "o": 4, "gate_up": 2, "down": 1}
    assert done.result["dropped_messages"] == 6


def test_a_content_filter_is_named(clock):
    answer = answering(clock)
    answer.push(Piece("a", finish_reason="content_filter"))
    with pytest.raises(DecdecError, match="content filter"):
        answer.end()


def test_a_server_that_gives_up_is_quoted_without_the_key(clock):
    answer = answering(clock)
    answer._server = Server("http://localhost/v1", "sk-abc", "K")
    with pytest.raises(DecdecError, match=r"gave up in the answer: memory of \[key\] ran out"):
        answer.push(Piece(failure="memory of sk-abc ran out"))


def test_an_answer_without_end_is_cut(clock, monkeypatch):
    monkeypatch.setattr(limits, "MAX_ANSWER_CHARS", 1000)
    answer = answering(clock)
    with pytest.raises(DecdecError, match="too large"):
        pushed(answer, clock, *["x" * 100] * 11)
    assert "".join(answer._shown) + answer._pending == "x" * 1000
