"""Shapes that contradict the configuration are refused before anything is read into an engine."""

import json

import pytest

from runtime import lowbit
from runtime.engine.shapes import check_base, check_int8x
from runtime.errors import DecdecError
from runtime.int8x import Int8xReader
from runtime.model.spec import ModelSpec
from tests.fuzz.int8x_folders import write
from tests.fuzz.targets import int8x
from tests.fuzz.targets import lowbit as low_targets


@pytest.fixture
def reader(tmp_path):
    (tmp_path / "model").mkdir()
    write(int8x.seeds(tmp_path / "made")[3], tmp_path / "model")
    return Int8xReader(tmp_path / "model")


def spec(**changes):
    return ModelSpec.from_config({**int8x.CONFIG, **changes})


def test_a_model_of_its_own_configuration_passes(reader):
    check_int8x(reader, spec())


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"vocab_size": 41}, "embed_tokens.weight was refused: its shape [40, 32] is not [41, 32]"),
        ({"hidden_size": 33}, "embed_tokens.weight"),
        (
            {"num_attention_heads": 3},
            "q_proj.weight was refused: with what belongs to it it has 64 rows instead",
        ),
        ({"num_key_value_heads": 2}, "has 64 rows instead of 96"),
        ({"intermediate_size": 47}, "gate_proj.weight was refused: with what belongs to it it has 96 rows"),
        ({"num_hidden_layers": 2}, "holds no tensor model.layers.1"),
        ({"tie_word_embeddings": False}, "holds no tensor lm_head.weight"),
    ],
)
def test_what_the_configuration_does_not_ask_for_is_named(reader, changes, sentence):
    with pytest.raises(DecdecError) as caught:
        check_int8x(reader, spec(**changes))
    assert sentence in caught.value.sentence


def test_a_base_of_other_shapes_is_named(tmp_path):
    data = low_targets.seeds(tmp_path)[0]
    path = lowbit.block_path(tmp_path, low_targets.BASE, 0)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    config = {**int8x.CONFIG, "hidden_size": 32, "intermediate_size": 32, "num_key_value_heads": 1}
    with pytest.raises(DecdecError, match=r"qkv has the shape \[48, 32\] instead of \[64, 32\]"):
        check_base(tmp_path, low_targets.BASE, ModelSpec.from_config(json.loads(json.dumps(config))))
