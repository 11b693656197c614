"""The re-arranged bitmap read back by plain indexing, weight by weight."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.gpu.bitmap_pack import pack_bitmap

BLOCKS = (-2, -1, 1, 2)


def weights(rows, columns, spread, seed=0):
    values = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * spread
    return values.round().clamp(-128, 127).to(torch.int8)


def lane_weights(planes, group, step, lane, codes):
    """32 weights of one lane and step by column; `codes` yields 2-bit codes in stream order."""
    words = [int(word) & 0xFFFFFFFF for word in planes.words[group, step, lane]]
    values = [0] * 32
    for k in range(4):
        for h in range(2):
            for i in range(4):
                octets = [(word >> 8 * i) & 255 for word in words[:3]]
                spare = sum((octet >> 6) << 2 * place for place, octet in enumerate(octets))
                field = octets[k] if k < 3 else spare
                flagged = words[3] >> (4 * (4 * h + i) + k) & 1
                block = BLOCKS[next(codes)] if flagged else 0
                values[8 * k + 2 * i + h] = 8 * block + (field >> 3 * h & 7) - 4
    return values


def stream_of_codes(planes):
    for word in planes.codes.tolist():
        for place in range(16):
            yield (word >> 2 * place) & 3


def dense_part(planes):
    q = torch.zeros(8 * planes.groups, 128 * planes.steps, dtype=torch.int64)
    codes = stream_of_codes(planes)
    for group in range(planes.groups):
        for first in range(0, planes.steps, 4):
            for lane in range(32):
                for step in range(first, min(first + 4, planes.steps)):
                    row, column = 8 * group + lane // 4, 128 * step + 32 * (lane % 4)
                    values = lane_weights(planes, group, step, lane, codes)
                    q[row, column : column + 32] = torch.tensor(values)
    return q


def add_patches(planes, q):
    for group in range(planes.groups):
        for turn in range(planes.rounds[group], planes.rounds[group + 1]):
            for lane, word in enumerate(planes.patches[turn].tolist()):
                for entry in (word & 0xFFFF, word >> 16 & 0xFFFF):
                    block = (entry >> 11) - 32 * (entry >> 15)
                    row, column = 8 * group + lane // 4, 2048 * int(planes.parts[turn]) + (entry & 2047)
                    q[row, column] += 8 * (block + (block > 0))


def unpacked(planes):
    q = dense_part(planes)
    add_patches(planes, q)
    matrix = torch.zeros_like(q)
    matrix[planes.rows.long()] = q
    assert not matrix[planes.n_out :].any()
    assert not matrix[:, planes.n_in :].any()
    return matrix[: planes.n_out, : planes.n_in].to(torch.int8)


@pytest.mark.parametrize(
    ("rows", "columns", "spread"), [(1, 1, 9), (9, 130, 9), (8, 700, 14), (3, 2300, 30), (16, 128, 0)]
)
def test_reads_back(rows, columns, spread):
    q = weights(rows, columns, spread)
    assert torch.equal(unpacked(pack_bitmap(q, torch.ones(1))), q)


def test_every_value_reads_back():
    q = torch.arange(-128, 128).to(torch.int8).reshape(2, 128)
    assert torch.equal(unpacked(pack_bitmap(q, torch.ones(1))), q)


@given(st.integers(1, 20), st.integers(1, 300), st.sampled_from([1, 6, 20, 200]), st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_any_shape_reads_back(rows, columns, spread, seed):
    q = weights(rows, columns, spread, seed)
    assert torch.equal(unpacked(pack_bitmap(q, torch.ones(1))), q)


def test_offsets_count_the_flags_before_each_superstep():
    q = weights(16, 1200, 9)
    planes = pack_bitmap(q, torch.ones(1))
    whole = torch.nn.functional.pad(q, (0, -1200 % 512))[planes.rows.long()].to(torch.int64)
    flagged = ((whole < -4) | (whole > 3)) & (whole >= -20) & (whole <= 19)
    counts = flagged.reshape(2, 8, 3, 512).sum((1, 3)).reshape(-1)
    assert planes.offsets.tolist() == [int(counts[:i].sum()) for i in range(6)]


def test_heaviest_rows_come_first_and_size_counts_everything():
    q = weights(64, 256, 1) * torch.tensor([1, 30]).repeat_interleave(32)[:, None].to(torch.int8)
    planes = pack_bitmap(q, torch.ones(64))
    assert sorted(planes.rows[:32].tolist()) == list(range(32, 64))
    dense, sparse = (
        64 * 256 // 2 + planes.codes.numel() * 4,
        planes.patches.numel() * 4 + planes.parts.numel(),
    )
    assert planes.nbytes == dense + 8 * 4 + sparse + 9 * 4 + 64 * 4 + 64 * 4


@pytest.mark.parametrize(
    ("q", "scale"),
    [
        (torch.zeros(3, 4), torch.ones(1)),
        (torch.zeros(0, 4, dtype=torch.int8), torch.ones(1)),
        (torch.zeros(1, 2**19 + 1, dtype=torch.int8), torch.ones(1)),
        (torch.zeros(3, 4, dtype=torch.int8), torch.ones(2)),
        (torch.zeros(3, 4, dtype=torch.int8), torch.ones(3).half()),
    ],
)
def test_what_cannot_be_packed(q, scale):
    with pytest.raises(ValueError, match=r"int8 matrix|columns|scale"):
        pack_bitmap(q, scale)
