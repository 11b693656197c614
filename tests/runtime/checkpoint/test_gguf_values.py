"""Values of GGUF tensors: every storage type against the gguf package's quantisers or a scalar reference."""

import struct

import gguf
import numpy as np
import pytest
import torch
from gguf.constants import GGML_QUANT_SIZES
from gguf.constants import GGMLQuantizationType as Kind

from runtime.checkpoint import open_checkpoint
from runtime.errors import DecdecError
from tests.runtime.checkpoint.tiny_gguf import write_blocks

EMBEDDING = "model.embed_tokens.weight"
RNG = np.random.default_rng(3)


def half(block: bytes, at: int) -> float:
    return struct.unpack_from("<e", block, at)[0]


def signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def q4_0(b):
    return [half(b, 0) * (((b[2 + i % 16] >> 4 * (i // 16)) & 15) - 8) for i in range(32)]


def q4_1(b):
    return [half(b, 0) * ((b[4 + i % 16] >> 4 * (i // 16)) & 15) + half(b, 2) for i in range(32)]


def fifth(b, at, i):
    return (struct.unpack_from("<I", b, at)[0] >> i & 1) << 4 | (b[at + 4 + i % 16] >> 4 * (i // 16)) & 15


def q5_0(b):
    return [half(b, 0) * (fifth(b, 2, i) - 16) for i in range(32)]


def q5_1(b):
    return [half(b, 0) * fifth(b, 4, i) + half(b, 2) for i in range(32)]


def q8_0(b):
    return [half(b, 0) * signed(v) for v in b[2:]]


def scale_min(packed: bytes, j: int) -> tuple[int, int]:
    """`get_scale_min_k4` of ggml-quants.c."""
    if j < 4:
        return packed[j] & 63, packed[j + 4] & 63
    return (
        packed[j + 4] & 15 | (packed[j - 4] >> 6) << 4,
        packed[j + 4] >> 4 | (packed[j] >> 6) << 4,
    )


def q4_k(b):
    out = []
    for i in range(256):
        scale, low = scale_min(b[4:16], i // 32)
        q = b[16 + i // 64 * 32 + i % 32] >> (4 if i % 64 >= 32 else 0) & 15
        out.append(half(b, 0) * scale * q - half(b, 2) * low)
    return out


def q5_k(b):
    out = []
    for i in range(256):
        scale, low = scale_min(b[4:16], i // 32)
        q = b[48 + i // 64 * 32 + i % 32] >> (4 if i % 64 >= 32 else 0) & 15
        q |= (b[16 + i % 32] >> i // 32 & 1) << 4
        out.append(half(b, 0) * scale * q - half(b, 2) * low)
    return out


def q6_k(b):
    out = []
    for i in range(256):
        part, rest = divmod(i, 128)
        quarter, lane = divmod(rest, 32)
        low = b[part * 64 + (quarter % 2) * 32 + lane] >> (4 if quarter >= 2 else 0) & 15
        high = b[128 + part * 32 + lane] >> 2 * quarter & 3
        out.append(half(b, 208) * signed(b[192 + i // 16]) * ((low | high << 4) - 32))
    return out


SCALAR = {
    Kind.Q4_0: q4_0, Kind.Q4_1: q4_1, Kind.Q5_0: q5_0, Kind.Q5_1: q5_1, Kind.Q8_0: q8_0,
    Kind.Q4_K: q4_k, Kind.Q5_K: q5_k, Kind.Q6_K: q6_k,
}  # fmt: skip
HALVES = {Kind.Q4_K: (0, 2), Kind.Q5_K: (0, 2), Kind.Q6_K: (208,), Kind.Q4_1: (0, 2), Kind.Q5_1: (0, 2)}


def random_blocks(kind: Kind, rows: int, blocks: int) -> np.ndarray:
    """Random bytes with sane half-precision scales; [rows, blocks * bytes of a block]."""
    size = GGML_QUANT_SIZES[kind][1]
    raw = RNG.integers(0, 256, (rows * blocks, size), dtype=np.uint8)
    for at in HALVES.get(kind, (0,)):
        scales = RNG.normal(0, 0.02, rows * blocks).astype(np.float16)
        raw[:, at : at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return raw.reshape(rows, blocks * size)


@pytest.mark.parametrize("kind", SCALAR, ids=lambda kind: kind.name)
def test_blocks_equal_a_scalar_reference(kind, tmp_path):
    raw = random_blocks(kind, 6, 3)
    size = GGML_QUANT_SIZES[kind][1]
    expected = [[v for b in row.reshape(-1, size) for v in SCALAR[kind](b.tobytes())] for row in raw]
    values = open_checkpoint(write_blocks(tmp_path / "m.gguf", raw, kind)).load(EMBEDDING)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values, torch.tensor(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [Kind.Q2_K, Kind.Q3_K, Kind.IQ4_NL, Kind.IQ4_XS], ids=lambda kind: kind.name)
def test_other_blocks_have_the_right_shape_and_order(kind, tmp_path):
    places = {Kind.Q2_K: (80, 82), Kind.Q3_K: (108,)}
    HALVES.update(places)
    raw = random_blocks(kind, 5, 2)
    checkpoint = open_checkpoint(write_blocks(tmp_path / "m.gguf", raw, kind))
    expected = gguf.dequantize(raw, kind)
    assert checkpoint.shape(EMBEDDING) == expected.shape
    assert np.array_equal(checkpoint.load(EMBEDDING).numpy(), expected)


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q5_1, Kind.Q8_0], ids=lambda kind: kind.name)
def test_quantised_weights_come_back_near(kind, tmp_path):
    weights = RNG.normal(0, 1, (7, 64)).astype(np.float32)
    path = write_blocks(tmp_path / "m.gguf", gguf.quants.quantize(weights, kind), kind)
    error = (open_checkpoint(path).load(EMBEDDING) - torch.from_numpy(weights)).abs().max()
    assert 0 < error < {Kind.Q4_0: 0.4, Kind.Q5_1: 0.1, Kind.Q8_0: 0.02}[kind]


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(Kind.F32, torch.float32), (Kind.F16, torch.float16), (Kind.BF16, torch.bfloat16)],
    ids=["F32", "F16", "BF16"],
)
def test_plain_values_keep_their_type(kind, dtype, tmp_path):
    weights = torch.from_numpy(RNG.normal(0, 1, (4, 32)).astype(np.float32)).to(dtype)
    raw = weights.view(torch.uint8).numpy()
    values = open_checkpoint(write_blocks(tmp_path / "m.gguf", raw, kind)).load(EMBEDDING)
    assert values.dtype == dtype
    assert torch.equal(values, weights)


def test_unsupported_type_is_named_on_opening(tmp_path):
    raw = np.zeros((2, GGML_QUANT_SIZES[Kind.TQ1_0][1]), np.uint8)
    with pytest.raises(DecdecError, match=r"token_embd\.weight has the type TQ1_0"):
        open_checkpoint(write_blocks(tmp_path / "m.gguf", raw, Kind.TQ1_0))


def test_values_that_are_no_numbers_are_refused(tmp_path):
    raw = random_blocks(Kind.Q8_0, 2, 1)
    raw[1, :2] = np.array([np.inf], np.float16).view(np.uint8)
    checkpoint = open_checkpoint(write_blocks(tmp_path / "m.gguf", raw, Kind.Q8_0))
    with pytest.raises(DecdecError, match="not numbers"):
        checkpoint.load(EMBEDDING)


def test_file_cut_off_after_opening_is_one_sentence(tmp_path):
    path = write_blocks(tmp_path / "m.gguf", random_blocks(Kind.Q8_0, 64, 1), Kind.Q8_0)
    checkpoint = open_checkpoint(path)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(DecdecError, match="cut off"):
        checkpoint.load(EMBEDDING)
