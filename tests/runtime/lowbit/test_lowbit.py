"""Block files: what is written comes back in every form, and nothing damaged is believed."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from kernels.dec import TableCodes, dequantise_residual, quantise_rtn
from kernels.int8x import Quantised, Scales, quantise
from kernels.int8x.scales import factor_codes
from runtime import lowbit
from runtime.errors import DecdecError
from runtime.lowbit import scaled_base, with_residual

SHAPES = {"qkv": (40, 192), "o": (48, 48), "gate_up": (64, 48), "down": (20, 1100)}
BITS = {"rtn4": 4, "rtn3": 3}


@pytest.fixture
def weights():
    generator = torch.Generator().manual_seed(0)
    return {kind: torch.randn(shape, generator=generator) * 0.1 for kind, shape in SHAPES.items()}


def descending(n_in):
    return torch.cat([torch.linspace(3, 0, min(1024, n_in - start)) for start in range(0, n_in, 1024)])


def grouped(weight, bits, columns=None):
    scaled = weight if columns is None else weight * columns
    return with_residual(weight, quantise_rtn(scaled, bits), columns, descending(weight.shape[1]))


def tabled(weight, bits):
    table = torch.randn(weight.shape[0], 2**bits).bfloat16().float() * 0.1
    table = table.bfloat16().float()
    codes = (weight[..., None] - table[:, None]).abs().argmin(-1).to(torch.uint8)
    return with_residual(weight, TableCodes(bits, codes, table), None, descending(weight.shape[1]))


def coded(weight):
    columns = factor_codes(torch.rand(weight.shape[1]) + 0.5)
    rows = factor_codes(torch.rand(weight.shape[0]) + 0.5)
    scales = Scales("aware", torch.tensor([0.05]), rows, columns)
    base = Quantised(quantise(weight, scales), scales)
    return with_residual(weight, base, scales.column_scale(), descending(weight.shape[1]))


def block(weights, base="rtn4"):
    return {kind: grouped(weight, BITS[base]) for kind, weight in weights.items()}


def same(a, b):
    assert type(a.base) is type(b.base)
    assert torch.equal(scaled_base(a.base), scaled_base(b.base))
    assert torch.equal(a.correction.codes, b.correction.codes)
    assert torch.equal(a.correction.scale, b.correction.scale)
    assert torch.equal(a.profile, b.profile)
    assert (a.columns is None) == (b.columns is None)
    assert a.columns is None or torch.equal(a.columns, b.columns)


def test_every_form_comes_back_as_it_was(tmp_path, weights):
    made = {
        "qkv": grouped(weights["qkv"], 4, torch.rand(192) + 0.5),
        "o": tabled(weights["o"], 3),
        "gate_up": coded(weights["gate_up"]),
        "down": grouped(weights["down"], 3),
    }
    assert not lowbit.has_block(tmp_path, "awq4", 3)
    lowbit.write_block(tmp_path, "awq4", 3, made)
    assert lowbit.has_block(tmp_path, "awq4", 3)
    for kind, low in lowbit.read_block(tmp_path, "awq4", 3).items():
        same(low, made[kind])


@pytest.mark.parametrize("make", [lambda w: grouped(w, 4), lambda w: grouped(w, 3), coded])
def test_base_and_residual_together_are_nearly_the_weight(weights, make):
    for weight in weights.values():
        low = make(weight)
        columns = torch.ones(weight.shape[1]) if low.columns is None else low.columns
        base, lost = scaled_base(low.base), dequantise_residual(low.correction)
        alone = (base / columns - weight).norm()
        both = ((base + lost) / columns - weight).norm()
        assert both < alone / 6


def test_bytes_on_disk_are_those_of_packed_codes(tmp_path, weights):
    size = lowbit.write_block(tmp_path, "rtn3", 0, block(weights, "rtn3")).stat().st_size
    count = sum(w.numel() for w in weights.values())
    tables = sum(n_out * (-(-n_in // 128) * 4 + 4) + 4 * n_in for n_out, n_in in SHAPES.values())
    assert size < (3 + 4) / 8 * count + tables + 6144


def test_a_weight_that_is_not_finite_is_refused(weights):
    weights["o"][1, 2] = float("inf")
    with pytest.raises(ValueError, match="not finite"):
        with_residual(weights["o"], quantise_rtn(torch.ones(48, 48), 4), None, descending(48))


@pytest.mark.parametrize("columns", [torch.ones(47), torch.zeros(48)])
def test_factors_that_cannot_be_are_refused(weights, columns):
    low = grouped(weights["o"], 4)
    with pytest.raises(ValueError, match="column"):
        lowbit.LowBitWeights(low.base, low.correction, low.profile, columns)


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


def climb(tensors, metadata):
    del metadata["crc32.o.profile"]
    tensors["o.profile"][4] = 99.0


def form(kind, text):
    return lambda tensors, metadata: metadata.update({f"{kind}.form": text})


DAMAGE = [
    (flip, "checksum of tensor o.residual"),
    (climb, "o.profile is not a descending list"),
    (shorten, "down.codes"),
    (drop, "qkv.zero is missing"),
    (retype, "o.scale"),
    (spoil, "gate_up.residual_scale"),
    (lambda t, m: m.update(version="9"), "version"),
    (lambda t, m: m.update(base="rtn3"), "base"),
    (lambda t, m: m.update(block="2"), "block"),
    (form("qkv", "groups 4 0"), "qkv.form"),
    (form("qkv", "groups 5 128"), "qkv.form"),
    (form("qkv", "groups 3 128"), "qkv.codes"),
    (form("o", "table 4"), "o.table is missing"),
    (form("o", "pickle"), "form of o"),
    (form("o", "{}"), "no INT8-X entry"),
    (form("o", "{"), "no INT8-X entry"),
    (lambda t, m: m.update(qkv="40 -1"), "qkv"),
    (lambda t, m: m.update(qkv="9999999999999 4"), "qkv"),
]


@pytest.mark.parametrize(("change", "named"), DAMAGE)
def test_damage_is_named(tmp_path, weights, change, named):
    path = lowbit.write_block(tmp_path, "rtn4", 0, block(weights))
    rewrite(path, change)
    with pytest.raises(DecdecError, match=named) as caught:
        lowbit.read_block(tmp_path, "rtn4", 0)
    assert "block-0000.safetensors" in caught.value.sentence


def test_a_coded_base_must_be_what_its_entry_says(tmp_path, weights):
    linears = block(weights) | {"gate_up": coded(weights["gate_up"])}
    path = lowbit.write_block(tmp_path, "int8x4", 0, linears)

    def lie(tensors, metadata):
        entry = json.loads(metadata["gate_up.form"])
        metadata["gate_up.form"] = json.dumps(entry | {"shape": [64, 47]})

    rewrite(path, lie)
    with pytest.raises(DecdecError, match="gate_up"):
        lowbit.read_block(tmp_path, "int8x4", 0)


def test_a_truncated_or_missing_file_is_one_sentence(tmp_path, weights):
    path = lowbit.write_block(tmp_path, "rtn4", 0, block(weights))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DecdecError, match="block-0000"):
        lowbit.read_block(tmp_path, "rtn4", 0)
    with pytest.raises(DecdecError, match="missing"):
        lowbit.read_block(tmp_path, "rtn4", 1)


def test_equal_blocks_are_equal_files(weights, tmp_path):
    files = [lowbit.write_block(tmp_path / name, "rtn4", 0, block(weights)) for name in "abc"]
    assert len({path.read_bytes() for path in files}) == 1
