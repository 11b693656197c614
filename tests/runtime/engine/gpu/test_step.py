"""One decode step against the float32 decoder with the same weights, behind the same cache."""

from dataclasses import replace

import pytest
import torch

from runtime.engine.gpu.step import EVERY
from runtime.layers.base import LINEAR_KINDS
from runtime.model.decoder import Decoder
from tests.runtime.engine.gpu.device_models import device_model, lossless_blocks
from tests.runtime.engine.gpu.tiny_steps import SMALL, mixed_block, new_step, off, one_step
from tests.runtime.model.tiny import FAMILIES

# Behind windows of 5 to 9, and where two programs share the attention.
TOKENS = torch.randint(1, 32, (14,), generator=torch.Generator().manual_seed(5)).tolist()
# Products take inputs in digits as good as float32; a key or value may fall on the other side of a bf16 tie.
CLOSE = 2e-3
# Tensor cores take the attention's queries and probabilities in bf16: what lies behind it is off by that.
BOUND = 2 * CLOSE if torch.cuda.is_available() else CLOSE
SIZES = {
    "gemma3": {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]},
    "phi3-longrope": {"num_attention_heads": 4},
}


def small(family, base, **sizes):
    return device_model(family, base, **{**SMALL, **SIZES.get(family, {}), **sizes})


@pytest.fixture(scope="module")
def coarse():
    return small("llama", "rtn3")


def mixed(tiny, shares):
    """The decoder of a base that has its residual in some linears: share by kind, block by block."""
    base, blocks = tiny.base, [mixed_block(tiny, index, share) for index, share in enumerate(shares)]
    return Decoder(base.spec, base.embed, blocks, base.norm, base.head)


def check(run, bound=BOUND):
    """Near the decoder, with a choice as good as its own, which the state has moved on to."""
    assert off(run.found, run.exact) < bound
    assert off(run.written, run.expected) < bound
    chosen, state = int(run.found.argmax()), run.step.buffers.state
    assert run.exact[chosen] > run.exact.max() - 3 * bound * run.exact.std()
    assert int(state.token) == int(state.answers[len(TOKENS)]) == chosen
    assert int(state.position) == len(TOKENS)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family):
    tiny = small(family, "dense")
    check(one_step(tiny, tiny.base, TOKENS))


@pytest.mark.parametrize("base", ["awq4", "awq3", "squeezellm3", "int8x", "int8"])
def test_every_base(base):
    tiny = small("llama", base)
    check(one_step(tiny, tiny.base, TOKENS))


@pytest.mark.parametrize(
    ("family", "base"),
    [("qwen2", "awq3"), ("gemma3", "rtn3"), ("llama", "squeezellm3"), ("llama-tied", "int8x")],
)
def test_all_channels_corrected_make_the_whole_residual(family, base):
    tiny = small(family, base)
    run = one_step(tiny, tiny.reference, TOKENS, corrected=EVERY, k_chunk=1024)
    check(run)
    with torch.inference_mode():
        uncorrected = tiny.base.forward(torch.tensor(TOKENS))[-1]
    assert off(uncorrected, run.exact) > 10 * CLOSE


def test_no_channel_corrected_is_the_base(coarse):
    check(one_step(coarse, coarse.base, TOKENS, corrected=EVERY, k_chunk=0))


@pytest.mark.parametrize("kind", LINEAR_KINDS)
def test_a_kind_alone_is_corrected_whatever_the_others_were_told(coarse, kind):
    alone = mixed(coarse, [{kind: 1.0}])
    check(run := one_step(coarse, alone, TOKENS, corrected=(kind,), k_chunk=1024))
    with torch.inference_mode():
        base = coarse.base.forward(torch.tensor(TOKENS))[-1]
    assert off(base, run.exact) > 10 * CLOSE


def test_half_of_the_channels_remove_most_of_the_error(coarse):
    run = one_step(coarse, coarse.reference, TOKENS, corrected=EVERY, k_chunk=512)
    plain = one_step(coarse, coarse.reference, TOKENS)
    assert 10 * CLOSE < off(run.found, run.exact) < 0.6 * off(plain.found, plain.exact)


def test_blocks_without_a_residual_stay_as_they_are_and_others_are_corrected():
    tiny = small("llama", "rtn3", num_hidden_layers=2)
    first, second = tiny.model.blocks
    bare = {kind: replace(linear, residual=None) for kind, linear in first.linears.items()}
    half = replace(second.linears["o"], residual=None)
    blocks = replace(first, linears=bare), replace(second, linears={**second.linears, "o": half})
    partly = tiny._replace(model=replace(tiny.model, blocks=blocks))
    decoder = mixed(tiny, [{}, {"qkv": 1.0, "gate_up": 1.0, "down": 1.0}])
    check(one_step(partly, decoder, TOKENS, corrected=EVERY, k_chunk=1024))


def test_other_linears_take_the_place_of_a_model_s_own():
    tiny = small("qwen2", "rtn3")
    check(one_step(tiny, tiny.source, TOKENS, linears=lossless_blocks(tiny)), bound=2e-2)


@pytest.mark.parametrize("family", ["mistral-window", "qwen3"])
def test_an_int8_cache(family):
    tiny = small(family, "dense")
    check(one_step(tiny, tiny.base, TOKENS, bits=8), bound=1e-2)


def test_a_fetch_in_several_splits_corrects_as_one_does(coarse):
    run = one_step(coarse, coarse.reference, TOKENS, corrected=EVERY, k_chunk=1024, fetching={})
    check(run)


def test_steps_go_on_from_their_own_choices():
    tiny = small("llama", "dense")
    _, step = new_step(tiny)
    state, rows = step.buffers.state, []
    state.place(0, TOKENS[0])
    with torch.inference_mode():
        for _ in range(3):
            step.run(())
            rows.append(step.logits[0].cpu().clone())
        chosen = state.answers[1:3].tolist()
        exact = tiny.base.forward(torch.tensor([TOKENS[0], *chosen]))
    assert chosen == [int(row.argmax()) for row in rows[:2]]
    assert max(off(row, expected) for row, expected in zip(rows, exact, strict=True)) < CLOSE
