"""The CPU engine over models whose sizes are multiples of nothing, and over numbers that overflow."""

import pytest
import torch

from kernels.dec.residual import quantise_residual
from kernels.dec.rtn import dequantise, quantise_rtn
from runtime.engine.cpu import CpuEngine
from runtime.errors import DecdecError
from runtime.generation.settings import SamplingSettings
from runtime.layers.compensated import Compensated
from runtime.layers.correction import Correction
from runtime.layers.lowbit import LookUp, LowBit, base_layer
from runtime.protocol.events import KChunk
from tests.runtime.engine.test_cpu_engine import TOKENS, engine_of, int8, relative

ODD = [
    {"hidden_size": 40, "intermediate_size": 74, "head_dim": 10, "num_key_value_heads": 1, "vocab_size": 101},
    {"hidden_size": 36, "intermediate_size": 1029, "head_dim": 12, "num_hidden_layers": 1},
    {"hidden_size": 8, "intermediate_size": 1, "head_dim": 2, "num_hidden_layers": 1, "vocab_size": 99},
]
LENGTHS = (1, 2, 31, 32, 33, 127, 128, 129)


def corrected(weight):
    base = quantise_rtn(weight, 4)
    residual = quantise_residual(weight - dequantise(base))
    correction = Correction.alone(residual, torch.linspace(3, 0, weight.shape[1]))
    return Compensated(base_layer(base, None), correction)


@pytest.mark.parametrize("make", [int8, corrected])
@pytest.mark.parametrize("sizes", ODD, ids=lambda sizes: str(sizes["hidden_size"]))
def test_steps_of_unusual_sizes_follow_the_torch_decoder(sizes, make):
    engine, _ = engine_of("llama", make, int8, **{"num_attention_heads": 4, **sizes})
    engine.set_k_chunk(KChunk(1024, 1024, 1024, 1024))
    with torch.inference_mode():
        whole = engine._decoder.forward(torch.tensor(TOKENS))
    steps = [engine.decode(token) for token in TOKENS]
    assert max(relative(step, row) for step, row in zip(steps, whole, strict=True)) < 0.02


@pytest.mark.parametrize(("shape", "kind"), [((16, 96), LowBit), ((10, 96), LookUp), ((16, 40), LookUp)])
def test_groups_that_the_product_cannot_have_are_looked_up(shape, kind):
    base = quantise_rtn(torch.randn(shape, generator=torch.Generator().manual_seed(3)), 4)
    layer, x = base_layer(base, None), torch.randn(2, shape[1])
    assert type(layer) is kind
    assert relative(layer.prefill(x), x @ dequantise(base).t()) < 0.01


def test_prompts_of_any_length_are_token_by_token_decoding():
    prompt = (TOKENS * 11)[:129]
    made, _ = engine_of("llama", int8, max_position_embeddings=256)
    step = made._step
    whole, steps = (CpuEngine(made._decoder, step._embedding, step._head, 130, made._path) for _ in range(2))
    for count, token in enumerate(prompt, start=1):
        found = steps.decode(token)
        if count in LENGTHS:
            whole.truncate(0)
            assert relative(whole.prefill(prompt[:count], lambda: None), found) < 0.02, count
            assert whole.position == count


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_an_overflow_ends_the_answer_with_a_sentence_and_leaves_nothing_behind(temperature):
    engine, _ = engine_of("llama", corrected)
    settings = SamplingSettings(temperature, repetition_penalty=1.2, seed=3)

    def answer():
        engine.truncate(0)
        tokens = engine.continuation(engine.prefill(TOKENS, lambda: None), settings)
        try:
            return [tokens.next() for _ in range(4)]
        finally:
            tokens.close()

    sound = answer()
    norm = engine._decoder.blocks[1].norms.mlp
    before = norm.clone()
    for broken in (float("nan"), float("inf"), 3e38):
        norm.fill_(broken)
        with pytest.raises(DecdecError, match="no score of the next token is a number"):
            answer()
        norm.copy_(before)
        assert answer() == sound


@pytest.mark.parametrize("k_chunk", [0, 1, 7, 1023, 1024, 1025, 1 << 40])
def test_a_table_beyond_all_channels_corrects_all(k_chunk):
    engine, _ = engine_of("llama", corrected)
    engine.set_k_chunk(KChunk(down=k_chunk))
    engine.decode(TOKENS[0])
    n_in = engine._decoder.spec.intermediate
    expected = min(round(min(k_chunk, 1024) * n_in / 1024), n_in)
    assert engine.slider().channels_corrected == expected * len(engine._decoder.blocks)


def test_the_table_may_change_at_every_token():
    engine, _ = engine_of("llama", corrected)
    for number in range(60):
        engine.set_k_chunk(KChunk(number % 3, number * 7, number * number, 1024 - number))
        assert torch.isfinite(engine.decode(TOKENS[number % len(TOKENS)])).all()
