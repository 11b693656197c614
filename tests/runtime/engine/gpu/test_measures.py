"""What is measured is measured where it was asked for, and leaves the engine as it was."""

from types import SimpleNamespace

import pytest
import torch

from kernels.gpu.step_state import new_step_state
from runtime.engine.gpu.measures import kernels_of, step_milliseconds
from tests.runtime.engine.gpu.device_models import DEVICE, device_model
from tests.runtime.engine.gpu.tiny_steps import SMALL, quick_engine, small_engine

TOKENS = [3, 9, 27, 14]


@pytest.fixture
def buffers():
    return SimpleNamespace(state=new_step_state(16, DEVICE), stream=torch.zeros(1, device=DEVICE))


def test_every_step_is_timed_at_its_place(buffers):
    buffers.state.place(7, 5)
    places = []
    found = step_milliseconds(lambda: places.append(int(buffers.state.position)), buffers, 11, 5)
    assert found >= 0
    assert set(places) == {11}
    assert len(places) > 5
    assert (int(buffers.state.position), int(buffers.state.token)) == (7, 5)


def test_a_step_that_fails_leaves_the_state_too(buffers):
    buffers.state.place(7, 5)

    def failing():
        raise MemoryError

    with pytest.raises(MemoryError):
        step_milliseconds(failing, buffers, 11, 5)
    assert int(buffers.state.position) == 7


def test_nothing_is_measured_outside_the_context(buffers):
    with pytest.raises(ValueError, match="not within a context of 16"):
        step_milliseconds(lambda: None, buffers, 16, 5)


def test_tokens_behind_a_measurement_are_the_same():
    engine = quick_engine(device_model("llama", "rtn3", context=16, **SMALL))
    engine.prefill(TOKENS, lambda: None)
    expected = engine.decode(5)
    engine.truncate(len(TOKENS))
    assert engine.step_milliseconds(len(TOKENS), 2) > 0
    engine.kernels_per_token()
    assert engine.position == len(TOKENS)
    assert torch.equal(engine.decode(5), expected)


def test_kernels_are_counted_on_a_gpu_alone(buffers):
    found = kernels_of(lambda: buffers.stream.add_(1).mul_(2), buffers)
    assert found == (2 if DEVICE.type == "cuda" else 0)


@pytest.mark.skipif(DEVICE.type != "cuda", reason="needs a GPU")
def test_a_token_takes_the_kernels_of_its_blocks():
    counts = []
    for layers in (1, 2):
        engine = small_engine(device_model("llama", "rtn3", **{**SMALL, "num_hidden_layers": layers}))
        counts.append(engine.kernels_per_token())
    assert 5 < counts[1] - counts[0] <= 9
