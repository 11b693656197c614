"""The table product against float64 on the weights of the base itself."""

from __future__ import annotations

import pytest
import torch

from kernels.dec import TableCodes, dequantise_table
from kernels.dec.table_steps import in_whole_steps
from kernels.gpu.digits import Extras
from kernels.gpu.lowbit.table_product import table_extras, table_product
from kernels.gpu.lowbit.table_reference import table_weights
from kernels.gpu.lowbit.tables import pack_tables
from kernels.gpu.prepare import prepare
from kernels.gpu.product import Epilogue, ProductConfig
from tests.kernels.gpu.samples import with_outliers

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
# Digits keep 30 bits of the largest value; high and low bytes are added in float32.
BOUND = 6e-7


def _base(bits, rows, columns, *, shift=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed + rows + columns)
    table = torch.randn(rows, 2**bits, generator=generator) * torch.rand(rows, 1, generator=generator) + shift
    codes = torch.randint(0, 2**bits, (rows, columns), generator=generator, dtype=torch.uint8)
    return TableCodes(bits, codes, in_whole_steps(table.bfloat16().float()))


def _product(base, x, **options):
    moved = TableCodes(base.bits, base.codes.to(DEVICE), base.table.to(DEVICE))
    return table_product(pack_tables(moved), prepare(x.to(DEVICE)), **options).cpu()


def _check(base, x, bound=BOUND, **options):
    y = _product(base, x, **options)
    exact = x.double() @ dequantise_table(base).double().T
    assert y.shape == exact.shape
    assert (y.double() - exact).norm() < bound * exact.norm()


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (11, 576)])
def test_shapes(bits, rows, columns):
    _check(_base(bits, rows, columns), with_outliers(1, columns))


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("batch", [2, 7])
def test_batches(bits, batch):
    _check(_base(bits, 8, 130), with_outliers(batch, 130))


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("shift", [5.0, -5.0])
def test_tables_on_one_side_of_zero(bits, shift):
    _check(_base(bits, 8, 130, shift=shift), torch.randn(1, 130, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("bits", [3, 4])
def test_extreme_tables(bits):
    rows = torch.zeros(4, 2**bits)
    rows[1] = 7.0
    rows[2, 0], rows[2, 1], rows[2, -1] = 1e4, -1e4, 0.25
    rows[3] = -(2.0 ** torch.arange(2**bits))
    codes = torch.arange(2**bits, dtype=torch.uint8).repeat(4, 6)
    _check(TableCodes(bits, codes, in_whole_steps(rows)), torch.rand(2, codes.shape[1]) + 0.5)


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("warps", [1, 4])
def test_splits_of_the_columns_and_chunks_of_unlike_sizes(bits, warps):
    base, x = _base(bits, 8, 1300), with_outliers(1, 1300)
    x[0, 1024:] *= 1e-3
    config = ProductConfig(warps)
    _check(base, x, config=config)
    torch.testing.assert_close(
        _product(base, x, config=config), _product(base, x, config=config), rtol=0, atol=0
    )


@pytest.mark.parametrize("bits", [3, 4])
def test_a_norm_the_residual_stream_and_a_bias(bits):
    base, x = _base(bits, 9, 1100, shift=0.5), with_outliers(1, 1100)
    generator = torch.Generator().manual_seed(7)
    norm, stream, bias = (torch.randn(n, generator=generator) for n in (1100, 9, 9))
    tables = pack_tables(TableCodes(bits, base.codes.to(DEVICE), base.table.to(DEVICE)))
    out = stream[None].clone().to(DEVICE)
    prepared = prepare(x.to(DEVICE), norm=norm.to(DEVICE), eps=0.5, extras=table_extras(tables))
    table_product(tables, prepared, out=out, epilogue=Epilogue(True, bias.to(DEVICE)))
    normed = x.double() / (x.double().square().mean() + 0.5).sqrt() * norm.double()
    exact = normed @ dequantise_table(base).double().T + stream.double() + bias.double()
    assert (out.cpu().double() - exact).norm() < BOUND * exact.norm()


def test_tables_that_are_not_in_whole_steps_are_within_half_a_step():
    generator = torch.Generator().manual_seed(3)
    table = torch.randn(16, 16, generator=generator).bfloat16().float()
    base = TableCodes(4, torch.randint(0, 16, (16, 160), generator=generator, dtype=torch.uint8), table)
    packed = pack_tables(base)
    off = (table_weights(packed) - dequantise_table(base).double()).abs()
    assert (off <= packed.step[:, None] / 2).all()
    _check(base, torch.randn(1, 160, generator=generator), bound=3e-5)


@pytest.mark.parametrize("bits", [3, 4])
def test_packing_keeps_every_weight_wherever_it_runs(bits):
    for rows, columns in ((1, 1), (9, 130), (2560, 150)):
        base = _base(bits, rows, columns, shift=0.3)
        moved = TableCodes(bits, base.codes.to(DEVICE), base.table.to(DEVICE))
        assert torch.equal(table_weights(pack_tables(moved)).cpu(), dequantise_table(base).double())


def test_bits_per_weight_counts_codes_and_tables():
    assert pack_tables(_base(4, 64, 4096)).bits_per_weight == pytest.approx(4 + (16 * 16 + 64) / 4096)
    assert pack_tables(_base(3, 64, 4096)).bits_per_weight == pytest.approx(3 + (8 * 16 + 64) / 4096)


def test_bf16_output_is_the_float32_one_rounded():
    base, x = _base(4, 16, 260), with_outliers(2, 260)
    rounded = _product(base, x, dtype=torch.bfloat16)
    torch.testing.assert_close(rounded, _product(base, x).bfloat16(), rtol=0, atol=0)


def test_a_vector_that_is_not_finite_gives_no_number():
    x = torch.ones(2, 130)
    x[0, 129] = torch.inf
    y = _product(_base(4, 8, 130), x)
    assert y[0].isnan().all()
    assert y[1].isfinite().all()


def test_inputs_must_be_those_it_takes():
    with pytest.raises(ValueError, match="129 columns"):
        _product(_base(4, 8, 130), torch.ones(1, 129))
    tables = pack_tables(_base(4, 8, 130)).to(DEVICE)
    for options in ({"by_chunk": False}, {"extras": Extras.NOTHING}):
        with pytest.raises(ValueError, match="by chunk, with"):
            table_product(tables, prepare(torch.ones(130, device=DEVICE), **options))


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize(("rows", "columns"), [(2560, 1536), (1536, 4608), (4096, 4096), (1001, 14336)])
def test_model_shapes(bits, batch, rows, columns):
    for config in (None, ProductConfig(1), ProductConfig(8)):
        _check(_base(bits, rows, columns), with_outliers(batch, columns), config=config)
