"""A real engine of a tiny random model under measurement, in triton's interpreter where there is no GPU."""

import pytest
import torch

from runtime.bench.decode.random_model import Mode, random_device_model
from runtime.bench.decode.stepping import Tables, fill, new_engine
from runtime.bench.shapes import ModelShape
from runtime.engine.slider import TunedPath
from runtime.protocol import KChunk, SlowdownPoint

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TINY = ModelShape("Tiny", 1, 64, 64, 2, 1, 32, 48)
TABLE = KChunk(64, 64, 64, 64)
TABLES = Tables(TunedPath([SlowdownPoint(0.0, KChunk()), SlowdownPoint(5.0, TABLE)]), {})


@pytest.fixture(scope="module")
def engine():
    torch.manual_seed(3)
    model = random_device_model(TINY, Mode("awq4"), 32, DEVICE)
    return new_engine(model, TABLES)


def test_a_timed_step_leaves_state_and_cache_alone(engine):
    fill(engine, 6)
    cache, state = engine.engine.cache, engine.engine.buffers.state
    state.place(6, 5)
    words, keys = state.words.clone(), cache.keys[:, :, :6].clone()
    assert engine.step_milliseconds(6, 2) > 0
    assert engine.position == 6
    assert torch.equal(state.words, words)
    assert torch.equal(cache.keys[:, :, :6], keys)
    # The step was a real one: it wrote its own place.
    assert cache.keys[:, :, 6].isfinite().all()


def test_kinds_of_the_table_in_force_are_corrected(engine, monkeypatch):
    asked = []
    replay = engine.engine.graphs.replay
    monkeypatch.setattr(
        engine.engine.graphs, "replay", lambda kinds: asked.append(set(kinds)) or replay(kinds)
    )
    fill(engine, 4)
    for table in (KChunk(), KChunk(qkv=8, down=8)):
        engine.set_k_chunk(table)
        engine.step_milliseconds(4, 1)
    assert asked == [set(), {"qkv", "down"}]
    assert engine.slider().k_chunk == KChunk(qkv=8, down=8)


def test_memory_is_counted_by_purpose(engine):
    model = engine.engine.model
    memory = engine.memory()
    assert memory["blocks"] + memory["head"] == model.bytes_on_device()
    assert memory["cache"] == 2 * 2 * 32 * 32
    assert engine.kernels_per_token() == 0 or DEVICE.type == "cuda"
