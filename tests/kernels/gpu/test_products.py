"""The fused product against float64, in every form, shape and batch."""

from __future__ import annotations

import pytest
import torch

from kernels.gpu.digits import Extras
from kernels.gpu.fields import ALL_FORMS, Form
from kernels.gpu.packing import pack_planes
from kernels.gpu.prepare import prepare
from kernels.gpu.product import EXTRAS, Epilogue, ProductConfig, product
from tests.kernels.gpu.samples import WORST, spread_rows, with_outliers, worst

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
# The compiled kernels and, on a GPU, the plain twins of their primitives too (they compile for minutes).
TWINS = [True, False] if CUDA else [False]
# Digits keep 30 bits of the largest value; float32 sums of supersteps are far inside this bound.
BOUND = 4e-7
# Every kind, and few enough widths that the interpreter is quick.
SOME = (Form(4), Form(8), Form(3, 3), Form(4, 3, True))


def _error(planes, q, scale, x, **options):
    asm = options.pop("asm")
    y = product(planes, prepare(x.to(DEVICE), asm=asm), asm=asm, **options).cpu()
    exact = (x.double() @ q.double().T) * scale.double()
    return float((y.double() - exact).norm() / exact.norm().clamp_min(1e-30)), y


def _check(q, x, *, asm, scale=None, config=None, bound=BOUND, **packing):
    scale = (
        torch.rand(q.shape[0], generator=torch.Generator().manual_seed(1)) + 0.5 if scale is None else scale
    )
    planes = pack_planes(q.to(DEVICE), scale.to(DEVICE), **packing)
    error, y = _error(planes, q, scale, x, asm=asm, config=config or ProductConfig(2))
    assert y.shape == (x.shape[0], q.shape[0])
    assert error < bound
    return planes


@pytest.mark.parametrize("asm", [CUDA])
@pytest.mark.parametrize("form", ALL_FORMS, ids=str)
def test_every_form_multiplies_exactly_enough(form, asm):
    sigma = 0.4 * 2 ** (form.width - 1) if form.short_bits else 2.0 ** (form.width - 2)
    q = spread_rows(8, 150, sigma, spread=0.1)
    planes = _check(q, with_outliers(1, 150), asm=asm, forms=(form,) if not form.escaped else (form, Form(8)))
    assert planes.forms() == [form]


@pytest.mark.parametrize("asm", TWINS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (8, 8), (3, 100), (9, 576)])
def test_odd_shapes(rows, columns, asm):
    _check(spread_rows(rows, columns, 4.0), with_outliers(1, columns), asm=asm)


@pytest.mark.parametrize("asm", [CUDA])
@pytest.mark.parametrize("name", WORST)
def test_worst_inputs(name, asm):
    _check(worst(name, 8, 560), with_outliers(1, 560), asm=asm, forms=SOME)


@pytest.mark.parametrize("asm", [CUDA])
@pytest.mark.parametrize("batch", [2, 3, 5, 8])
def test_batches(batch, asm):
    q = spread_rows(8, 300, 3.0)
    q[:, 7] = 99
    planes = _check(q, with_outliers(batch, 300), asm=asm, scale=torch.tensor([0.25]), unroll=2)
    assert planes.patch_deltas.any()


@pytest.mark.parametrize("asm", [CUDA])
@pytest.mark.parametrize("unroll", [1, 2, 4])
def test_any_split_is_exact_enough(unroll, asm):
    q = spread_rows(8, 1300, 3.0, spread=0.0)
    x = with_outliers(1, 1300)
    planes = pack_planes(
        q.to(DEVICE), torch.ones(1, device=DEVICE), unroll=unroll, forms=(Form(3, 4), Form(8))
    )
    assert planes.offsets.numel() > 0
    for warps in (1, 2, 4):
        error, y = _error(planes, q, torch.ones(1), x, asm=asm, config=ProductConfig(warps))
        assert error < BOUND
    again = _error(planes, q, torch.ones(1), x, asm=asm, config=ProductConfig(4))[1]
    torch.testing.assert_close(y, again, rtol=0, atol=0)


@pytest.mark.parametrize("asm", [CUDA])
def test_a_zero_point_leaves_positive_inputs_exact(asm):
    """Unsigned codes of weights about zero: most of their sums with such an input is the zero point's."""
    x = torch.rand(1, 3000, generator=torch.Generator().manual_seed(2)) + 1
    _check(spread_rows(8, 3000, 2.0), x, asm=asm, forms=(Form(6),))


@pytest.mark.parametrize("asm", [CUDA])
def test_chunks_of_unlike_sizes(asm):
    x = with_outliers(2, 2600)
    x[0, :1024] *= 1e-6
    x[1, 1024:2048] = 0
    _check(spread_rows(8, 2600, 3.0), x, asm=asm)


@pytest.mark.parametrize("asm", [CUDA])
def test_a_norm_the_residual_stream_and_a_bias(asm):
    q, x = spread_rows(9, 1100, 3.0), with_outliers(1, 1100)
    q[:, 5] = 99
    generator = torch.Generator().manual_seed(7)
    norm, stream, bias = (torch.randn(n, generator=generator) for n in (1100, 9, 9))
    planes = pack_planes(q.to(DEVICE), torch.full((1,), 0.5, device=DEVICE))
    assert planes.patch_deltas.any()
    out = stream[None].clone().to(DEVICE)
    prepared = prepare(x.to(DEVICE), norm=norm.to(DEVICE), eps=0.5, extras=EXTRAS, asm=asm)
    product(planes, prepared, out=out, epilogue=Epilogue(True, bias.to(DEVICE)), asm=asm)
    normed = x.double() / (x.double().square().mean() + 0.5).sqrt() * norm.double()
    exact = normed @ q.double().T * 0.5 + stream.double() + bias.double()
    assert (out.cpu().double() - exact).norm() < BOUND * exact.norm()


def test_bf16_output_is_the_float32_one_rounded():
    q = spread_rows(16, 260, 3.0)
    planes = pack_planes(q.to(DEVICE), torch.tensor([0.1], device=DEVICE))
    prepared = prepare(with_outliers(2, 260).to(DEVICE))
    rounded = product(planes, prepared, dtype=torch.bfloat16)
    torch.testing.assert_close(rounded, product(planes, prepared).bfloat16(), rtol=0, atol=0)


def test_a_vector_that_is_not_finite_gives_no_number():
    planes = pack_planes(spread_rows(8, 130, 3.0).to(DEVICE), torch.ones(1, device=DEVICE))
    for poison in (torch.inf, -torch.inf, torch.nan):
        x = torch.ones(2, 130)
        x[0, 129] = poison
        y = product(planes, prepare(x.to(DEVICE)))
        assert y[0].isnan().all()
        assert y[1].isfinite().all()


def test_a_norm_whose_squares_overflow_gives_no_number_instead_of_nothing():
    planes = pack_planes(spread_rows(8, 130, 3.0).to(DEVICE), torch.ones(1, device=DEVICE))
    x, norm = torch.ones(1, 130, device=DEVICE), torch.ones(130, device=DEVICE)
    x[0, 7] = 1e20
    assert product(planes, prepare(x, norm=norm, extras=EXTRAS)).isnan().all()


def test_inputs_must_be_those_it_takes():
    planes = pack_planes(spread_rows(8, 130, 3.0).to(DEVICE), torch.ones(1, device=DEVICE))
    with pytest.raises(ValueError, match="129 columns"):
        product(planes, prepare(torch.ones(129, device=DEVICE)))
    for options in ({"by_chunk": False}, {"extras": Extras.VALUES}):
        with pytest.raises(ValueError, match="by chunk, with"):
            product(planes, prepare(torch.ones(130, device=DEVICE), **options))


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize(("rows", "columns"), [(2560, 1536), (1536, 4608), (4096, 4096), (1001, 14336)])
@pytest.mark.parametrize("unroll", [1, 4])
@pytest.mark.parametrize("batch", [1, 8])
def test_model_shapes(rows, columns, unroll, batch):
    for config in (ProductConfig(1), ProductConfig(4)):
        _check(
            spread_rows(rows, columns, 4.9),
            with_outliers(batch, columns),
            asm=None,
            unroll=unroll,
            config=config,
        )


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize("name", WORST)
@pytest.mark.parametrize("unroll", [1, 2, 4])
def test_worst_inputs_at_size(name, unroll):
    _check(worst(name, 1024, 4096), with_outliers(1, 4096), asm=None, unroll=unroll, config=ProductConfig(4))
