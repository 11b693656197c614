"""Positions of the slider: when they take effect, in which graph, and what they are said to cost."""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch

from kernels.dec.chunks import chunk_share
from runtime.engine.gpu.graphs import StepGraphs
from runtime.engine.gpu.slider import kinds_of
from runtime.engine.slider import TunedPath
from runtime.generation.settings import SamplingSettings
from runtime.layers.base import LINEAR_KINDS
from runtime.protocol.events import KChunk, SlowdownPoint
from tests.runtime.engine.gpu.device_models import DEVICE, device_model, lossless_blocks
from tests.runtime.engine.gpu.tiny_steps import PATH, SMALL, off, quick_engine, small_engine

TOKENS = [3, 17, 9, 30, 4]
LIVELY = SamplingSettings(temperature=1.2, top_p=0.95, seed=5)
CONTEXT = 256
BLOCKS = 2


class Ran(NamedTuple):
    """A step that was launched: by which graphs, for which kinds, and with what k_chunk in device memory."""

    graphs: StepGraphs
    corrected: frozenset
    table: KChunk
    position: int


@pytest.fixture(scope="module")
def tiny():
    return device_model("llama", "rtn3", context=CONTEXT, **{**SMALL, "num_hidden_layers": BLOCKS})


@pytest.fixture(scope="module")
def shared(tiny):
    return quick_engine(tiny, lossless=lossless_blocks(tiny))


@pytest.fixture
def engine(shared):
    """At the left end, with nothing in its cache."""
    shared.truncate(0)
    shared.set_slowdown(0.0, False)
    shared.slider()
    return shared


@pytest.fixture
def ran(engine, monkeypatch):
    """Every step that is launched from now on, without those that are only timed."""
    steps, replay = [], StepGraphs.replay

    def noted(graphs, corrected):
        inner, b = replay(graphs, corrected), graphs.step.buffers

        def run():
            table = KChunk(*(int(b.kinds[kind].step.selection.control[0]) for kind in LINEAR_KINDS))
            steps.append(Ran(graphs, frozenset(corrected), table, int(b.state.position)))
            inner()

        return run

    monkeypatch.setattr(StepGraphs, "replay", noted)
    monkeypatch.setattr(engine._pairs, "due", lambda: False)
    return steps


def begin(engine, settings=LIVELY):
    return engine.continuation(engine.prefill(TOKENS, lambda: None), settings)


def test_a_move_takes_effect_in_the_next_step_that_is_launched(engine, ran):
    answer = begin(engine)
    for pct in (0.0, 5.0, 9.0, 2.0, 0.0):
        engine.set_slowdown(pct, False)
        answer.next()
        assert ran[-1].table == PATH.at(pct)
        assert ran[-1].corrected == kinds_of(PATH.at(pct))
    answer.close()
    assert [step.position for step in ran] == list(range(5, 10))


def test_the_last_of_several_wishes_counts_also_for_single_tokens(engine, ran):
    engine.set_slowdown(9.0, False)
    engine.set_slowdown(4.9, False)
    engine.decode(3)
    assert ran[0].table == KChunk(qkv=256)
    assert ran[0].corrected == {"qkv"}
    assert engine.slider().target_pct == 4.9


@pytest.mark.parametrize("pct", [0.0, 2.0, 5.0, 7.0, 9.0, 40.0])
def test_a_graph_corrects_the_kinds_that_have_channels(engine, ran, pct):
    engine.set_slowdown(pct, False)
    engine.decode(3)
    table = PATH.at(pct)
    assert ran[0].corrected == {kind for kind in LINEAR_KINDS if getattr(table, kind)}
    assert engine.slider().k_chunk == table


def test_positions_change_what_is_computed(engine, tiny):
    found = {}
    for pct in (0.0, 5.0, 9.0):
        engine.truncate(0)
        engine.set_slowdown(pct, False)
        for token in TOKENS:
            found[pct] = engine.decode(token)
    with torch.inference_mode():
        base, whole = (d.forward(torch.tensor(TOKENS))[-1] for d in (tiny.base, tiny.reference))
    assert off(found[0.0], base) < 2e-2
    assert off(found[9.0], whole) < 2e-2
    assert 2e-2 < off(found[5.0], whole) < off(found[0.0], whole)


def answered(engine, moves, settings=LIVELY):
    answer, given = begin(engine, settings), []
    for pct, lossless in moves:
        engine.set_slowdown(pct, lossless)
        given.append(answer.next())
    answer.close()
    engine.truncate(0)
    return given


def test_a_schedule_of_moves_and_a_seed_give_one_answer(engine, tiny):
    moves = [(pct, pct == 7.0 and i % 2 == 0) for i in range(2) for pct in (0.0, 9.0, 2.0, 7.0)]
    first, again = answered(engine, moves), answered(engine, moves)
    other = quick_engine(tiny, lossless=lossless_blocks(tiny))
    assert first == again == answered(other, moves)
    assert len(set(first)) > 4


def test_the_stop_beyond_the_right_end_uses_the_other_weights(engine, ran, tiny):
    engine.set_slowdown(9.0, True)
    prompt = engine.prefill(TOKENS, lambda: None)
    exact = engine.decode(7)
    with torch.inference_mode():
        source = tiny.source.forward(torch.tensor([*TOKENS, 7]))
    assert off(prompt, source[-2]) < 3e-2
    assert off(exact, source[-1]) < 3e-2
    reading = engine.slider()
    assert reading.lossless
    assert (reading.k_chunk, reading.channels_corrected, reading.measured_pct) == (KChunk(), 0, 0.0)
    engine.set_slowdown(9.0, False)
    engine.decode(7)
    assert ran[0].graphs is not ran[1].graphs is engine._bank.graphs
    assert [step.corrected for step in ran] == [frozenset(), frozenset(LINEAR_KINDS)]


def test_lossless_is_not_offered_without_its_weights(tiny):
    engine = quick_engine(tiny)
    engine.set_slowdown(9.0, True)
    reading = engine.slider()
    assert not reading.lossless
    assert reading.k_chunk == PATH.at(9.0)


def test_many_moves_capture_no_more_than_the_path_s_sets(engine, tiny, monkeypatch):
    captured, capture = Counter(), StepGraphs._capture

    def counted(graphs, corrected):
        captured[id(graphs), frozenset(corrected)] += 1
        return capture(graphs, corrected)

    monkeypatch.setattr(StepGraphs, "_capture", counted)
    fresh = quick_engine(tiny, lossless=lossless_blocks(tiny))
    fresh.warm()
    sets = {kinds_of(point.k_chunk) for point in PATH.points}
    assert len(captured) == len(sets) + 1
    moves = [(i % 11, i % 7 == 0) for i in range(200)]
    answered(fresh, moves[:8], SamplingSettings())
    before = memory()
    answered(fresh, moves, SamplingSettings())
    assert set(captured.values()) == {1}
    assert len(captured) == len(sets) + 1
    assert memory() <= before


def test_the_base_alone_is_made_ready_also_where_no_point_of_the_path_is_it(tiny):
    engine = quick_engine(tiny, path=TunedPath([SlowdownPoint(3.0, KChunk(o=512))]))
    assert engine._slider.tables() == [KChunk(), KChunk(o=512)]


def memory():
    if DEVICE.type != "cuda":
        return 0
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated()


def test_corrected_channels_are_counted_over_all_blocks(engine):
    expected = {
        pct: BLOCKS * sum(chunk_share(getattr(PATH.at(pct), kind), 32) for kind in LINEAR_KINDS)
        for pct in (0.0, 2.0, 7.0, 9.0)
    }
    assert expected[9.0] == BLOCKS * 4 * 32
    for pct, channels in expected.items():
        engine.set_slowdown(pct, False)
        assert engine.slider().channels_corrected == channels


def test_linears_without_a_residual_do_not_count(tiny):
    first, second = tiny.model.blocks
    bare = {kind: replace(linear, residual=None) for kind, linear in first.linears.items()}
    model = replace(tiny.model, blocks=(replace(first, linears=bare), second))
    engine = quick_engine(tiny._replace(model=model))
    engine.set_k_chunk(KChunk(qkv=1024, down=512))
    assert engine.slider().channels_corrected == 32 + 16


def test_a_table_can_be_put_in_force_directly(engine, ran):
    engine.set_k_chunk(KChunk(down=300))
    engine.decode(3)
    assert ran[0].corrected == {"down"}
    assert ran[0].table == engine.slider().k_chunk == KChunk(down=300)


def test_an_input_that_is_not_finite_gets_the_base_alone_and_is_counted():
    tiny = device_model("llama", "rtn3", **SMALL)
    tiny.model.embedding.scale[13] = float("inf")
    engine = small_engine(tiny)
    engine.set_k_chunk(KChunk(1024, 0, 512, 1024))
    whole = engine.decode(3)
    assert left_out(engine) == 0
    assert not bool(torch.isfinite(engine.decode(13)).any())
    assert left_out(engine) == 3
    engine.truncate(0)
    assert torch.equal(engine.decode(3), whole)
    assert left_out(engine) == 3


def left_out(engine):
    """The count as it is now: a reading gives what was known at the one before."""
    engine.slider()
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return engine.slider().left_out
