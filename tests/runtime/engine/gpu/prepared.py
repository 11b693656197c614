"""A tiny prepared model in a home of its own, and a place to load it at."""

from __future__ import annotations

import json

import torch
from safetensors.torch import save_file

from runtime.engine.gpu.loading import Place
from runtime.prepare.pipeline import prepare
from runtime.progress import JobContext
from runtime.protocol import Prepare
from runtime.tuner.profile import Machine
from tests.fakes.small_tokenizers import write_byte_level
from tests.runtime.engine.gpu.device_models import DEVICE
from tests.runtime.model.tiny import tiny_model

SIZES = {"hidden_size": 128, "intermediate_size": 160, "num_attention_heads": 4, "vocab_size": 512}
MACHINE = Machine("cuda:0", "NVIDIA Tiny", 0, "2", "0.6", "0.1", driver="1", triton="3")
MUCH = 1 << 34


def prepare_tiny(folder, family, bases):
    """A model of three blocks under DECDEC_HOME; gives its name."""
    source = folder / family
    source.mkdir()
    _, checkpoint = tiny_model(family, spread=0.04, **SIZES)
    save_file({n: checkpoint.load(n).contiguous() for n in checkpoint.names()}, source / "model.safetensors")
    (source / "config.json").write_text(json.dumps(checkpoint.config))
    write_byte_level(source)
    return prepare(Prepare(str(source), bases=bases), JobContext.silent()).name


def place(free=MUCH):
    """The device of these tests, with so much memory."""
    return Place(torch.device(DEVICE), "NVIDIA Tiny (cuda:0)", MACHINE, free)
