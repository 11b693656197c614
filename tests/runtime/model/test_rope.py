"""Parameters of the rotary embedding that no model can have are one sentence."""

import math

import pytest
import torch

from runtime.errors import DecdecError
from runtime.model.rope import rope_spec
from runtime.model.spec import ModelSpec

LONG = {"rope_type": "longrope", "original_max_position_embeddings": 16}
CONFIG = {
    "model_type": "phi3", "vocab_size": 64, "hidden_size": 32,
    "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, "factor": 8.0}


@pytest.mark.parametrize(
    "short",
    [[], [1.0], [1.0] * 5, [[1.0]] * 4, ["x"] * 4, [0.0] * 4, [math.nan] * 4, [10**400] * 4, 1.0, None],
)
def test_factors_that_do_not_fit_the_frequencies_are_refused(short):
    config = {**CONFIG, "rope_parameters": {**LONG, "short_factor": short}}
    with pytest.raises(DecdecError, match=r"rotary|configuration"):
        ModelSpec.from_config(config)


@pytest.mark.parametrize(
    "parameters",
    [
        {"rope_type": "linear", "factor": 0.0},
        {"rope_type": "linear", "factor": math.nan},
        {**LLAMA3, "factor": 0.0, "original_max_position_embeddings": 8192},
        {**LLAMA3, "high_freq_factor": 1.0, "original_max_position_embeddings": 2 * math.pi},
        {**LONG, "short_factor": [1.0] * 4, "attention_factor": math.inf},
    ],
)
def test_frequencies_that_are_no_numbers_are_refused(parameters):
    with pytest.raises(DecdecError, match="no number"):
        rope_spec(parameters, head_dim=8, max_positions=16)


def test_frequencies_are_the_definition_s():
    assert ModelSpec.from_config({**CONFIG, "rope_parameters": {**LONG, "short_factor": [1.0] * 4}}).ropes
    spec = rope_spec({**LONG, "short_factor": [1.0, 2.0, 4.0, 8.0]}, head_dim=8, max_positions=64)
    wanted = [10000.0 ** (-2 * at / 8) / 2**at for at in range(4)]
    torch.testing.assert_close(torch.tensor(spec.inv_freq), torch.tensor(wanted))
    assert spec.attention_factor == pytest.approx(math.sqrt(1 + math.log(4) / math.log(16)))
