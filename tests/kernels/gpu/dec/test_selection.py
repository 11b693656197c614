"""The selection against its torch form, brute force and the paper's properties."""

from __future__ import annotations

import pytest
import torch

from kernels.dec import exact_mask
from kernels.gpu.dec.reference import select_channels
from kernels.gpu.dec.selection import PADDING, new_selection
from kernels.gpu.prepare import new_prepared, prepare
from tests.kernels.gpu.samples import with_outliers

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def _select(x, k_chunk, **options):
    selection = new_selection(x.numel(), DEVICE, k_chunk)
    moved = {k: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    prepare(x.to(DEVICE), selection=selection, **moved)
    listed = selection.listed(k_chunk) if int(selection.control[1]) else 0
    return selection, selection.channels[:listed].long().cpu(), selection.values[:listed].cpu()


@pytest.mark.parametrize("columns", [1, 100, 576, 1024, 1536, 3000])
@pytest.mark.parametrize("k_chunk", [1, 3, 64, 1024])
def test_the_list_is_that_of_the_torch_form(columns, k_chunk):
    x = with_outliers(1, columns)[0]
    _, channels, values = _select(x, k_chunk)
    expected = select_channels(x, k_chunk)
    torch.testing.assert_close(channels, expected, rtol=0, atol=0)
    torch.testing.assert_close(values, x[expected], rtol=0, atol=0)


@pytest.mark.parametrize("k_chunk", [4, 16, 64])
def test_what_is_chosen_is_nearly_the_largest(k_chunk):
    x = with_outliers(1, 4096, seed=k_chunk)[0]
    channels = select_channels(x, k_chunk)
    best = exact_mask(x[None], k_chunk)[0]
    assert channels.numel() == channels.unique().numel() == int(best.sum())
    per_chunk = torch.bincount(channels // 1024, minlength=4)
    assert per_chunk.tolist() == [k_chunk] * 4
    assert best[channels].float().mean() > 0.75
    assert x[channels].square().sum() > 0.98 * x[best].square().sum()


def test_ties_go_to_the_lowest_channels():
    assert select_channels(torch.ones(1500), 8).tolist() == [*range(8), *range(1024, 1028)]
    assert _select(torch.zeros(1500), 8)[1].tolist() == [*range(8), *range(1024, 1028)]


def test_values_are_those_after_all_factors():
    x, weight = with_outliers(1, 1300)[0], torch.randn(1300, generator=torch.Generator().manual_seed(1))
    factors = torch.rand(1300) + 0.1
    selection, channels, values = _select(x, 16, norm=weight, eps=1e-5, factors=factors)
    scaled = x.double() / (x.double().square().mean() + 1e-5).sqrt() * weight * factors
    torch.testing.assert_close(
        values.double() * selection.common.cpu(), scaled[channels], rtol=1e-6, atol=0, check_dtype=False
    )
    torch.testing.assert_close(channels, select_channels(x * weight * factors, 16), rtol=0, atol=0)


def test_an_order_of_the_base_does_not_change_the_channels():
    x = with_outliers(1, 700)[0]
    order = torch.randperm(700, generator=torch.Generator().manual_seed(2)).int()
    torch.testing.assert_close(_select(x, 16)[1], _select(x, 16, order=order)[1], rtol=0, atol=0)


@pytest.mark.parametrize("poison", [torch.nan, torch.inf, -torch.inf])
def test_a_vector_that_is_not_finite_is_refused_and_counted(poison):
    x = with_outliers(1, 1300)[0]
    selection = new_selection(1300, DEVICE, 8)
    buffers = new_prepared(1, 1300, torch.device(DEVICE))
    bad = x.clone()
    bad[1299] = poison
    for vector, in_effect, refused in ((x, 8, 0), (bad, 0, 1), (bad, 0, 2), (x, 8, 2)):
        prepare(vector.to(DEVICE), selection=selection, out=buffers)
        assert selection.control.tolist() == [8, in_effect, refused]
    assert selection.refused() == 2
    assert select_channels(bad, 8).numel() == 0


def test_k_chunk_may_change_between_uses():
    x = with_outliers(1, 2048)[0].to(DEVICE)
    selection = new_selection(2048, DEVICE)
    for k_chunk in (0, 5, 2):
        selection.set_k_chunk(k_chunk)
        prepare(x, selection=selection)
        assert int(selection.control[1]) == k_chunk
        expected = select_channels(x.cpu(), k_chunk)
        torch.testing.assert_close(selection.channels[: 2 * k_chunk].long().cpu(), expected, rtol=0, atol=0)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="does not fit"):
        prepare(torch.ones(2, 8), selection=new_selection(8, "cpu"))
    with pytest.raises(ValueError, match="does not fit"):
        prepare(torch.ones(9), selection=new_selection(8, "cpu"))
    with pytest.raises(ValueError, match="between 0 and 1024"):
        new_selection(8, "cpu", 1025)
    assert new_selection(8, "cpu").channels.numel() == 8 + PADDING
