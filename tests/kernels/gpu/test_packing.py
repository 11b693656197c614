"""Packing: the planes hold what they must, sizes count everything, and time has its price."""

from __future__ import annotations

import pytest
import torch

from kernels.gpu.choosing import row_histograms
from kernels.gpu.fields import ALL_FORMS, PIECES, WIDTHS, Form, form_of_key
from kernels.gpu.packing import pack_planes
from kernels.gpu.planes import row_order
from kernels.gpu.reference import group_of_rows, plane_codes
from tests.kernels.gpu.samples import spread_rows, worst

ONE = torch.ones(1)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_bit_of_a_code_has_one_place(width):
    bits = [(p.register, p.source + i) for p in PIECES[width] for i in range(p.count)]
    places = [(p.word, p.target + i) for p in PIECES[width] for i in range(p.count)]
    assert sorted(bits) == [(r, b) for r in range(8) for b in range(width)]
    assert len(set(places)) == 8 * width
    assert all(word < width and bit < 8 for word, bit in places)


@pytest.mark.parametrize("form", ALL_FORMS, ids=str)
def test_forms_survive_their_keys(form):
    assert form_of_key(form.key) == form


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("unroll", [1, 2, 4])
def test_planes_hold_the_clamped_weights(width, unroll):
    q = spread_rows(16, 900, 2.0 ** (width - 2))
    planes = pack_planes(q, ONE, forms=(Form(width),), unroll=unroll)
    for group in range(planes.groups):
        codes = plane_codes(planes, group)[:, :900]
        rows = q[group_of_rows(planes, group)].long()
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        expected = rows.clamp(low, high) - low if width < 8 else rows & 255
        assert torch.equal(codes, expected)


def test_patches_add_up_to_what_the_plane_lacks():
    q = spread_rows(16, 900, 4.0)
    planes = pack_planes(q, ONE, forms=(Form(3),))
    lacking = (q.long() - q.long().clamp(-4, 3))[row_order(planes)]
    found = torch.zeros_like(lacking)
    first = planes.table[:, 2].tolist()
    for group in range(planes.groups):
        for entry in range(first[group], first[group + 1]):
            for lane in range(32):
                found[8 * group + lane // 4, planes.patch_columns[entry, lane]] += planes.patch_deltas[
                    entry, lane
                ]
    assert torch.equal(found, lacking)


def test_rows_are_sorted_and_sizes_complete():
    q = spread_rows(21, 300, 4.0)
    planes = pack_planes(q, torch.ones(21))
    order = row_order(planes)
    assert sorted(order.tolist()) == list(range(24))
    loudness = torch.cat([q.abs().sum(1, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)])[order]
    assert torch.equal(loudness, loudness.sort().values)
    names = ("planes", "table", "offsets", "stream", "patch_columns", "patch_deltas", "permutation", "scale")
    assert planes.nbytes == sum(getattr(planes, n).numel() * getattr(planes, n).element_size() for n in names)
    assert planes.bits_per_weight == pytest.approx(8 * planes.nbytes / (21 * 300))


def test_time_costs_bits():
    q = spread_rows(512, 2048, 4.9, spread=0.55)
    sizes = [pack_planes(q, ONE, escape_cost=c).bits_per_weight for c in (0.0, 2.0, 8.0, 32.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    shares = torch.bincount(q.long().view(-1) + 128).double() / q.numel()
    entropy = -(shares[shares > 0] * shares[shares > 0].log2()).sum().item()
    assert sizes[0] < entropy + 0.15


def test_one_loud_row_does_not_drag_its_group_into_escapes():
    q = worst("one loud row", 8, 1024)
    (form,) = pack_planes(q, ONE).forms()
    assert not form.escaped or (q.abs() > form.dense_highest).float().mean(1).max() <= 0.25


def test_histograms_count_every_value():
    q = worst("uniform", 3, 5000)
    expected = torch.stack([torch.bincount(row.long() + 128, minlength=256) for row in q])
    assert torch.equal(row_histograms(q).long(), expected)


def test_what_cannot_be_packed_is_refused():
    with pytest.raises(ValueError, match="int8 matrix"):
        pack_planes(torch.ones(2, 2), ONE)
    with pytest.raises(ValueError, match="at most 65536"):
        pack_planes(torch.zeros(1, 65_537, dtype=torch.int8), ONE)
    with pytest.raises(ValueError, match="1, 2 or 4 steps"):
        pack_planes(torch.zeros(1, 1, dtype=torch.int8), ONE, unroll=3)
    with pytest.raises(ValueError, match="scales"):
        pack_planes(torch.zeros(3, 1, dtype=torch.int8), torch.ones(2))
