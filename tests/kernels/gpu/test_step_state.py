"""State of a decode step."""

from __future__ import annotations

import pytest
import torch

from kernels.gpu.step_state import StepState, new_step_state

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def test_a_state_is_placed_and_kept():
    state = new_step_state(10, DEVICE)
    assert (state.context, int(state.position), int(state.token)) == (10, 0, 0)
    assert state.answers.is_pinned() == (DEVICE.type == "cuda")
    state.place(9, 77)
    assert (state.position.tolist(), state.token.tolist()) == ([9], [77])
    with state.kept():
        state.position.fill_(3)
        state.token.fill_(4)
    assert (int(state.position), int(state.token)) == (9, 77)


def test_a_full_context_is_left_for_its_last_place_and_no_other_position_changes():
    state = new_step_state(10, DEVICE)
    state.place(9, 77)
    for position, inside in ((10, 9), (9, 9), (4, 4)):
        state.position.fill_(position)
        state.stay_inside()
        assert (int(state.position), int(state.token)) == (inside, 77)


def test_a_step_that_fails_leaves_the_state_as_it_was():
    state = new_step_state(10, DEVICE)

    def fail():
        with state.kept():
            state.position.fill_(3)
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fail()
    assert int(state.position) == 0


def test_what_does_not_fit_is_refused():
    state = new_step_state(10, DEVICE)
    for position in (-1, 10):
        with pytest.raises(ValueError, match="context of 10"):
            state.place(position, 1)
    with pytest.raises(ValueError, match="0 tokens"):
        new_step_state(0, DEVICE)
    with pytest.raises(ValueError, match="int64"):
        StepState(state.words, state.answers.long())
    with pytest.raises(ValueError, match=r"\[2\]"):
        StepState(state.words[:2], state.answers)
