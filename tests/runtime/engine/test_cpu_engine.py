"""The CPU engine: same numbers as the torch decoder, live tables, and a cache that can be cut."""

import numpy as np
import pytest
import torch

from kernels.dec.chunks import chunk_share
from kernels.dec.residual import quantise_residual
from kernels.dec.rtn import dequantise, quantise_rtn
from runtime.engine.cpu import CpuEngine
from runtime.engine.slider import MeasuredSlowdown, TunedPath
from runtime.generation.sampler import Sampler
from runtime.generation.settings import SamplingSettings
from runtime.layers import correction as corrections
from runtime.layers.base import LINEAR_KINDS
from runtime.layers.compensated import Compensated
from runtime.layers.correction import Correction
from runtime.layers.int8 import Int8
from runtime.layers.lowbit import LowBit
from runtime.model import weights
from runtime.model.build import build_dense
from runtime.model.quantised import Tables, assemble
from runtime.model.spec import ModelSpec
from runtime.protocol.events import KChunk, SlowdownPoint
from tests.runtime.model.tiny import tiny_model

SIZES = {"hidden_size": 128, "intermediate_size": 160, "head_dim": 32, "num_attention_heads": 4}
FAMILIES = ["llama", "mistral-window", "qwen2", "qwen3", "phi3", "gemma3", "llama-tied"]
TOKENS = torch.randint(0, 97, (12,), generator=torch.Generator().manual_seed(5)).tolist()
PATH = TunedPath(
    [
        SlowdownPoint(0.0, KChunk()),
        SlowdownPoint(5.0, KChunk(512, 0, 512, 512)),
        SlowdownPoint(9.0, KChunk(1024, 1024, 1024, 1024)),
    ]
)


def int8(weight):
    scale = weight.abs().amax(1) / 127
    return Int8((weight / scale[:, None]).round().to(torch.int8), scale)


def with_columns(weight):
    columns = torch.exp(torch.randn(weight.shape[1], generator=torch.Generator().manual_seed(9)) / 4)
    scale = (weight * columns).abs().amax(1) / 127
    return Int8((weight * columns / scale[:, None]).round().to(torch.int8), scale, columns)


def compensated(weight):
    base = quantise_rtn(weight, 4)
    residual = quantise_residual(weight - dequantise(base))
    profile = torch.linspace(3, 0, weight.shape[1])
    return Compensated(LowBit(base), Correction.alone(residual, profile))


def engine_of(family, make, table=None, **changes):
    make_table = table or int8
    _, checkpoint = tiny_model(family, spread=0.04, **{**SIZES, **changes})
    spec = ModelSpec.from_config(checkpoint.config)
    blocks = range(len(spec.layers))
    layers = [
        {kind: make(weights.fused_weight(checkpoint, spec, i, kind)) for kind in LINEAR_KINDS} for i in blocks
    ]
    table = make_table(checkpoint.load(weights.EMBEDDING).float())
    head = table if spec.tied else make_table(checkpoint.load(weights.HEAD).float())
    decoder = assemble(checkpoint, spec, layers, Tables(table, head))
    return CpuEngine(decoder, table, head, 64, PATH), checkpoint


def relative(a, b):
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize("make", [int8, with_columns])
@pytest.mark.parametrize("family", FAMILIES)
def test_decode_steps_follow_the_torch_decoder(family, make):
    engine, _ = engine_of(family, make, make)
    with torch.inference_mode():
        whole = engine._decoder.forward(torch.tensor(TOKENS))
    steps = [engine.decode(token) for token in TOKENS]
    errors = [relative(step, row) for step, row in zip(steps, whole, strict=True)]
    assert max(errors) < 0.01, errors
    assert engine.position == len(TOKENS)


@pytest.mark.parametrize("family", ["llama", "qwen2", "mistral-window"])
def test_int8_stays_close_to_the_dense_model(family):
    engine, checkpoint = engine_of(family, int8)
    with torch.inference_mode():
        dense = build_dense(checkpoint).forward(torch.tensor(TOKENS))[-1]
    for token in TOKENS:
        step = engine.decode(token)
    assert relative(step, dense) < 0.03


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_prefill_and_decode_agree(family):
    engine, _ = engine_of(family, int8)
    whole = engine.prefill(TOKENS, lambda: None)
    engine.truncate(5)
    for token in TOKENS[5:]:
        step = engine.decode(token)
    assert relative(step, whole) < 0.02


@pytest.mark.parametrize("settings", [SamplingSettings(), SamplingSettings(1.3, 0.95, 20, 0.01, 1.2, seed=4)])
def test_a_continuation_is_the_sampler_s_choice_after_every_step(settings):
    engine, _ = engine_of("llama", compensated)
    expected, sampler = [], Sampler(settings)
    logits = engine.prefill(TOKENS, lambda: None)
    for _ in range(8):
        expected.append(sampler.pick(logits))
        logits = engine.decode(expected[-1])
    engine.truncate(0)
    answer = engine.continuation(engine.prefill(TOKENS, lambda: None), settings)
    given, positions = [], []
    for _ in range(8):
        given.append(answer.next())
        positions.append(engine.position)
    answer.close()
    assert given == expected
    assert positions == list(range(len(TOKENS), len(TOKENS) + 8))


def test_a_continuation_fills_the_context_to_its_last_place():
    engine, _ = engine_of("llama", int8)
    answer = engine.continuation(engine.prefill((TOKENS * 6)[:61], lambda: None), SamplingSettings())
    for _ in range(4):
        answer.next()
    answer.close()
    assert engine.position == engine.context_limit == 64


def test_all_channels_corrected_is_nearly_dense_and_none_is_the_base():
    engine, checkpoint = engine_of("llama", compensated)
    with torch.inference_mode():
        dense = build_dense(checkpoint).forward(torch.tensor(TOKENS))[-1]
    errors = {}
    for pct in (0.0, 5.0, 9.0):
        engine.truncate(0)
        engine.set_slowdown(pct, False)
        for token in TOKENS:
            logits = engine.decode(token)
        errors[pct] = relative(logits, dense)
    assert errors[9.0] < errors[5.0] < errors[0.0]
    assert errors[9.0] < 0.3 * errors[0.0]


def test_an_input_that_is_not_finite_gets_the_base_alone_and_is_counted():
    engine, _ = engine_of("llama", compensated)
    engine.prefill(TOKENS, lambda: None)
    engine.set_slowdown(7.5, False)
    engine.decode(3)
    assert engine.slider().left_out == 0
    engine._step._embedding_row = lambda token: np.full_like(engine._step._h, np.nan)
    logits = engine.decode(3)
    assert not bool(torch.isfinite(logits).any())
    assert engine.slider().left_out >= 3 * 3
    del engine._step._embedding_row
    engine.truncate(len(TOKENS))
    assert bool(torch.isfinite(engine.decode(3)).all())


def test_a_table_takes_effect_at_the_next_token_and_counts_its_channels():
    engine, _ = engine_of("llama", compensated)
    engine.prefill(TOKENS, lambda: None)
    assert engine.slider().channels_corrected == 0
    engine.set_slowdown(7.5, False)
    engine.decode(3)
    reading = engine.slider()
    assert reading.k_chunk == KChunk(512, 0, 512, 512)
    per_block = chunk_share(512, 128) * 2 + chunk_share(512, 160)
    assert reading.channels_corrected == 3 * per_block
    for _ in range(20):
        engine.decode(3)
    assert engine.slider().measured_pct > 0
    engine.set_slowdown(0.0, False)
    for _ in range(20):
        engine.decode(3)
    assert engine.slider().measured_pct == 0.0


def test_a_table_that_cannot_be_had_leaves_the_one_before_in_force(monkeypatch):
    engine, _ = engine_of("llama", compensated)
    engine.prefill(TOKENS, lambda: None)
    engine.set_slowdown(5.0, False)
    expected, before = engine.decode(3), engine.slider()
    engine.truncate(len(TOKENS))
    made, left = corrections.bucket_bounds, iter([True] * 7)

    def scarce(*arguments):
        if not next(left, False):
            raise MemoryError
        return made(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(corrections, "bucket_bounds", scarce)
        engine.set_slowdown(9.0, False)
        with pytest.raises(MemoryError):
            engine.decode(3)
    assert engine.slider() == before
    assert torch.equal(engine.decode(3), expected)
    engine.set_slowdown(9.0, False)
    assert engine.slider().k_chunk == KChunk(1024, 1024, 1024, 1024)


def test_the_lossless_stop_equals_an_int8_engine_and_returns():
    engine, checkpoint = engine_of("llama", compensated)
    plain, _ = engine_of("llama", int8)
    spec = ModelSpec.from_config(checkpoint.config)
    engine.add_lossless(
        [
            {kind: int8(weights.fused_weight(checkpoint, spec, i, kind)) for kind in LINEAR_KINDS}
            for i in range(len(spec.layers))
        ]
    )
    first = engine.prefill(TOKENS, lambda: None)
    engine.truncate(0)
    engine.set_slowdown(0.0, True)
    assert engine.slider().lossless
    exact = engine.prefill(TOKENS, lambda: None)
    assert torch.equal(exact, plain.prefill(TOKENS, lambda: None))
    assert torch.equal(engine.decode(7), plain.decode(7))
    engine.truncate(0)
    engine.set_slowdown(0.0, False)
    assert torch.equal(engine.prefill(TOKENS, lambda: None), first)


def test_lossless_is_not_offered_without_its_layers():
    engine, _ = engine_of("llama", compensated)
    engine.set_slowdown(5.0, True)
    assert not engine.slider().lossless


def test_a_stop_between_prefill_chunks_keeps_the_chunks_done(monkeypatch):
    monkeypatch.setattr("runtime.engine.cpu.PREFILL_CHUNK", 4)
    engine, _ = engine_of("llama", int8)
    calls = iter([None, None, KeyboardInterrupt])

    def check():
        if (error := next(calls)) is not None:
            raise error

    with pytest.raises(KeyboardInterrupt):
        engine.prefill(TOKENS, check)
    assert engine.position == 8


def test_the_path_gives_the_last_table_within_the_target():
    assert PATH.at(4.99) == KChunk()
    assert PATH.at(5.0).qkv == 512
    assert PATH.at(20.0).o == 1024
    assert TunedPath([]).at(20.0) == KChunk()
    with pytest.raises(ValueError, match="ascend"):
        TunedPath([SlowdownPoint(5.0, KChunk()), SlowdownPoint(1.0, KChunk())])


def test_measured_slowdown_is_the_median_share():
    meter = MeasuredSlowdown()
    assert meter.pct is None
    for step, correction in [(1.1, 0.1), (1.2, 0.2), (9.0, 8.0)]:
        meter.add(step, correction)
    assert meter.pct == pytest.approx(20.0)
    meter.reset()
    assert meter.pct is None
