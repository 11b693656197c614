"""Answers over a scripted engine with a real token history."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from itertools import chain, repeat

import pytest
import torch

from runtime.errors import DecdecError
from runtime.generation.context import exhausted
from runtime.generation.session import Session
from runtime.protocol import Done, Failed, Generate, Loaded, Message, SetSlowdown, Stats, Token
from runtime.text import Tokenizer
from tests.fakes.fake_engine import PATH, FakeEngine
from tests.fakes.small_tokenizers import write_byte_level


@dataclass
class Controls:
    """Stops after so many questions whether to stop; hands out moves one by one."""

    stop_after: float = float("inf")
    moves: list[SetSlowdown | None] = field(default_factory=list)
    asked: int = 0

    def stopped(self) -> bool:
        self.asked += 1
        return self.asked > self.stop_after

    def slowdown(self) -> SetSlowdown | None:
        return self.moves.pop(0) if self.moves else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    write_byte_level(path)
    return path


@pytest.fixture(params=[False, True], ids=["step by step", "computed ahead"])
def make(folder, request):
    tokenizer = Tokenizer.from_folder(folder)

    def build(*replies: str, limit: int = 512, path=PATH) -> tuple[Session, FakeEngine]:
        encoded = chain([tokenizer.encode(reply) for reply in replies], repeat([]))
        end = tokenizer.control["<|im_end|>"]
        engine = FakeEngine(encoded, tokenizer.vocab_size, end, limit, ahead=request.param)
        loaded = Loaded("m", "rtn4", "cpu", limit, 1, path, "" if path else "never tuned")
        return Session(engine, loaded, folder), engine

    build.tokenizer = tokenizer
    return build


def run(session, *messages, control=None, **options):
    roles = itertools.cycle(["user", "assistant"])
    chat = tuple(m if isinstance(m, Message) else Message(next(roles), m) for m in messages)
    events = list(session.answer(Generate(chat, **options), control or Controls()))
    assert isinstance(events[-1], Done)
    text = "".join(event.text for event in events if isinstance(event, Token))
    assert text == events[-1].result["text"]
    return events[-1].result, events


def test_answer_ends_at_the_end_token_with_every_field(make):
    session, engine = make("Paris is 東京 😀.")
    result, events = run(session, "capital?")
    assert set(result) == {
        "text", "model", "device", "finish_reason", "prompt_tokens", "completion_tokens", "prefill_s",
        "decode_tokens_per_s", "slowdown_target_pct", "slowdown_measured_pct", "k_chunk", "dropped_messages",
    }  # fmt: skip
    assert (result["text"], result["finish_reason"]) == ("Paris is 東京 😀.", "stop")
    assert result["completion_tokens"] == len(make.tokenizer.encode("Paris is 東京 😀."))
    assert result["prompt_tokens"] == engine.prefilled[0]
    assert result["k_chunk"] == {"qkv": 0, "o": 0, "gate_up": 0, "down": 0}
    stats = [event for event in events if isinstance(event, Stats)][-1]
    assert stats.context_used == result["prompt_tokens"] + result["completion_tokens"] == engine.position


def test_second_turn_computes_only_its_tail(make):
    session, engine = make("Hello there", "again")
    first, _ = run(session, "hi")
    _, events = run(session, "hi", "Hello there", "more")
    tail = make.tokenizer.encode("<|im_end|>\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n")
    assert engine.prefilled[1] == len(tail)
    reused = [event for event in events if isinstance(event, Stats)][-1].reused_tokens
    assert reused == first["prompt_tokens"] + first["completion_tokens"]
    chat = [Message("user", "hi"), Message("assistant", "Hello there"), Message("user", "more")]
    prompt = list(session._builder.build(chat).ids)
    assert engine.history == prompt + make.tokenizer.encode("again")


def test_changed_history_is_computed_from_the_change_on(make):
    session, engine = make("one", "two")
    run(session, "the quick question")
    run(session, "the quick reply")
    prompt = make.tokenizer.encode("<|im_start|>user\nthe quick reply<|im_end|>\n<|im_start|>assistant\n")
    shared = len(make.tokenizer.encode("<|im_start|>user\nthe quick"))
    assert engine.prefilled[1] == len(prompt) - shared
    assert engine.history[: len(prompt)] == prompt


def test_same_question_again_computes_its_last_token(make):
    session, engine = make("a", "b")
    run(session, "hi")
    run(session, "hi")
    assert engine.prefilled[1] == 1


def test_length_limit(make):
    session, _ = make("a b c d e f g h")
    result, _ = run(session, "hi", max_tokens=3)
    assert (result["finish_reason"], result["completion_tokens"]) == ("length", 3)
    result, _ = run(session, "hi", max_tokens=0)
    assert (result["finish_reason"], result["text"]) == ("length", "")


def test_stop_ends_within_a_token_and_the_next_question_is_answered(make):
    session, _ = make("the quick brown fox jumps over the lazy dog", "fine")
    control = Controls(stop_after=8)
    result, _ = run(session, "hi", control=control)
    assert result["finish_reason"] == "stopped"
    assert 1 <= result["completion_tokens"] <= 4
    assert "the quick brown fox".startswith(result["text"])
    again, _ = run(session, "hi", result["text"], "go on")
    assert (again["text"], again["finish_reason"]) == ("fine", "stop")


def test_stop_in_the_prefill_keeps_what_was_computed(make):
    session, engine = make("fine")
    long = "the quick brown fox " * 30
    result, _ = run(session, long, control=Controls(stop_after=3))
    assert (result["finish_reason"], result["text"], result["completion_tokens"]) == ("stopped", "", 0)
    done = engine.position
    assert done == 48
    assert run(session, long)[0]["text"] == "fine"
    assert engine.prefilled[1] == engine.prefilled[0] - done


def test_stop_string_ends_and_is_not_shown(make):
    session, _ = make("say it END and more", "fine")
    result, _ = run(session, "hi", stop=("END",))
    assert (result["text"], result["finish_reason"]) == ("say it ", "stop")
    assert run(session, "hi", "say it ", "go on")[0]["text"] == "fine"


def test_half_a_stop_string_at_the_end_is_shown(make):
    session, _ = make("this is the EN")
    assert run(session, "hi", stop=("END",))[0]["text"] == "this is the EN"


def test_context_limit_in_mid_answer(make):
    session, engine = make("the quick brown fox " * 50, limit=40)
    result, _ = run(session, "hi")
    assert result["finish_reason"] == "context"
    assert engine.position == 40


def test_oldest_turns_are_dropped_and_the_system_prompt_stays(make):
    session, engine = make(*["ok"] * 30, limit=300)
    chat = [Message("system", "Be brief.")]
    dropped, prefills = [], []
    for turn in range(30):
        chat.append(Message("user", f"question {turn}"))
        result, _ = run(session, *chat)
        dropped.append(result["dropped_messages"])
        prefills.append(engine.prefilled[-1])
        chat.append(Message("assistant", result["text"]))
    assert dropped[0] == 0
    assert dropped[-1] > 0
    assert dropped == sorted(dropped)
    assert all(count % 2 == 0 for count in dropped)
    shown = "".join(map(make.tokenizer.token_of, engine.history))
    assert "Be" in shown[:40]
    assert "question" in shown
    # Between two cuts only the new turn is computed.
    cuts = sum(a != b for a, b in itertools.pairwise(dropped))
    assert cuts <= 6
    assert sum(count > 45 for count in prefills) <= cuts + 1


def test_too_long_a_question_is_one_sentence(make):
    session, _ = make("ok", "ok", limit=64)
    with pytest.raises(DecdecError, match="context holds 64"):
        run(session, "words " * 100)
    assert run(session, "hi")[0]["text"] == "ok"
    with pytest.raises(DecdecError, match="nothing to answer"):
        run(session)


def test_a_failing_engine_loses_the_turn_and_not_the_chat(make):
    session, engine = make("the quick brown fox", "fine")
    engine.fail_at = len(make.tokenizer.encode("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")) + 3
    with pytest.raises(DecdecError, match="Memory ran out"):
        run(session, "hi", max_tokens=30)
    assert engine.position == 0
    assert run(session, "hi")[0]["text"] == "fine"


def test_a_model_whose_scores_are_no_numbers_ends_the_answer_and_not_the_chat(make):
    session, engine = make("the quick brown fox", "the quick brown fox")
    decode, engine.decode = engine.decode, lambda token: torch.full_like(decode(token), torch.nan)
    with pytest.raises(DecdecError, match="no score of the next token is a number"):
        run(session, "hi", max_tokens=30)
    assert engine.position == 0
    engine.decode = decode
    assert run(session, "hi")[0]["text"] == "the quick brown fox"


CUDA = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 7.63 GiB of which"
    " 512.00 MiB is free. Including non-PyTorch memory, this process has 7.10 GiB memory in use."
)


@pytest.mark.parametrize("into_answer", [-20, 2, 5])
def test_memory_that_runs_out_loses_the_turn_and_the_next_answer_is_as_without(make, into_answer):
    reply = "the quick brown fox jumps"
    session, engine = make("so it is", reply, reply, limit=2048)
    chat = ["hi", run(session, "hi")[0]["text"], "again, please, and say more this time"]
    prompt = len(session._builder.build([Message("user", text) for text in chat]).ids)
    engine.fail_at, engine.failure = prompt + into_answer, torch.OutOfMemoryError(CUDA)
    with pytest.raises(DecdecError) as caught:
        run(session, *chat)
    assert caught.value.sentence == (
        "Memory ran out in this answer: 2.15 GB more were needed and 536.9 MB of the GPU's memory are free,"
        " with a context of 2048 tokens."
        " Close other programs, or load with a context of 1024 tokens (--context 1024)."
    )
    assert engine.history == []
    result, _ = run(session, *chat)
    whole, _ = make("so it is", reply, limit=2048)
    run(whole, "hi")
    expected, _ = run(whole, *chat)
    assert (result["text"], result["finish_reason"]) == (expected["text"], expected["finish_reason"])
    assert session._cache.ids == whole._cache.ids


@pytest.mark.parametrize(
    ("limit", "fix"), [(700, "512 tokens (--context 512)"), (512, "a base with fewer bits")]
)
def test_the_smallest_context_is_not_halved(limit, fix):
    assert fix in exhausted(MemoryError(), limit).sentence
    assert "of host memory are free" in exhausted(MemoryError(), limit).sentence


def test_slider_moves_between_two_tokens(make):
    session, engine = make("a b c d e")
    moves = [None, None, SetSlowdown(5.0)]
    result, _ = run(session, "hi", control=Controls(moves=moves))
    # Two tokens were given by then, and the first of them is accepted.
    assert engine.moves == [(engine.prefilled[0] + 1, 5.0, False)]
    assert result["k_chunk"]["qkv"] == 8
    assert result["text"] == "a b c d e"


def test_slider_without_a_profile_says_why_and_the_answer_goes_on(make):
    session, _ = make("a b c", path=())
    result, events = run(session, "hi", control=Controls(moves=[SetSlowdown(5.0), SetSlowdown(0.0)]))
    assert [e.why for e in events if isinstance(e, Failed)] == ["never tuned"]
    assert result["text"] == "a b c"
    assert session.set_slowdown(SetSlowdown(0.0, lossless=True)).job == "set_slowdown"


def test_text_the_template_began_is_part_of_the_answer(make, folder, tmp_path):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    template = (
        "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}<|im_start|>a\n<think>\n"
    )
    (tmp_path / "chat_template.jinja").write_text(template)
    _, engine = make("so</think>yes", "fine")
    session = Session(engine, Loaded("m", "rtn4", "cpu", 512, 1), tmp_path)
    assert run(session, "hi")[0]["text"] == "<think>\nso</think>yes"
    assert run(session, "hi", "yes", "more")[0]["text"] == "<think>\nfine"


def test_a_cut_answer_goes_on_where_it_ended_and_nothing_is_computed_twice(make):
    session, engine = make("a b c d e f g h", " i j")
    first, _ = run(session, "hi", max_tokens=3)
    more, _ = run(session, "hi", first["text"])
    assert more["text"] == " i j"
    assert engine.prefilled[1] == 1
    assert session._builder.build(
        [Message("user", "hi"), Message("assistant", first["text"] + " i j")]
    ).ids == (*engine.history,)


def test_an_answer_cut_in_a_character_goes_on_with_the_whole_character(make):
    session, _ = make("x😀", "😀 y")
    cut = len(make.tokenizer.encode("x😀")) - 1
    first, _ = run(session, "hi", max_tokens=cut)
    assert first["text"] == "x"
    assert run(session, "hi", first["text"])[0]["text"] == "😀 y"


def test_text_that_quotes_the_end_of_a_turn_is_not_cut_and_goes_back_as_text(make):
    session, engine = make("fine")
    quote = "a turn ends with <|im_end|>, so"
    end = make.tokenizer.control["<|im_end|>"]
    engine.replies = iter([make.tokenizer.encode_plain(quote), make.tokenizer.encode("fine")])
    result, _ = run(session, "how?")
    assert (result["text"], result["finish_reason"]) == (quote, "stop")
    assert run(session, "how?", quote, "thanks <|im_end|>")[0]["text"] == "fine"
    assert engine.history.count(end) == 3, "one behind every message that is over, and none of those quoted"


@pytest.mark.parametrize("name", ["<|im_end|>", "<|endoftext|>", "brown"])
def test_the_first_of_several_ends_ends_the_answer(folder, tmp_path, name):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tokenizer = Tokenizer.from_folder(tmp_path)
    ends = [tokenizer.id_of("Ġbrown"), tokenizer.id_of("<|endoftext|>")]
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    reached = tokenizer.encode_plain(" brown") if name == "brown" else tokenizer.encode(name)
    assert len(reached) == 1
    ids = [*tokenizer.encode_plain("the quick"), *reached, *tokenizer.encode_plain(" fox")]
    engine = FakeEngine(iter([ids]), tokenizer.vocab_size, tokenizer.control["<|im_end|>"])
    session = Session(engine, Loaded("m", "rtn4", "cpu", 512, 1), tmp_path)
    result, _ = run(session, "hi")
    assert (result["text"], result["finish_reason"]) == ("the quick", "stop")


def test_memory_that_runs_out_at_a_move_of_the_slider_loses_the_turn_and_not_the_position(make):
    session, engine = make("a b c d e f", "fine")
    assert session.set_slowdown(SetSlowdown(5.0)) is None
    accept = engine.set_slowdown
    engine.set_slowdown = lambda pct, lossless: (_ for _ in ()).throw(MemoryError())
    with pytest.raises(DecdecError, match="Memory ran out in this answer"):
        run(session, "hi", control=Controls(moves=[None, None, SetSlowdown(0.0)]))
    engine.set_slowdown = accept
    assert session.stats().slowdown_target_pct == 5.0
    assert engine.history == []
    assert run(session, "hi")[0]["text"] == "fine"


def test_tokens_that_the_model_does_not_know_are_refused_before_the_engine_sees_them(make):
    session, engine = make("never")
    engine.vocab_size = 3
    with pytest.raises(DecdecError, match=r"gives token \d+ of 3"):
        run(session, "hello")
    assert engine.position == 0
