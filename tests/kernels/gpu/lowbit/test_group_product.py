"""Group products against float64 in every shape, split and batch, with and without a fetch beside."""

from __future__ import annotations

import pytest
import torch

from kernels.dec import GroupCodes, pack_nibbles, quantise_rtn
from kernels.gpu.dec.correction import add_correction
from kernels.gpu.dec.fetch import FetchConfig, ResidualRows, new_fetch
from kernels.gpu.dec.selection import new_selection
from kernels.gpu.lowbit.group_product import group_product
from kernels.gpu.lowbit.groups import pack_groups
from kernels.gpu.lowbit.reference import group_weights
from kernels.gpu.prepare import prepare
from kernels.gpu.product import ProductConfig
from tests.kernels.gpu.samples import with_outliers

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
BOUND = 5e-7


def _base(rows, columns, bits):
    """Codes, scales and zeros without any relation to one another."""
    generator = torch.Generator().manual_seed(rows * columns + bits)
    tables = (rows, -(-columns // 128))
    codes = torch.randint(0, 1 << bits, (rows, columns), generator=generator, dtype=torch.uint8)
    scale = (torch.rand(tables, generator=generator) + 0.2).bfloat16().float()
    return GroupCodes(bits, 128, codes, scale, torch.randn(tables, generator=generator).bfloat16().float())


def _check(base, x, warps=2, **options):
    weights = pack_groups(base).to(DEVICE)
    y = group_product(weights, prepare(x.to(DEVICE)), config=ProductConfig(warps, None), **options).cpu()
    exact = x.double() @ group_weights(base).T
    assert y.shape == exact.shape
    assert (y - exact).norm() < BOUND * exact.norm()
    return y


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (9, 100), (8, 576)])
def test_odd_shapes(rows, columns, bits):
    _check(_base(rows, columns, bits), with_outliers(1, columns))


@pytest.mark.parametrize(("batch", "bits"), [(2, 3), (3, 4), (8, 4)])
def test_batches(batch, bits):
    _check(_base(8, 200, bits), with_outliers(batch, 200))


@pytest.mark.parametrize("warps", [1, 4])
def test_splits_of_the_columns(warps):
    _check(_base(8, 1200, 4), with_outliers(1, 1200), warps)


def test_the_product_is_that_of_the_dequantised_base():
    weight = torch.randn(8, 256, generator=torch.Generator().manual_seed(4))
    base = quantise_rtn(weight, 4)
    y = _check(base, torch.eye(256)[:8])
    assert (y.T - weight[:, :8]).abs().max() < 0.6 * base.scale.max()


def test_a_vector_that_is_not_finite_gives_no_number():
    weights = pack_groups(_base(8, 130, 4)).to(DEVICE)
    x = torch.ones(2, 130)
    x[0, 129] = torch.inf
    y = group_product(weights, prepare(x.to(DEVICE)))
    assert y[0].isnan().all()
    assert y[1].isfinite().all()


@pytest.mark.parametrize(
    ("warps", "k_chunk", "poison"), [(1, 20, 0.0), (2, 20, 0.0), (2, 0, 0.0), (2, 20, torch.nan)]
)
def test_the_first_programs_fetch_the_correction(warps, k_chunk, poison):
    base, columns = _base(24, 300, 4), 300
    codes = torch.randint(-7, 8, (columns, 16), dtype=torch.int8)
    words = pack_nibbles(codes)
    residual = ResidualRows(words.pin_memory() if CUDA else words, torch.full((16,), 0.5, device=DEVICE))
    selection = new_selection(columns, DEVICE, k_chunk)
    fetch = new_fetch(residual, selection, FetchConfig(4, 2))
    x = with_outliers(1, columns) + poison
    prepared = prepare(x.to(DEVICE), selection=selection)
    weights = pack_groups(base).to(DEVICE)
    config = ProductConfig(warps, None)
    plain = group_product(weights, prepared, config=config)
    y = group_product(weights, prepared, fetch=fetch, config=config)
    torch.testing.assert_close(plain, y, rtol=0, atol=0, equal_nan=True)
    if poison == 0:
        channels = selection.channels[: selection.listed(k_chunk)].long().cpu()
        exact = x.double() @ group_weights(base).T
        exact[:, :16] += x[:, channels].double() @ codes[channels].double() * 0.5
        assert (add_correction(y, fetch).cpu() - exact).norm() < BOUND * exact.norm()


def test_bits_per_weight():
    weights = pack_groups(_base(16, 1024, 3))
    assert weights.bits_per_weight == 3.25
    assert pack_groups(_base(16, 1024, 4)).bits_per_weight == 4.25


@pytest.mark.parametrize(("columns", "group"), [(700, 256), (512, 384), (300, 1000)])
def test_wider_groups_are_groups_of_128_with_the_same_scales(columns, group):
    base = quantise_rtn(torch.randn(16, columns), 4, group=group)
    first = torch.arange(0, columns, 128) // group
    spread = GroupCodes(4, 128, base.codes, base.scale[:, first], base.zero[:, first])
    assert torch.equal(group_weights(spread), group_weights(base))
    packed, wanted = pack_groups(base), pack_groups(spread)
    assert torch.equal(packed.words, wanted.words)
    assert torch.equal(packed.tables, wanted.tables)


def test_what_does_not_fit_is_refused():
    base = _base(8, 130, 4)
    weights = pack_groups(base).to(DEVICE)
    with pytest.raises(ValueError, match="129 columns"):
        group_product(weights, prepare(torch.ones(129, device=DEVICE)))
    with pytest.raises(ValueError, match="groups of 128"):
        pack_groups(quantise_rtn(torch.randn(8, 128), 4, group=64))
    with pytest.raises(ValueError, match="exact in bfloat16"):
        pack_groups(GroupCodes(4, 128, base.codes, base.scale + 1e-4, base.zero))
    residual = ResidualRows(torch.zeros(130, 2, dtype=torch.int32), torch.ones(16, device=DEVICE))
    fetch = new_fetch(residual, new_selection(130, DEVICE))
    with pytest.raises(ValueError, match="does not correct"):
        group_product(weights, prepare(torch.ones(130, device=DEVICE)), fetch=fetch)
    with pytest.raises(ValueError, match="one vector at a time"):
        group_product(weights, prepare(torch.ones(2, 130, device=DEVICE)), fetch=fetch)


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize(("rows", "columns"), [(28672, 4096), (4096, 14336), (960, 576), (576, 1536)])
@pytest.mark.parametrize("batch", [1, 2, 4, 8])
def test_model_shapes(rows, columns, bits, batch):
    _check(_base(rows, columns, bits), with_outliers(batch, columns), 4)
