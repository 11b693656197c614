"""Tiny INT8-X models of every kind of scales, exported."""

import json

import pytest
import torch

from kernels.int8x import Scales
from runtime.export import jobs
from runtime.int8x import Int8xReader, Int8xWriter
from runtime.layers.base import LINEAR_KINDS
from runtime.model.spec import ModelSpec
from runtime.model.weights import part_names
from runtime.progress import JobContext
from tests.fakes.small_tokenizers import write_byte_level
from tests.runtime.model.tiny import tiny_model

QUIET = JobContext.silent()


def codes(size, seed):
    """Codes of factors between 1/3 and 3."""
    return torch.randint(102, 154, (size,), generator=torch.Generator().manual_seed(seed)).to(torch.uint8)


def aware_scales(checkpoint, seed=0):
    """Scales with factors for rows and columns by linear; linears of one input share their columns."""
    spec, found = ModelSpec.from_config(checkpoint.config), {}
    for block in range(len(spec.layers)):
        for number, kind in enumerate(LINEAR_KINDS):
            for name in part_names(spec, block, kind):
                weight = checkpoint.load(name)
                rows = codes(weight.shape[0], seed + len(found))
                columns = codes(weight.shape[1], seed + 1000 * block + number)
                step = torch.tensor([weight.abs().max().item() / 12])
                found[name] = Scales("aware", step, rows, columns)
    return found


def write_int8x(folder, checkpoint, granularity, scales=None):
    """The checkpoint as an INT8-X model with a tokenizer; "aware": linears with factors, the rest per row."""
    aware = granularity == "aware"
    scales = scales or (aware_scales(checkpoint) if aware else {})
    writer = Int8xWriter(folder, "row" if aware else granularity)
    for name in checkpoint.names():
        tensor = checkpoint.load(name)
        if tensor.dim() == 2:
            writer.add(name, tensor, scales.get(name))
        else:
            writer.add_plain(name, tensor)
    config = {**checkpoint.config, "quantization_config": writer.finish()}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text('{"eos_token_id": 2}')
    write_byte_level(folder)
    return folder


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))


@pytest.fixture
def exported(tmp_path):
    """Make a tiny model, export it; its reader, the folder and what the job said."""

    def make(family, granularity="aware", **changes):
        _, checkpoint = tiny_model(family, spread=0.05, **changes)
        source = write_int8x(tmp_path / "source", checkpoint, granularity)
        folder = tmp_path / "exported"
        result = jobs.export({"model": str(source), "destination": str(folder)}, QUIET)
        return Int8xReader(source), folder, result

    return make


@pytest.fixture
def model(tmp_path):
    """One small INT8-X model with column factors."""
    _, checkpoint = tiny_model("llama", spread=0.05, num_hidden_layers=2)
    return write_int8x(tmp_path / "source", checkpoint, "aware")
