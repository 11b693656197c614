"""One captured step for each set of corrected kinds, and nothing changed by capturing it."""

from types import SimpleNamespace

import pytest
import torch

from runtime.engine.gpu.graphs import StepGraphs
from runtime.engine.gpu.step import EVERY
from tests.runtime.engine.gpu.device_models import DEVICE, device_model
from tests.runtime.engine.gpu.tiny_steps import SMALL, new_step

CUDA = torch.cuda.is_available()


class FakeStep:
    """Notes with what it was run."""

    def __init__(self):
        self.runs = []
        self.buffers = SimpleNamespace(stream=torch.zeros(1))

    def run(self, corrected):
        self.runs.append(frozenset(corrected))


def test_without_a_gpu_a_step_is_run_as_it_is_and_only_when_told():
    step = FakeStep()
    graphs = StepGraphs(step)
    replays = [graphs.replay(corrected) for corrected in ((), ("o", "qkv"), EVERY)]
    assert step.runs == []
    for replay in reversed(replays):
        replay()
    assert step.runs == [EVERY, {"qkv", "o"}, frozenset()]


def test_a_set_is_captured_once_in_whatever_order_it_is_named():
    graphs = StepGraphs(FakeStep())
    first = graphs.replay(("qkv", "down"))
    assert graphs.replay({"down", "qkv"}) is first
    assert graphs.replay(["down"]) is not first


@pytest.fixture(scope="module")
def step():
    return new_step(device_model("llama", "rtn3", **SMALL))[1]


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_capturing_changes_neither_state_nor_answer(step):
    state = step.buffers.state
    state.place(5, 9)
    before = state.words.clone()
    graphs = StepGraphs(step)
    for corrected in ((), ("o",), EVERY):
        graphs.replay(corrected)
        assert torch.equal(state.words, before)


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize("corrected", [(), ("qkv", "down"), EVERY])
def test_a_captured_step_is_the_step(step, corrected):
    state, graphs = step.buffers.state, StepGraphs(step)
    for kind in EVERY:
        step.buffers.kinds[kind].step.set_k_chunk(1024)
    replay = graphs.replay(corrected)
    rows = []
    for run in (lambda: step.run(corrected), replay):
        state.place(0, 9)
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        rows.append((step.logits.clone(), state.words.tolist(), state.answers[:4].tolist()))
    assert torch.equal(rows[0][0], rows[1][0])
    assert rows[0][1:] == rows[1][1:]


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_one_graph_serves_every_table_token_and_position(step):
    replay, state = StepGraphs(step).replay(EVERY), step.buffers.state
    found = []
    for k_chunk, token, position in ((0, 9, 0), (1024, 9, 0), (1024, 4, 0), (1024, 4, 1)):
        for kind in EVERY:
            step.buffers.kinds[kind].step.set_k_chunk(k_chunk)
        for place in range(position + 1):
            state.place(place, token)
            replay()
        found.append(step.logits.clone())
    assert all(not torch.equal(a, b) for i, a in enumerate(found) for b in found[:i])
    assert step.buffers.stream.device.type == DEVICE.type
