"""AWQ and GPTQ layouts against their formula, and everything a hostile folder can say."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from kernels.dec.rtn import dequantise
from runtime.checkpoint.packed import PackedCheckpoint
from runtime.errors import DecdecError
from tests.runtime.checkpoint.packed_writer import (
    AWQ_SETTINGS,
    GPTQ_SETTINGS,
    Quantised,
    awq_tensors,
    gptq_tensors,
    write_packed,
)

NAME = "model.layers.0.self_attn.q_proj"
N_OUT, N_IN = 24, 96


def random_linear(group=32, seed=0, n_in=N_IN, low_zero=0):
    g = np.random.default_rng(seed)
    groups = -(-n_in // group)
    scales = g.uniform(0.01, 0.2, (N_OUT, groups)).astype(np.float16)
    return Quantised(
        g.integers(0, 16, (N_OUT, n_in)), g.integers(low_zero, 16, (N_OUT, groups)), scales, group
    )


def read(folder, n_in=N_IN):
    return PackedCheckpoint(folder).linear(NAME + ".weight", (N_OUT, n_in))


def step(q):
    return torch.from_numpy(q.scales[:, np.arange(q.codes.shape[1]) // q.group].astype(np.float32))


def assert_same(linear, q):
    assert linear.codes.tolist() == q.codes.tolist()
    assert linear.zeros.tolist() == q.zeros.tolist()
    assert linear.scales.tolist() == q.scales.tolist()
    error = (dequantise(linear.base()) - q.values()).abs() / step(q)
    assert error.max() < 0.09


def test_awq_values(tmp_path):
    q = random_linear()
    assert_same(read(write_packed(tmp_path, {NAME: awq_tensors(q)}, AWQ_SETTINGS)), q)


def test_an_awq_word_by_hand(tmp_path):
    """Nibbles of a word hold outputs 0, 2, 4, 6, 1, 3, 5, 7; the top nibble 15 makes the word negative."""
    word = torch.full((8, 1), 0xF6543210 - 2**32, dtype=torch.int32)
    tensors = {"qweight": word, "qzeros": word[:1] * 0, "scales": torch.ones(1, 8).half()}
    folder = write_packed(tmp_path, {NAME: tensors}, {**AWQ_SETTINGS, "group_size": -1})
    linear = PackedCheckpoint(folder).linear(NAME + ".weight", (8, 8))
    assert linear.codes[:, 0].tolist() == [0, 4, 1, 5, 2, 6, 3, 15]


@pytest.mark.parametrize("offset", [1, 0])
@pytest.mark.parametrize("index", [True, False])
def test_gptq_values(tmp_path, offset, index):
    q = random_linear()
    settings = GPTQ_SETTINGS if offset else {**GPTQ_SETTINGS, "checkpoint_format": "gptq_v2"}
    assert_same(read(write_packed(tmp_path, {NAME: gptq_tensors(q, offset, index)}, settings)), q)
    assert (q.zeros == 0).any()


def test_symmetric_gptq_zero_points_are_stored_as_sevens(tmp_path):
    q = random_linear()
    q.zeros[:] = 8
    tensors = gptq_tensors(q)
    assert (tensors["qzeros"] == 0x77777777).all()
    assert_same(read(write_packed(tmp_path, {NAME: tensors}, {**GPTQ_SETTINGS, "sym": True})), q)


@pytest.mark.parametrize("group", [32, 64, 128, 256])
def test_groups_become_those_of_a_base(tmp_path, group):
    n_in = 512
    q = random_linear(group, n_in=n_in)
    folder = write_packed(tmp_path, {NAME: awq_tensors(q)}, {**AWQ_SETTINGS, "group_size": group})
    linear = read(folder, n_in)
    assert linear.base().group == min(group, 128)
    assert_same(linear, q)


def test_one_group_for_a_row_that_128_does_not_divide(tmp_path):
    q = random_linear(576, n_in=576)
    linear = read(write_packed(tmp_path, {NAME: gptq_tensors(q)}, {**GPTQ_SETTINGS, "group_size": -1}), 576)
    assert linear.base().group == 128
    assert_same(linear, q)


def test_rows_are_multiplied_before_rounding(tmp_path):
    q, factors = random_linear(), torch.linspace(0.3, 3.0, N_OUT)
    base = read(write_packed(tmp_path, {NAME: awq_tensors(q)}, AWQ_SETTINGS)).base(factors)
    error = (dequantise(base) - q.values() * factors[:, None]).abs() / (step(q) * factors[:, None])
    assert error.max() < 0.09
    assert torch.equal(base.scale, base.scale.bfloat16().float())
    assert torch.equal(base.zero, base.zero.bfloat16().float())


@pytest.mark.parametrize(
    ("file", "settings", "tensors"),
    [
        ("quantize_config.json", {"bits": 4, "group_size": 32, "desc_act": True}, gptq_tensors),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 32, "version": "GEMM"}, awq_tensors),
    ],
)
def test_settings_of_older_tools(tmp_path, file, settings, tensors):
    q = random_linear()
    write_packed(tmp_path, {NAME: tensors(q)}, {}, file="gptq_model-4bit-32g.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (tmp_path / file).write_text(json.dumps(settings))
    assert_same(read(tmp_path), q)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (None, "does not say how"),
        ("awq", "does not say how"),
        ({**AWQ_SETTINGS, "quant_method": "bitsandbytes"}, "quantised by bitsandbytes"),
        ({**AWQ_SETTINGS, "quant_method": None}, "quantised by None"),
        ({**AWQ_SETTINGS, "quant_method": ["awq"]}, "quantised by"),
        ({**AWQ_SETTINGS, "bits": 3}, "3 bits"),
        ({**AWQ_SETTINGS, "bits": "4"}, "4 bits"),
        ({**AWQ_SETTINGS, "bits": True}, "True bits"),
        ({**AWQ_SETTINGS, "group_size": 0}, "groups have 0"),
        ({**AWQ_SETTINGS, "group_size": 1 << 40}, "groups have"),
        ({**AWQ_SETTINGS, "group_size": 32.0}, "groups have 32.0"),
        ({**AWQ_SETTINGS, "version": "gemv"}, "layout gemv"),
        ({**AWQ_SETTINGS, "version": {"a": 1}}, "layout"),
        ({**AWQ_SETTINGS, "zero_point": False}, "no zero points"),
        ({**GPTQ_SETTINGS, "checkpoint_format": "marlin"}, "layout marlin"),
        ({**GPTQ_SETTINGS, "is_marlin_format": True}, "layout marlin"),
    ],
)
def test_settings_that_cannot_be_read(tmp_path, settings, sentence):
    write_packed(tmp_path, {NAME: awq_tensors(random_linear())}, settings)
    with pytest.raises(DecdecError) as caught:
        PackedCheckpoint(tmp_path)
    assert sentence in caught.value.sentence


def changed(folder, part, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = f"{NAME}.{part}"
    value = change(tensors.pop(name))
    save_file(tensors | ({} if value is None else {name: value}), path)


BROKEN = [
    ("qweight", lambda t: None, "no tensor"),
    ("qweight", lambda t: t[:-1].clone(), "shape"),
    ("qweight", lambda t: t.float(), "F32 values"),
    ("qweight", lambda t: t.t().contiguous(), "shape"),
    ("qzeros", lambda t: t[:, :-1].clone(), "shape"),
    ("qzeros", lambda t: t.long(), "I64 values"),
    ("scales", lambda t: t[:1].clone(), "shape"),
    ("scales", lambda t: t.int(), "I32 values"),
    ("scales", lambda t: t * float("nan"), "not numbers"),
    ("scales", lambda t: t + float("inf"), "not numbers"),
]


@pytest.mark.parametrize(("part", "change", "sentence"), BROKEN)
@pytest.mark.parametrize("method", ["awq", "gptq"])
def test_broken_tensors_are_named(tmp_path, method, part, change, sentence):
    q = random_linear()
    tensors, settings = (awq_tensors, AWQ_SETTINGS) if method == "awq" else (gptq_tensors, GPTQ_SETTINGS)
    folder = write_packed(tmp_path, {NAME: tensors(q)}, settings)
    changed(folder, part, change)
    with pytest.raises(DecdecError, match=sentence) as caught:
        read(folder)
    assert f"{NAME}.{part}" in caught.value.sentence


@pytest.mark.parametrize("places", [lambda t: t.flip(0).contiguous(), lambda t: t + 1, lambda t: t * 0 - 5])
def test_act_order_and_false_groups_are_refused(tmp_path, places):
    folder = write_packed(tmp_path, {NAME: gptq_tensors(random_linear())}, GPTQ_SETTINGS)
    changed(folder, "g_idx", places)
    with pytest.raises(DecdecError, match="desc_act"):
        read(folder)


@pytest.mark.parametrize("shape", [(N_OUT + 1, N_IN), (N_OUT, N_IN + 4), (N_OUT, N_IN + 8)])
def test_matrices_that_cannot_be_packed(tmp_path, shape):
    folder = write_packed(tmp_path, {NAME: awq_tensors(random_linear())}, AWQ_SETTINGS)
    with pytest.raises(DecdecError, match="cannot be packed"):
        PackedCheckpoint(folder).linear(NAME + ".weight", shape)


def test_pickled_weights_are_refused(tmp_path):
    folder = write_packed(tmp_path, {NAME: awq_tensors(random_linear())}, AWQ_SETTINGS)
    (folder / "model.safetensors").rename(folder / "model.bin")
    with pytest.raises(DecdecError, match="pickled"):
        PackedCheckpoint(folder)
