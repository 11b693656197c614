"""Digits and prologues against float64."""

from __future__ import annotations

import pytest
import torch

from kernels.gpu.dec.selection import new_selection
from kernels.gpu.digits import Extras
from kernels.gpu.prepare import new_prepared, prepare
from kernels.gpu.reference import digit_values
from tests.kernels.gpu.samples import with_outliers

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def _values(x, **options):
    moved = {k: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    prepared = prepare(x.to(DEVICE), **moved)
    return digit_values(prepared).cpu(), prepared


def _close(values, exact, bound=2e-7):
    largest = exact.abs().amax(-1, keepdim=True)
    assert ((values - exact).abs() <= bound * exact.abs() + 2.0**-29 * largest).all()


@pytest.mark.parametrize("columns", [1, 100, 1024, 2500])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_digits_keep_thirty_bits_of_the_largest(columns, dtype):
    x = with_outliers(3, columns).to(dtype)
    values, prepared = _values(x, by_chunk=False)
    assert prepared.batch == 4
    _close(values[:3], x.double(), bound=0)
    assert not values[3].any()
    assert not prepared.digits[-(-columns // 128) :].any()


@pytest.mark.parametrize("by_chunk", [True, False])
def test_gathered_values_and_sums_are_those_of_the_digits(by_chunk):
    values, prepared = _values(with_outliers(2, 1500), by_chunk=by_chunk)
    gathered = prepared.gathered.cpu()[:1500].T.double()
    _close(gathered, values, bound=6e-8)
    octets = prepared.digits.cpu().view(torch.int8).view(-1, 2, 4, 128)
    sums = octets.sum(3, dtype=torch.int32).permute(1, 0, 2)
    found = prepared.digit_sums.cpu()
    if by_chunk:
        assert torch.equal(found.transpose(2, 3).flatten(1, 2), sums)
    else:
        assert torch.equal(found.sum(1), sums.sum(1))


def test_only_the_extras_wanted_are_filled():
    buffers = new_prepared(1, 700, torch.device(DEVICE))
    tensors = (buffers.group_sums, buffers.digit_sums, buffers.gathered)
    for wanted, filled in zip((Extras.GROUP_SUMS, Extras.DIGIT_SUMS, Extras.VALUES), tensors, strict=True):
        for tensor in tensors:
            tensor.fill_(77)
        prepared = prepare(torch.ones(700, device=DEVICE), out=buffers, extras=wanted)
        prepared.require(700, wanted)
        assert [bool((tensor == 77).all()) for tensor in tensors] == [
            tensor is not filled for tensor in tensors
        ]


def test_group_sums_are_those_of_the_digits():
    x = with_outliers(2, 700)
    values, prepared = _values(x, by_chunk=False)
    padded = torch.zeros(2, 768, dtype=torch.float64)
    padded[:, :700] = values
    expected = padded.view(2, 6, 128).sum(2)
    torch.testing.assert_close(prepared.group_sums[:, :6].cpu().double(), expected, rtol=6e-8, atol=0)
    assert not prepared.group_sums[:, 6:].any()


@pytest.mark.parametrize("scale", [0.1, 30.0])
def test_a_gate_far_below_zero_keeps_its_digits(scale):
    x = -scale * torch.rand(1, 300, generator=torch.Generator().manual_seed(5)) - scale
    up = torch.randn(1, 300, generator=torch.Generator().manual_seed(6))
    wide = x.double()
    # float32 arithmetic before the digits: e^60 is off by its argument's rounding.
    _close(_values(x, up=up)[0], wide * wide.sigmoid() * up.double(), bound=5e-6)


def test_prologues():
    x, other = with_outliers(1, 1200), torch.randn(1, 1200, generator=torch.Generator().manual_seed(3))
    factors, order = torch.rand(1200) + 0.5, torch.randperm(1200, dtype=torch.int32)
    wide = x.double()
    normed = wide / (wide.square().mean() + 1e-5).sqrt() * other.double()
    _close(_values(x, norm=other[0], eps=1e-5, by_chunk=False)[0], normed, bound=5e-7)
    gated = wide.sigmoid() * wide * other.double() * factors.double()
    values, _ = _values(x, up=other, factors=factors, order=order, by_chunk=False)
    _close(values, gated[:, order.long()], bound=5e-6)


@pytest.mark.parametrize("columns", [100, 2500])
def test_by_chunk_digits_keep_thirty_bits_of_their_chunks_largest(columns):
    x = with_outliers(2, columns)
    values, prepared = _values(x, by_chunk=True)
    for start in range(0, columns, 1024):
        _close(values[:, start : start + 1024], x.double()[:, start : start + 1024], bound=0)
    assert not prepared.digits[-(-columns // 128) :].any()
    sums = torch.nn.functional.pad(values, (0, -columns % 128)).view(2, -1, 128).sum(2)
    found = prepared.group_sums.cpu().double()
    torch.testing.assert_close(found[:, : sums.shape[1]], sums, rtol=6e-8, atol=0)
    assert not found[:, sums.shape[1] :].any()


def test_by_chunk_a_norm_leaves_its_common_factor_to_the_product():
    x, norm = with_outliers(1, 2100), torch.randn(2100, generator=torch.Generator().manual_seed(4))
    exact = x.double() / (x.double().square().mean() + 1e-5).sqrt() * norm.double()
    values, prepared = _values(x, norm=norm, eps=1e-5, by_chunk=True)
    _close(values, exact, bound=5e-7)
    assert prepared.eps == 1e-5
    again = prepare(x.to(DEVICE), out=prepared)
    assert torch.equal(digit_values(prepare(x.to(DEVICE), by_chunk=True)), digit_values(again))


def test_by_chunk_only_a_chunk_that_is_not_finite_is_no_number():
    x = torch.ones(1, 2048)
    x[0, 1500] = torch.inf
    scales = prepare(x.to(DEVICE), by_chunk=True).x_scale[0]
    assert scales.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("by_chunk", [False, True])
def test_a_norm_whose_squares_overflow_corrects_nothing_and_is_counted(by_chunk):
    x, norm = torch.ones(1, 200, device=DEVICE), torch.ones(200, device=DEVICE)
    x[0, 7] = 1e20
    selection = new_selection(200, torch.device(DEVICE))
    selection.set_k_chunk(64)
    prepare(x, norm=norm, selection=selection, by_chunk=by_chunk)
    assert selection.control[1:3].tolist() == [0, 1]


@pytest.mark.parametrize("k_chunk", [0, 7])
def test_by_chunk_the_selection_is_the_same(k_chunk):
    x, norm = with_outliers(1, 1500), torch.rand(1500) + 0.5
    found = []
    for by_chunk in (False, True):
        selection = new_selection(1500, DEVICE, k_chunk)
        _values(x, norm=norm, selection=selection, by_chunk=by_chunk)
        found.append(selection)
    assert torch.equal(found[0].channels, found[1].channels)
    assert torch.equal(found[0].values, found[1].values)
    assert torch.equal(found[0].common, found[1].common)
    assert torch.equal(found[0].control, found[1].control)


def test_a_row_of_zeros_and_tiny_rows():
    x = torch.zeros(2, 130)
    x[1, 5] = 1e-12
    values, _ = _values(x, by_chunk=False)
    assert not values[0].any()
    torch.testing.assert_close(values[1, 5].item(), 1e-12, rtol=1e-6, atol=0)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="1 to 8"):
        new_prepared(9, 10, torch.device("cpu"))
    with pytest.raises(ValueError, match="normed or gated"):
        prepare(torch.ones(4), norm=torch.ones(4), up=torch.ones(4))
    with pytest.raises(ValueError, match="does not fit"):
        prepare(torch.ones(4), factors=torch.ones(5))
