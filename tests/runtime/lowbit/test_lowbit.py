"""Block files and profiles: what is written comes back, and nothing damaged is believed."""

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from kernels.dec import dequantise, dequantise_residual
from runtime import lowbit
from runtime.errors import DecdecError
from runtime.lowbit.profile import profile_path

SHAPES = {"qkv": (40, 192), "o": (48, 48), "gate_up": (64, 48), "down": (20, 1100)}


@pytest.fixture
def weights():
    generator = torch.Generator().manual_seed(0)
    return {kind: torch.randn(shape, generator=generator) * 0.1 for kind, shape in SHAPES.items()}


@pytest.mark.parametrize("base", ["rtn4", "rtn3"])
def test_a_block_comes_back_as_it_was_quantised(tmp_path, weights, base):
    assert not lowbit.has_block(tmp_path, base, 3)
    lowbit.write_block(tmp_path, base, 3, weights)
    assert lowbit.has_block(tmp_path, base, 3)
    for kind, low in lowbit.read_block(tmp_path, base, 3).items():
        made = lowbit.quantise(weights[kind], int(base[-1]))
        for name in ("codes", "scale", "zero", "residual", "residual_scale"):
            assert torch.equal(getattr(low, name), getattr(made, name)), (kind, name)
        assert (low.bits, low.group_size) == (int(base[-1]), 128)


@pytest.mark.parametrize(("base", "left"), [("rtn4", 0.012), ("rtn3", 0.03)])
def test_base_and_residual_together_are_nearly_the_weight(tmp_path, weights, base, left):
    lowbit.write_block(tmp_path, base, 0, weights)
    for kind, low in lowbit.read_block(tmp_path, base, 0).items():
        whole = dequantise(low.base) + dequantise_residual(low.correction)
        alone = (dequantise(low.base) - weights[kind]).norm() / weights[kind].norm()
        both = (whole - weights[kind]).norm() / weights[kind].norm()
        assert both < left
        assert both < alone / 6


def test_bytes_on_disk_are_those_of_packed_codes(tmp_path, weights):
    size = lowbit.write_block(tmp_path, "rtn3", 0, weights).stat().st_size
    count = sum(w.numel() for w in weights.values())
    tables = sum(n_out * (-(-n_in // 128) * 4 + 4) for n_out, n_in in SHAPES.values())
    assert size < (3 + 4) / 8 * count + tables + 5120


def test_a_weight_that_is_not_finite_is_named(tmp_path, weights):
    weights["o"][1, 2] = float("inf")
    with pytest.raises(DecdecError, match=r"Linear o of block 7 .*finite"):
        lowbit.write_block(tmp_path, "rtn4", 7, weights)
    assert not lowbit.has_block(tmp_path, "rtn4", 7)


def rewrite(path, change):
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    change(tensors, metadata)
    save_file(tensors, path, metadata)


def shorten(tensors, metadata):
    tensors["down.codes"] = tensors["down.codes"][:, :-1].contiguous()


def drop(tensors, metadata):
    del tensors["qkv.zero"]


def retype(tensors, metadata):
    tensors["o.scale"] = tensors["o.scale"].float()


def spoil(tensors, metadata):
    tensors["gate_up.residual_scale"][3] = float("nan")


def flip(tensors, metadata):
    tensors["o.residual"][5, 0] ^= 1 << 9


DAMAGE = [
    (flip, "checksum of tensor o.residual"),
    (shorten, "down.codes"),
    (drop, "qkv.zero is missing"),
    (retype, "o.scale"),
    (spoil, "gate_up.residual_scale"),
    (lambda t, m: m.update(version="9"), "version"),
    (lambda t, m: m.update(base="rtn3"), "base"),
    (lambda t, m: m.update(block="2"), "block"),
    (lambda t, m: m.update(group_size="0"), "group_size"),
    (lambda t, m: m.update(qkv="40 -1"), "qkv"),
    (lambda t, m: m.update(qkv="9999999999999 4"), "qkv"),
]


@pytest.mark.parametrize(("change", "named"), DAMAGE)
def test_damage_is_named(tmp_path, weights, change, named):
    path = lowbit.write_block(tmp_path, "rtn4", 0, weights)
    rewrite(path, change)
    with pytest.raises(DecdecError, match=named) as caught:
        lowbit.read_block(tmp_path, "rtn4", 0)
    assert "block-0000.safetensors" in caught.value.sentence


def test_a_truncated_or_missing_file_is_one_sentence(tmp_path, weights):
    path = lowbit.write_block(tmp_path, "rtn4", 0, weights)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DecdecError, match="block-0000"):
        lowbit.read_block(tmp_path, "rtn4", 0)
    with pytest.raises(DecdecError, match="missing"):
        lowbit.read_block(tmp_path, "rtn4", 1)
    with pytest.raises(DecdecError, match="known are rtn4, rtn3"):
        lowbit.read_block(tmp_path, "rtn5", 0)


def test_profile_comes_back_and_must_descend(tmp_path):
    profile = [
        {kind: torch.linspace(3, 0, n_in).add(index) for kind, (_, n_in) in SHAPES.items()}
        for index in range(2)
    ]
    assert not lowbit.has_profile(tmp_path)
    lowbit.write_profile(tmp_path, profile)
    for read, made in zip(lowbit.read_profile(tmp_path), profile, strict=True):
        assert all(torch.equal(read[kind], made[kind]) for kind in SHAPES)
    rewrite(profile_path(tmp_path), lambda t, m: t["0001.o"].__setitem__(4, 99.0))
    with pytest.raises(DecdecError, match=r"0001\.o"):
        lowbit.read_profile(tmp_path)
