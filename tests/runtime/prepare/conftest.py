"""A tiny model folder in Hugging Face layout, and a home of its own for every test."""

import json

import pytest
from safetensors.torch import save_file

from tests.fakes.small_tokenizers import write_byte_level
from tests.runtime.model.tiny import tiny_model

SIZES = {"hidden_size": 128, "intermediate_size": 160, "head_dim": 32, "num_attention_heads": 4}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def source(tmp_path):
    """Folder `tiny`: a Llama of three blocks with a byte-level tokenizer."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    _, checkpoint = tiny_model("llama", spread=0.04, **SIZES, vocab_size=512)
    save_file({n: checkpoint.load(n).contiguous() for n in checkpoint.names()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(checkpoint.config))
    write_byte_level(folder)
    return folder
