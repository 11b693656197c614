"""Fused linears of an INT8-X model with factors for their columns."""

import json

import pytest
import torch

from kernels.int8x import Scales
from runtime.errors import DecdecError
from runtime.int8x import Int8xReader, Int8xWriter
from runtime.model import weights
from runtime.model.build import build_dense
from runtime.model.quantised import build_int8
from runtime.model.spec import ModelSpec
from tests.runtime.model.tiny import tiny_model

TOKENS = torch.randint(0, 97, (9,), generator=torch.Generator().manual_seed(5))


def columns_of(n_in, seed=0):
    return torch.randint(100, 156, (n_in,), generator=torch.Generator().manual_seed(seed)).to(torch.uint8)


def write(folder, checkpoint, columns_for):
    """Linears with column factors from `columns_for(name, n_in)`, everything else per row."""
    linears = set(weights.linear_names(ModelSpec.from_config(checkpoint.config)))
    writer = Int8xWriter(folder, "row")
    for name in checkpoint.names():
        tensor = checkpoint.load(name)
        if name in linears:
            step = torch.tensor([tensor.abs().max().item() / 12])
            writer.add(name, tensor, Scales("aware", step, columns=columns_for(name, tensor.shape[1])))
        elif tensor.dim() == 2:
            writer.add(name, tensor)
        else:
            writer.add_plain(name, tensor)
    config = {**checkpoint.config, "quantization_config": writer.finish()}
    (folder / "config.json").write_text(json.dumps(config))
    return Int8xReader(folder)


class Dequantised:
    """The same values as a plain checkpoint."""

    def __init__(self, reader):
        self.config, self.names, self.shape, self.load = (
            reader.config,
            reader.names,
            reader.shape,
            reader.load,
        )


def test_the_decoder_computes_with_column_factors(tmp_path):
    _, checkpoint = tiny_model("llama", spread=0.04)
    reader = write(tmp_path, checkpoint, lambda name, n_in: columns_of(n_in))
    with torch.inference_mode():
        exact = build_dense(Dequantised(reader)).forward(TOKENS)
        ours = build_int8(reader).forward(TOKENS)
    assert (ours - exact).norm() / exact.norm() < 0.02


def test_parts_of_a_fused_linear_share_their_columns(tmp_path):
    _, checkpoint = tiny_model("llama", spread=0.04)
    reader = write(tmp_path, checkpoint, lambda name, n_in: columns_of(n_in, seed=int("k_proj" in name)))
    with pytest.raises(DecdecError, match="column factors") as error:
        build_int8(reader)
    assert "k_proj" in error.value.sentence
