"""One token's attention against float64 brute force: every shape, split, window and addition."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.kernels.gpu.attention.cases import (
    CUDA,
    DEVICE,
    TOLERANCE,
    Shape,
    expected,
    fetched,
    new_rows,
    norms,
    stored,
    token,
)


def check(case):
    out = case.attended()
    exact = expected(case)
    assert (out - exact).norm() < TOLERANCE * exact.norm()
    _, key, value = new_rows(case)
    step = {16: 2**-7, 8: 1 / 127}[case.shape.bits]
    cache = case.cache
    for row, rows, scales in (
        (key, cache.keys, cache.key_scales),
        (value, cache.values, cache.value_scales),
    ):
        written = stored(rows, scales)[:, case.here]
        assert ((written - row).abs() <= 0.51 * step * row.abs().amax(-1, keepdim=True)).all()
    assert (case.scratch.arrived == 0).all()


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize(
    ("kv_heads", "group", "head_dim", "rotary_dim"),
    [
        (2, 4, 32, 32),
        (3, 1, 16, 16),
        (1, 3, 64, 64),
        (1, 8, 96, 72),
        (2, 7, 80, 80),
        (1, 16, 18, 6),
        (1, 2, 256, 256),
    ],
)
def test_every_shape_of_heads(kv_heads, group, head_dim, rotary_dim, bits):
    check(token(Shape(kv_heads, group, head_dim, rotary_dim, bits=bits), 41))


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("here", [0, 1, 14, 15, 16, 17, 23, 24, 31, 32, 79])
def test_positions_around_the_ends_of_shares(here, bits):
    check(token(Shape(kv_heads=1, bits=bits), here))


@pytest.mark.parametrize(("here", "splits"), [(70, 1), (190, 2), (63, 2), (64, 2)])
def test_shares_of_several_blocks(here, splits):
    shape = Shape(1, 2, 256, 64, context=200, splits=splits, share=16)
    check(token(shape, here))
    check(token(replace(shape, bits=8), here))


def test_results_too_large_to_be_read_at_once():
    check(token(Shape(1, 16, 256, 256, splits=8), 70))


@pytest.mark.parametrize("window", [1, 2, 9, 30, 80, 1000])
@pytest.mark.parametrize("here", [8, 60])
def test_a_window_hides_what_is_older(here, window):
    case = token(Shape(), here, window=window)
    hidden = max(0, here - window + 1)
    case.cache.keys[:, :hidden] = torch.nan
    case.cache.values[:, :hidden] = torch.nan
    check(case)


@pytest.mark.parametrize("here", [5, 60])
@pytest.mark.parametrize("bits", [16, 8])
def test_bias_correction_and_norms_come_before_rope(here, bits):
    shape = Shape(bits=bits, rotary_dim=24)
    outputs = sum(shape.sizes)
    bias = torch.randn(outputs, generator=torch.Generator().manual_seed(3)).to(DEVICE)
    check(token(shape, here, bias=bias))
    check(token(shape, here, norms=norms(32)))
    check(token(shape, here, bias=bias, correction=fetched(outputs, 8), norms=norms(32), scale=0.4))


@pytest.mark.parametrize("splits", [1, 4])
def test_a_correction_is_added_only_while_one_is_in_effect(splits):
    outputs = sum(Shape().sizes)
    check(token(Shape(), 20, correction=fetched(outputs, 16, splits)))
    check(token(Shape(), 20, correction=fetched(outputs, 0, splits)))
    without = token(Shape(), 20).attended()
    assert (token(Shape(), 20, correction=fetched(outputs, 0, splits)).attended() == without).all()


def test_a_step_after_another_reads_what_that_wrote():
    case = token(Shape(), 30)
    check(case)
    check(replace(case, here=31, qkv=-case.qkv))
    check(replace(case, here=32, qkv=0.5 * case.qkv))


def test_the_same_step_gives_the_same_bits():
    case = token(Shape(group=3, bits=8), 79)
    first = case.attended()
    assert all((case.attended() == first).all() for _ in range(3))


@pytest.mark.parametrize("bits", [16, 8])
def test_how_it_is_split_changes_rounding_only(bits):
    whole = token(Shape(bits=bits, splits=1), 79).attended()
    for splits, share in ((2, 8), (8, 8), (16, 1), (8, 40)):
        shape = Shape(bits=bits, splits=splits, share=share)
        torch.testing.assert_close(token(shape, 79).attended(), whole, rtol=0, atol=TOLERANCE)


def test_large_scores_do_not_overflow():
    check(token(Shape(), 0, scale=1e4))
    case = token(Shape(), 60, scale=50.0)
    out = case.attended()
    # Queries rounded to bf16 decide otherwise between scores as large as these.
    assert out.isfinite().all() if CUDA else (out - expected(case)).abs().max() < 1e-3


@pytest.mark.parametrize("bits", [16, 8])
def test_rows_are_stored_as_the_cache_stores_them(bits):
    shape = Shape(kv_heads=4, group=1, bits=bits)
    case = token(shape, 3)
    case.rope[0].fill_(1.0)
    case.rope[1].fill_(0.0)
    rows = case.qkv[0, shape.q_size :].view(2, 4, 32)
    # Ties between codes, no number but zero, and one that is hardly there.
    rows[:, 1] = torch.arange(32, device=DEVICE) - 4.5
    rows[:, 1, 0] = 127
    rows[:, 2] = 0
    rows[:, 3] *= 1e-33
    case.attended()
    written = [part[:, 3].clone() for part in _parts(case.cache)]
    case.cache.write(3, *rows[:, :, None])
    for mine, part in zip(written, _parts(case.cache), strict=True):
        assert torch.equal(mine, part[:, 3])


def _parts(cache):
    parts = (cache.keys, cache.values, cache.key_scales, cache.value_scales)
    return [part for part in parts if part is not None]


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.skipif(not CUDA, reason="graphs are captured on an NVIDIA GPU")
def test_one_graph_serves_every_position(settled):
    case = token(Shape(8, 4, 128, 128, context=4200, splits=32, share=64), 4100, settled=settled)
    position = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    out = torch.empty(1, case.shape.q_size, device=DEVICE)
    case.call(position, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        case.call(position, out)
    for here in (4100, 0, 99, 128, 1999, 4101, 4101):
        position.fill_(here)
        graph.replay()
        exact = expected(replace(case, here=here))
        assert (out.cpu()[0] - exact).norm() < TOLERANCE * exact.norm()


@pytest.mark.skipif(not CUDA, reason="tensor cores are used on an NVIDIA GPU")
def test_tensor_cores_and_their_twin_agree():
    for bits in (16, 8):
        case = token(Shape(2, 4, 128, 128, context=600, bits=bits, splits=8, share=64), 500)
        twin = replace(case, options={"asm": False}).attended()
        assert (case.attended() - twin).norm() < TOLERANCE * twin.norm()


def test_what_does_not_fit_is_refused():
    case = token(Shape(), 3)
    with pytest.raises(ValueError, match="a product of 100"):
        replace(case, qkv=case.qkv[:, :100]).attended()
    with pytest.raises(ValueError, match="rope tables"):
        replace(case, rope=(case.rope[0][:40], case.rope[1][:40])).attended()
    with pytest.raises(ValueError, match="a bias"):
        replace(case, options={"bias": case.qkv[0].double()}).attended()
    with pytest.raises(ValueError, match="a correction of 8 outputs"):
        replace(case, options={"correction": fetched(8, 1)}).attended()
    with pytest.raises(ValueError, match="a norm of queries"):
        replace(case, options={"norms": norms(16)}).attended()
    with pytest.raises(ValueError, match="scratch"):
        replace(case, scratch=token(Shape(group=8), 3).scratch).attended()


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("part", ["query", "key", "value"])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_in_a_head_shows_in_its_output_and_stays_out_of_others(bits, part, bad):
    case = token(Shape(bits=bits), 9)
    q_size, kv_size, _ = case.shape.sizes
    first = {"query": 0, "key": q_size, "value": q_size + kv_size}[part]
    case.qkv.view(-1)[first + 1] = bad
    out = case.attended().view(case.shape.kv_heads, case.shape.group, -1)
    assert not out[0, 0].isfinite().all()
    assert out[1].isfinite().all()
