from __future__ import annotations

import json

import pytest

from runtime.generation.settings import FALLBACK, SamplingSettings, model_defaults, resolve
from runtime.protocol import Sampling


def defaults(tmp_path, content):
    (tmp_path / "generation_config.json").write_text(json.dumps(content))
    return model_defaults(tmp_path)


def test_asked_before_model_before_fallback(tmp_path):
    model = defaults(tmp_path, {"temperature": 0.2, "top_p": 0.8, "top_k": 20, "eos_token_id": 2})
    found = resolve(Sampling(top_k=0, seed=5), model)
    assert found == SamplingSettings(0.2, 0.8, 0, 0.0, 1.0, 5)


@pytest.mark.parametrize("content", [{"do_sample": True}, {"top_k": 50}, {"temperature": 1.0}])
def test_silence_of_a_sampled_model_means_transformers_defaults(tmp_path, content):
    assert resolve(Sampling(), defaults(tmp_path, content)) == SamplingSettings(1.0, 1.0, 50)


def test_a_model_that_recommends_nothing_is_answered_for_cautiously(tmp_path):
    found = resolve(Sampling(), defaults(tmp_path, {"eos_token_id": 2}))
    assert found == FALLBACK
    assert 0 < found.temperature < 0.5
    assert found.repetition_penalty > 1


def test_temperature_zero_is_greedy_and_nothing_else(tmp_path):
    found = resolve(Sampling(temperature=0.0), defaults(tmp_path, {"eos_token_id": 2}))
    assert (found.temperature, found.repetition_penalty) == (0.0, 1.0)


def test_a_model_that_does_not_sample_is_greedy_unless_asked(tmp_path):
    model = defaults(tmp_path, {"do_sample": False, "temperature": 0.9})
    assert resolve(Sampling(), model).temperature == 0.0
    assert resolve(Sampling(temperature=0.5), model).temperature == 0.5


@pytest.mark.parametrize("value", ["hot", -1, 1e9, [1], None, True])
def test_nonsense_is_ignored(tmp_path, value):
    assert resolve(Sampling(), defaults(tmp_path, {"repetition_penalty": value})) == FALLBACK


def test_no_file(tmp_path):
    assert resolve(Sampling(), model_defaults(tmp_path)) == FALLBACK
