"""The engine as a whole: prompts, tokens and positions; with its own kernels where numbers are compared."""

import pytest
import torch

from runtime.engine.gpu.continuation import DeviceContinuation
from runtime.generation.settings import SamplingSettings
from runtime.protocol.events import KChunk
from tests.runtime.engine.gpu.device_models import DEVICE, device_model, lossless_blocks
from tests.runtime.engine.gpu.tiny_steps import SMALL, off, quick_engine, small_engine

TOKENS = torch.randint(1, 32, (12,), generator=torch.Generator().manual_seed(3)).tolist()
ALL = KChunk(1024, 1024, 1024, 1024)
# Prompts are multiplied in bf16.
CLOSE = 2e-2
LIVELY = SamplingSettings(1.2, 0.95, 20, 0.0, 1.1, seed=11)


def nothing():
    """Nobody asks to stop."""


def last(decoder, tokens):
    with torch.inference_mode():
        return decoder.forward(torch.tensor(tokens))[-1]


@pytest.fixture(scope="module")
def coarse():
    return device_model("llama", "rtn3", context=24, **SMALL)


@pytest.fixture(scope="module")
def quick(coarse):
    return quick_engine(coarse, chunk=4)


@pytest.fixture
def fresh(quick):
    quick.truncate(0)
    quick.set_slowdown(0.0, False)
    quick.slider()
    return quick


@pytest.fixture(scope="module")
def dense():
    return device_model("mistral-window", "dense", **SMALL)


def test_a_prompt_and_tokens_behind_it_are_as_good_as_tokens_alone(dense):
    engine = small_engine(dense)
    engine.prefill(TOKENS[:3], nothing)
    prompted = engine.decode(TOKENS[3])
    engine.truncate(0)
    for number, token in enumerate(TOKENS[:4]):
        alone = engine.decode(token)
        assert engine.position == number + 1
    assert off(alone, last(dense.base, TOKENS[:4])) < CLOSE / 5
    assert off(prompted, alone.cpu()) < CLOSE


def test_corrected_prompts_and_tokens_are_as_good_as_the_whole_residual(coarse):
    engine = small_engine(coarse)
    engine.set_k_chunk(ALL)
    found = [engine.prefill(TOKENS[:4], nothing), engine.decode(TOKENS[4])]
    exact = [last(coarse.reference, TOKENS[:count]) for count in (4, 5)]
    assert max(off(a, b) for a, b in zip(found, exact, strict=True)) < CLOSE
    assert off(last(coarse.base, TOKENS[:5]), exact[1]) > 5 * CLOSE


def test_prompts_stay_uncorrected_where_that_is_asked_for(coarse):
    engine = small_engine(coarse, prompt_correction=False)
    assert off(engine.prefill(TOKENS, nothing), last(coarse.base, TOKENS)) < CLOSE


def test_the_lossless_stop_is_the_source_in_int8_and_the_base_comes_back():
    tiny = device_model("qwen2", "rtn3", **SMALL)
    engine = small_engine(tiny, lossless=lossless_blocks(tiny))
    engine.set_slowdown(9.0, True)
    assert off(engine.decode(TOKENS[0]), last(tiny.source, TOKENS[:1])) < CLOSE
    assert engine.memory()["lossless"] > 0
    engine.truncate(0)
    engine.set_slowdown(0.0, False)
    assert off(engine.decode(TOKENS[0]), last(tiny.base, TOKENS[:1])) < CLOSE / 5


def test_a_continuation_s_tokens_are_those_of_its_own_kernels(dense):
    engine = small_engine(dense)
    logits = engine.decode(TOKENS[0])
    answer = engine.continuation(logits, SamplingSettings())
    given = [answer.next(), answer.next()]
    answer.close()
    engine.truncate(1)
    assert given == [int(logits.argmax()), int(engine.decode(given[0]).argmax())]


def test_a_continuation_is_one(fresh):
    logits = fresh.prefill(TOKENS[:2], nothing)
    assert isinstance(fresh.continuation(logits, SamplingSettings()), DeviceContinuation)


def test_what_was_cut_comes_again(fresh):
    whole = fresh.prefill(TOKENS, nothing)
    steps = [fresh.decode(token) for token in TOKENS]
    fresh.truncate(len(TOKENS) + 3)
    again = [fresh.decode(token) for token in TOKENS[3:]]
    assert all(torch.equal(a, b) for a, b in zip(steps[3:], again, strict=True))
    fresh.truncate(0)
    assert fresh.position == 0
    assert torch.equal(fresh.prefill(TOKENS, nothing), whole)


def test_logits_are_the_caller_s_own(fresh):
    first = fresh.decode(TOKENS[0])
    kept = first.clone()
    fresh.decode(TOKENS[1])
    assert first.dtype == torch.float32
    assert first.shape == (fresh.vocab_size,)
    assert torch.equal(first, kept)


@pytest.mark.parametrize(("calls", "kept"), [(1, 0), (2, 4), (3, 8)])
def test_a_stop_in_a_prompt_keeps_the_chunks_that_are_done(fresh, calls, kept):
    fresh.prefill(TOKENS[:2], nothing)
    left = iter(range(calls - 1))

    def check():
        if next(left, None) is None:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fresh.prefill(TOKENS[2:], check)
    assert fresh.position == 2 + kept
    rest = fresh.prefill(TOKENS[2 + kept :], nothing)
    fresh.truncate(0)
    assert off(rest, fresh.prefill(TOKENS, nothing).cpu()) < CLOSE


def test_the_context_is_filled_to_its_end_and_not_beyond(fresh):
    fresh.prefill(TOKENS * 2, nothing)
    assert fresh.position == fresh.context_limit == 24
    with pytest.raises(ValueError, match="not within a context of 24"):
        fresh.decode(1)
    with pytest.raises(ValueError, match="1 tokens do not fit behind 24"):
        fresh.prefill([1], nothing)
    assert fresh.position == 24
    with pytest.raises(ValueError, match="cannot truncate 24 positions to 25"):
        fresh.truncate(25)
    fresh.truncate(23)
    fresh.decode(1)
    assert fresh.position == 24


@pytest.mark.parametrize("tokens", [[], TOKENS * 3])
def test_a_prompt_that_cannot_be_appended_changes_nothing(fresh, tokens):
    fresh.prefill(TOKENS[:3], nothing)
    with pytest.raises(ValueError, match="do not fit"):
        fresh.prefill(tokens, nothing)
    assert fresh.position == 3


@pytest.mark.parametrize("bits", [16, 8])
def test_engines_alike_give_the_same_answer_to_the_same_seed(coarse, bits):
    answers = []
    for _ in range(2):
        engine = quick_engine(coarse, kv_bits=bits)
        engine.set_slowdown(7.0, False)
        answer = engine.continuation(engine.prefill(TOKENS, nothing), LIVELY)
        answers.append([answer.next() for _ in range(6)])
        answer.close()
    assert answers[0] == answers[1]
    assert len(set(answers[0])) > 2


def test_another_seed_gives_another_answer(fresh):
    answers = []
    for seed in (1, 2):
        fresh.truncate(0)
        settings = SamplingSettings(temperature=1.5, top_p=1.0, seed=seed)
        answer = fresh.continuation(fresh.prefill(TOKENS, nothing), settings)
        answers.append([answer.next() for _ in range(10)])
        answer.close()
    assert answers[0] != answers[1]


def test_a_pair_that_is_timed_leaves_no_trace_in_an_answer(fresh, monkeypatch):
    answers, pairs = [], []
    run = fresh._pairs.run

    def counted(*steps):
        pairs.append(fresh.position)
        run(*steps)

    monkeypatch.setattr(fresh._pairs, "run", counted)
    for due in (True, False):
        fresh.truncate(0)
        fresh.set_slowdown(9.0, False)
        with monkeypatch.context() as patch:
            patch.setattr(fresh._pairs, "due", lambda due=due: due)
            settings = SamplingSettings(repetition_penalty=1.3)
            answer = fresh.continuation(fresh.prefill(TOKENS, nothing), settings)
            answers.append([answer.next() for _ in range(12)])
            answer.close()
    assert answers[0] == answers[1]
    assert len(pairs) == 12


def test_a_corrected_answer_gets_its_slowdown_measured(fresh):
    fresh.set_slowdown(9.0, False)
    answer = fresh.continuation(fresh.prefill(TOKENS, nothing), LIVELY)
    for _ in range(3):
        answer.next()
    assert fresh.slider().measured_pct is None
    for _ in range(6):
        answer.next()
    answer.close()
    fresh.decode(1)
    assert fresh.slider().measured_pct is not None
    fresh.set_slowdown(5.0, False)
    assert fresh.slider().measured_pct is None
    fresh.set_slowdown(0.0, False)
    assert fresh.slider().measured_pct == 0.0


def test_memory_is_told_by_what_it_is_for(coarse, fresh):
    spec = coarse.model.spec
    bf16 = 2 * 2 * len(spec.layers) * spec.n_kv_heads * 24 * spec.head_dim
    assert fresh.memory() == {"model": coarse.model.bytes_on_device(), "lossless": 0, "KV cache": bf16}
    assert fresh.kernels_per_token() == 0 or DEVICE.type == "cuda"
