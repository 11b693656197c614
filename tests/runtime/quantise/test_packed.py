"""An existing checkpoint as a base: the factors that AWQ folded away are found again."""

import numpy as np
import pytest
import torch

from kernels.dec.residual import dequantise_residual, quantise_residual
from kernels.dec.rtn import dequantise
from runtime.checkpoint.packed import PackedCheckpoint
from runtime.errors import DecdecError
from runtime.layers.base import LINEAR_KINDS
from runtime.model import weights
from runtime.model.build import build_dense
from runtime.model.spec import ModelSpec
from runtime.quantise.packed import read_packed
from tests.runtime.checkpoint.packed_writer import (
    AWQ_SETTINGS,
    GPTQ_SETTINGS,
    Quantised,
    awq_tensors,
    gptq_tensors,
    round_to_groups,
    write_packed,
)
from tests.runtime.model.tiny import StateCheckpoint, tiny_model

SIZES = {"hidden_size": 128, "intermediate_size": 160, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 32}
SHARED_HEADS = {**HEADS, "num_key_value_heads": 2}
CASES = {
    "llama": ("llama", {**SIZES, **HEADS}),
    "biases": ("llama-tied", {**SIZES, **HEADS}),
    "shared heads": ("qwen2", {**SIZES, **SHARED_HEADS}),
    "fused": ("phi3", {**SIZES, **HEADS}),
    "norm offset": ("gemma3", {**SIZES, **SHARED_HEADS, "num_hidden_layers": 6}),
}
GROUP = 32


class Folder:
    """Folds AWQ's factors into a state dict the way AutoAWQ does, block by block."""

    def __init__(self, checkpoint, seed=0, powers_of_two=False):
        self.state = {name: checkpoint.load(name).clone() for name in checkpoint.names()}
        self.spec = ModelSpec.from_config(checkpoint.config)
        self._generator, self._powers = torch.Generator().manual_seed(seed), powers_of_two
        self.factors = {}
        for block in range(len(self.spec.layers)):
            self._block(block)

    def _draw(self, n):
        s = torch.exp2(torch.randn(n, generator=self._generator))
        return torch.exp2(s.log2().round()) if self._powers else s

    def _block(self, block):
        prefix, spec = f"model.layers.{block}.", self.spec
        after = "pre_feedforward" if spec.post_norms else "post_attention"
        norms = {"qkv": "input_layernorm", "gate_up": f"{after}_layernorm"}
        for kind, norm in norms.items():
            s, name = self._draw(spec.hidden), f"{prefix}{norm}.weight"
            self.state[name] = (self.state[name] + spec.norm_offset) / s - spec.norm_offset
            self._columns(block, kind, s)
        folds = {"o": ("qkv", spec.q_size), "down": ("gate_up", spec.intermediate)}
        for kind, (before, size) in folds.items():
            if kind == "down" or spec.kv_size == spec.q_size:
                s = self._draw(size)
                self._last_rows(weights.part_names(spec, block, before)[-1], s)
                self._columns(block, kind, s)

    def _columns(self, block, kind, s):
        self.factors[block, kind] = s
        for name in weights.part_names(self.spec, block, kind):
            self.state[name] = self.state[name] * s

    def _last_rows(self, name, s):
        for tensor in (name, name.removesuffix("weight") + "bias"):
            if tensor in self.state:
                value = self.state[tensor].clone()
                value[-len(s) :] /= s[:, None] if value.dim() == 2 else s
                self.state[tensor] = value


def saved(folder, state, checkpoint, quantised, pack=awq_tensors, settings=AWQ_SETTINGS):
    linears = {name.removesuffix(".weight"): pack(q) for name, q in quantised.items()}
    plain = {name: t for name, t in state.items() if name not in quantised}
    return PackedCheckpoint(write_packed(folder, linears, settings, plain, checkpoint.config))


def exact_codes(shape, seed):
    """Weights that the layout holds exactly, with scales that are powers of two."""
    g = np.random.default_rng(seed)
    groups = shape[1] // GROUP
    return Quantised(
        g.integers(0, 16, shape),
        np.full((shape[0], groups), 8),
        2.0 ** -g.integers(6, 8, (shape[0], groups)),
        GROUP,
    )


def relative(a, b):
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize("case", CASES)
def test_what_is_held_exactly_comes_back_exactly(tmp_path, case):
    """The packed weights are exact; the reference is what they are once AWQ's factors are taken off."""
    family, changes = CASES[case]
    _, checkpoint = tiny_model(family, **changes)
    spec = ModelSpec.from_config(checkpoint.config)
    names = weights.linear_names(spec)
    held = {name: exact_codes(checkpoint.shape(name), i) for i, name in enumerate(names)}
    for name, s in inverse_folds(checkpoint, powers_of_two=True).items():
        checkpoint._state[name] = held[name].values() * s
    folded = Folder(checkpoint, powers_of_two=True)
    packed = saved(tmp_path, folded.state, checkpoint, held)
    for block in range(len(spec.layers)):
        for kind, (base, columns) in read_packed(packed, checkpoint, block).items():
            weight = weights.fused_weight(checkpoint, spec, block, kind)
            expected = folded.factors.get((block, kind))
            if expected is None:
                assert columns is None
            else:
                torch.testing.assert_close(columns, expected, rtol=1e-5, atol=0)
            scaled = weight if columns is None else weight * columns
            torch.testing.assert_close(dequantise(base), scaled, rtol=1e-5, atol=1e-6)


def inverse_folds(checkpoint, **options):
    """For every linear the factors [n_out, n_in] that take a folded weight back to the reference's."""
    ones = {n: torch.ones(checkpoint.shape(n)) for n in checkpoint.names()}
    folded = Folder(StateCheckpoint(checkpoint.config, ones), **options)
    return {name: 1 / folded.state[name] for name in weights.linear_names(folded.spec)}


@pytest.mark.parametrize("case", CASES)
def test_folding_here_leaves_the_model_as_it_is(case):
    family, changes = CASES[case]
    _, checkpoint = tiny_model(family, **changes)
    folded = StateCheckpoint(checkpoint.config, Folder(checkpoint).state)
    tokens = torch.arange(2, 40)
    expected, found = (build_dense(c).hidden(tokens) for c in (checkpoint, folded))
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-3)
    assert not torch.equal(found, expected)


@pytest.mark.parametrize("case", CASES)
def test_rounded_weights_lose_no_more_than_with_the_true_factors_and_the_residual_brings_them_back(
    tmp_path, case
):
    family, changes = CASES[case]
    _, checkpoint = tiny_model(family, **changes)
    folded = Folder(checkpoint, seed=3)
    held = {n: round_to_groups(folded.state[n], GROUP) for n in weights.linear_names(folded.spec)}
    packed = saved(tmp_path, folded.state, checkpoint, held)
    unfold = inverse_folds(checkpoint, seed=3)
    for kind, (base, columns) in read_packed(packed, checkpoint, 1).items():
        weight, c = weights.fused_weight(checkpoint, folded.spec, 1, kind), 1 if columns is None else columns
        names = weights.part_names(folded.spec, 1, kind)
        lost = relative(torch.cat([held[n].values() * unfold[n] for n in names]), weight)
        assert relative(dequantise(base) / c, weight) < 1.01 * lost
        residual = dequantise_residual(quantise_residual(weight * c - dequantise(base)))
        assert relative((dequantise(base) + residual) / c, weight) < 0.4 * lost


@pytest.mark.parametrize("case", ["llama", "shared heads"])
def test_gptq_has_no_columns(tmp_path, case):
    family, changes = CASES[case]
    _, checkpoint = tiny_model(family, **changes)
    state = {n: checkpoint.load(n) for n in checkpoint.names()}
    spec = ModelSpec.from_config(checkpoint.config)
    held = {n: round_to_groups(state[n], GROUP) for n in weights.linear_names(spec)}
    packed = saved(tmp_path, state, checkpoint, held, gptq_tensors, GPTQ_SETTINGS)
    found = read_packed(packed, checkpoint, 1)
    assert tuple(found) == LINEAR_KINDS
    for kind, (base, columns) in found.items():
        assert columns is None
        stacked = torch.cat([held[n].values() for n in weights.part_names(spec, 1, kind)])
        assert relative(dequantise(base), stacked) < 0.01


def test_a_norm_weight_of_zero_leaves_the_column_to_the_matrix(tmp_path):
    _, checkpoint = tiny_model("llama", **SIZES, **HEADS)
    name = "model.layers.0.input_layernorm.weight"
    checkpoint._state[name][5] = 0.0
    folded = Folder(checkpoint)
    held = {n: round_to_groups(folded.state[n], GROUP) for n in weights.linear_names(folded.spec)}
    _, columns = read_packed(saved(tmp_path, folded.state, checkpoint, held), checkpoint, 0)["qkv"]
    torch.testing.assert_close(columns[5], folded.factors[0, "qkv"][5], rtol=0.05, atol=0)


def test_another_model_is_refused_by_name(tmp_path):
    _, checkpoint = tiny_model("llama", **SIZES, **HEADS)
    state = {n: checkpoint.load(n).clone() for n in checkpoint.names()}
    held = {
        n: round_to_groups(state[n], GROUP)
        for n in weights.linear_names(ModelSpec.from_config(checkpoint.config))
    }
    packed = saved(tmp_path, state, checkpoint, held, gptq_tensors, GPTQ_SETTINGS)
    name = "model.layers.0.mlp.up_proj.weight"
    checkpoint._state[name] = torch.randn_like(state[name])
    with pytest.raises(DecdecError, match=r"mlp\.up_proj\.weight is not a quantised form"):
        read_packed(packed, checkpoint, 0)
