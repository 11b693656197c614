"""Products of tables and of planes whose first programs fetch: the base unchanged, the correction added."""

from __future__ import annotations

import pytest
import torch

from kernels.dec import TableCodes, pack_nibbles
from kernels.gpu.dec.correction import add_correction
from kernels.gpu.dec.fetch import FetchConfig, ResidualRows, new_fetch
from kernels.gpu.dec.reference import correction, select_channels
from kernels.gpu.dec.selection import new_selection
from kernels.gpu.lowbit.table_product import table_product
from kernels.gpu.lowbit.tables import pack_tables
from kernels.gpu.packing import pack_planes
from kernels.gpu.prepare import prepare
from kernels.gpu.product import ProductConfig, product
from tests.kernels.gpu.samples import spread_rows, with_outliers

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
ROWS, COLUMNS = 16, 140
SIZES = [(ROWS, COLUMNS)] if not CUDA else [(ROWS, COLUMNS), (2568, 4096), (1536, 4608)]


def _planes(rows, columns):
    planes = pack_planes(spread_rows(rows, columns, 3.0).to(DEVICE), torch.ones(1, device=DEVICE))
    return lambda prepared, **options: product(planes, prepared, **options)


def _tables(bits, rows, columns):
    generator = torch.Generator().manual_seed(bits)
    codes = torch.randint(0, 2**bits, (rows, columns), generator=generator, dtype=torch.uint8)
    table = torch.randn(rows, 2**bits, generator=generator).bfloat16().float()
    tables = pack_tables(TableCodes(bits, codes.to(DEVICE), table.to(DEVICE)))
    return lambda prepared, **options: table_product(tables, prepared, **options)


def _multiplier(name, rows, columns):
    return _planes(rows, columns) if name == "planes" else _tables(int(name[-1]), rows, columns)


def _residual(rows, columns):
    generator = torch.Generator().manual_seed(rows)
    codes = torch.randint(-7, 8, (columns, rows), generator=generator).to(torch.int8)
    words = pack_nibbles(codes)
    return ResidualRows(words.pin_memory() if CUDA else words, (torch.rand(rows) + 0.5).to(DEVICE))


@pytest.mark.parametrize("name", ["planes", "tables 3", "tables 4"])
@pytest.mark.parametrize(("rows", "columns"), SIZES)
@pytest.mark.parametrize("k_chunk", [0, 24])
def test_a_fetching_product_corrects_and_leaves_the_base_alone(name, rows, columns, k_chunk):
    multiply, residual = _multiplier(name, rows, columns), _residual(rows, columns)
    x = with_outliers(1, columns)
    selection = new_selection(columns, DEVICE, k_chunk)
    fetch = new_fetch(residual, selection, FetchConfig(rows=4, splits=2))
    prepared = prepare(x.to(DEVICE), selection=selection)
    config = ProductConfig(2)
    base = multiply(prepared, config=config)
    y = multiply(prepared, fetch=fetch, config=config)
    assert torch.equal(y, base)
    corrected = add_correction(y.clone(), fetch).cpu().double() - base.cpu().double()
    channels = select_channels(x[0], k_chunk)
    exact = correction(residual.words, residual.scale.cpu(), channels, x[0, channels])
    assert (corrected[0] - exact).norm() <= 1e-6 * (exact.norm() + base.double().norm())
    assert bool(exact.any()) == (k_chunk > 0)


@pytest.mark.parametrize("name", ["planes", "tables 4"])
def test_several_vectors_are_not_corrected(name):
    fetch = new_fetch(_residual(8, 130), new_selection(130, DEVICE))
    with pytest.raises(ValueError, match="one vector"):
        _multiplier(name, 8, 130)(prepare(torch.ones(2, 130, device=DEVICE)), fetch=fetch)
