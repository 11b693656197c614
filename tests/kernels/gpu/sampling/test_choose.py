"""The choice on the device: the largest, seeds, and what it writes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernels.gpu.sampling.choose import choose_token, new_sampler_scratch
from kernels.gpu.sampling.state import new_sampler_state
from kernels.gpu.step_state import NO_ANSWER, new_step_state
from runtime.errors import DecdecError
from runtime.generation.sampler import Sampler
from tests.kernels.gpu.sampling.choosing import CUDA, DEVICE, GREEDY, OFF, choosing, random_logits

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("settings", [GREEDY, replace(OFF, top_p=0.9), OFF])
def test_logits_that_are_not_finite_give_the_largest(settings):
    device = choosing(700, settings)
    for changes, expected in (
        ({5: NAN, 600: 9.0}, 600),
        ({5: NAN, 9: INF, 650: INF}, 9),
        ({9: INF, 3: -INF}, 9),
        ({**dict.fromkeys(range(700), NAN), 650: -7.0, 3: -INF}, 650),
    ):
        logits = torch.zeros(700)
        logits[list(changes)] = torch.tensor(list(changes.values()))
        assert device.pick(logits, 0) == Sampler(settings).pick(logits) == expected


@pytest.mark.parametrize("settings", [GREEDY, replace(OFF, top_p=0.9), replace(OFF, min_p=1.0, top_k=3), OFF])
@pytest.mark.parametrize("empty", [-INF, NAN])
def test_where_no_logit_is_a_number_there_is_no_answer(settings, empty):
    device, logits = choosing(700, settings), torch.full((1, 700), empty, device=DEVICE)
    logits[0, 5] = NAN
    device.state.place(2, 0)
    choose_token(logits, device.state, device.sampler, device.scratch)
    assert int(device.state.answers[3]) == NO_ANSWER
    # The step after it, which is under way already, has a token that it can look up.
    assert (int(device.state.token), int(device.state.position)) == (0, 3)
    with pytest.raises(DecdecError, match="no score of the next token is a number"):
        Sampler(settings).pick(logits[0])


def test_of_equal_scores_the_lower_id_is_greedy_and_zero_has_no_sign():
    device = choosing(900, GREEDY)
    logits = torch.full((900,), -1.0)
    logits[[880, 301, 302]] = 2.0
    assert device.pick(logits, 0) == 301
    logits = torch.full((900,), -1.0)
    logits[17], logits[800] = -0.0, 0.0
    assert device.pick(logits, 0) == 17


@pytest.mark.parametrize("scale", [1e4, 1e30])
def test_very_large_logits_and_very_low_temperatures(scale):
    logits = random_logits(500, scale)
    for settings in (OFF, replace(OFF, temperature=1e-42), replace(OFF, temperature=1e-3, top_p=0.9)):
        assert choosing(500, settings).pick(logits, 0) == int(logits.argmax())


def test_one_seed_repeats_and_others_differ():
    logits = random_logits(300, 0.1)
    device = choosing(300, OFF)

    def run(seed):
        device.sampler.set(replace(OFF, seed=seed))
        return [device.pick(logits, position) for position in range(5)]

    assert run(7) == run(7) != run(8)
    assert run(-3) == run(-3)
    assert run(1 << 80) == run(1 << 80)
    assert run(None) != run(None)
    assert len(set(run(1))) > 3


def test_at_the_end_of_the_context_nothing_moves():
    sampler, scratch = new_sampler_state(300, DEVICE), new_sampler_scratch(300, DEVICE)
    state = new_step_state(2, DEVICE)
    logits = random_logits(300, 1.0)[None].to(DEVICE)
    for position in (1, 2, 2):
        choose_token(logits, state, sampler, scratch)
        assert int(state.position) == position
    assert state.answers.tolist() == [0, int(logits.argmax()), int(logits.argmax())]


def test_shapes_that_differ_are_refused():
    device = choosing(300, OFF)
    with pytest.raises(ValueError, match="299"):
        device.pick(torch.zeros(299), 0)
    with pytest.raises(ValueError, match="300 tokens seen"):
        choose_token(torch.zeros(1, 301), device.state, device.sampler, new_sampler_scratch(301, DEVICE))
    with pytest.raises(ValueError, match="0 tokens"):
        new_sampler_scratch(0, DEVICE)
    with pytest.raises(ValueError, match="do not hold"):
        replace(device.scratch, keys=torch.zeros(5000, dtype=torch.int32))
    with pytest.raises(ValueError, match="do not fit"):
        replace(device.scratch, listed=64)


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_one_captured_graph_serves_all_settings():
    device = choosing(32003, GREEDY)
    logits = random_logits(32003, 3.0)
    expected = {}
    cases = [GREEDY, OFF, replace(OFF, top_p=0.9), replace(OFF, top_k=40), replace(OFF, min_p=0.1)]
    for settings in cases:
        device.sampler.set(settings, seen=[3])
        expected[settings] = [device.pick(logits, position) for position in range(3)]
    on_device, graph = logits.to(DEVICE)[None], torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        choose_token(on_device, device.state, device.sampler, device.scratch)
    for settings in cases:
        device.sampler.set(settings, seen=[3])
        device.state.place(0, 0)
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        assert device.state.answers[1:4].tolist() == expected[settings]
