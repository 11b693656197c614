"""Settings in device memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernels.gpu.sampling.state import SamplerState, new_sampler_state
from tests.kernels.gpu.sampling.choosing import DEVICE, OFF


def test_settings_replace_those_before_and_what_was_seen():
    sampler = new_sampler_state(100, DEVICE)
    assert not sampler.seen.any()
    sampler.set(OFF, seen=[5, 99, 5])
    assert sampler.seen.nonzero().flatten().tolist() == [5, 99]
    before = sampler.settings.clone()
    sampler.set(replace(OFF, seed=6), first=3, seen=iter([7]))
    assert sampler.seen.nonzero().flatten().tolist() == [7]
    assert (sampler.settings != before).sum() == 2


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"top_p": 1.1},
        {"top_p": float("nan")},
        {"min_p": -1.0},
        {"top_k": -1},
        {"repetition_penalty": 0.0},
    ],
)
def test_values_out_of_range_are_refused(change):
    (value,) = change.values()
    with pytest.raises(ValueError, match=str(value)):
        new_sampler_state(10, DEVICE).set(replace(OFF, **change))


def test_ids_and_tensors_that_do_not_fit_are_refused():
    sampler = new_sampler_state(10, DEVICE)
    for ids in ([10], [-1, 3]):
        with pytest.raises(ValueError, match="not within 10"):
            sampler.set(OFF, seen=ids)
    with pytest.raises(ValueError, match="int8"):
        SamplerState(sampler.settings, torch.zeros(10))
    with pytest.raises(ValueError, match="int32"):
        SamplerState(torch.zeros(3), sampler.seen)
