"""Residual codes against a finer brute-force search, and their packing bit by bit."""

import pytest
import torch

from kernels.dec import dequantise, dequantise_residual, quantise_residual, quantise_rtn
from kernels.dec import pack_nibbles as pack
from kernels.dec import unpack_nibbles as unpack


def lost(n_out: int = 24, n_in: int = 300, bits: int = 3) -> torch.Tensor:
    weight = torch.randn(n_out, n_in, generator=torch.Generator().manual_seed(1))
    return weight - dequantise(quantise_rtn(weight, bits))


def test_scale_is_near_the_best_of_a_finer_search():
    residual = lost()
    coded = quantise_residual(residual)
    error = (dequantise_residual(coded) - residual).square().sum(1)
    for row, own in zip(residual, error, strict=True):
        candidates = torch.linspace(0.05, 1.2, 400)[:, None] * row.abs().max() / 7
        best = ((row / candidates).round().clamp(-7, 7) * candidates - row).square().sum(1).min()
        assert own <= 1.02 * best


@pytest.mark.parametrize(("bits", "level", "slack"), [(2, 1, 1.02), (4, 7, 1.02), (8, 127, 1.3)])
def test_other_widths_are_near_the_best_of_a_finer_search(bits, level, slack):
    residual = lost()
    coded = quantise_residual(residual, bits)
    assert coded.codes.abs().amax() == level
    error = (dequantise_residual(coded) - residual).square().sum(1)
    for row, own in zip(residual, error, strict=True):
        candidates = torch.linspace(0.02, 1.2, 600)[:, None] * row.abs().max() / level
        best = ((row / candidates).round().clamp(-level, level) * candidates - row).square().sum(1).min()
        assert own <= slack * best


def test_a_width_without_a_grid_is_refused():
    with pytest.raises(ValueError, match="3"):
        quantise_residual(lost(), 3)


def test_an_outlier_does_not_set_the_scale():
    residual = torch.rand(1, 4096, generator=torch.Generator().manual_seed(2)) - 0.5
    residual[0, 7] = 1.0
    coded = quantise_residual(residual)
    assert coded.scale[0] < 0.75 * residual.abs().max() / 7
    assert coded.codes[7, 0] == 7


def test_many_row_blocks_give_what_single_rows_give():
    residual = lost(n_out=600, n_in=1100)
    whole = quantise_residual(residual)
    for row in (0, 237, 238, 599):
        single = quantise_residual(residual[row : row + 1])
        assert torch.equal(single.codes[:, 0], whole.codes[:, row])
        assert single.scale[0] == whole.scale[row]


def test_a_zero_row_stays_zero():
    residual = lost()
    residual[3] = 0
    coded = quantise_residual(residual)
    assert not coded.codes[:, 3].any()
    assert torch.isfinite(coded.scale).all()


def test_layout_is_one_run_per_input_and_eight_nibbles_a_word():
    codes = torch.zeros(3, 10, dtype=torch.int8)
    codes[1, 0], codes[1, 5], codes[1, 9] = 3, -2, -7
    packed = pack(codes)
    assert packed.dtype == torch.int32
    assert packed.shape == (3, 2)
    assert [word & 0xFFFFFFFF for word in packed[1].tolist()] == [0x00E00003, 0x00000090]
    assert not packed[0].any()
    assert not packed[2].any()


@pytest.mark.parametrize("n_out", [1, 7, 8, 9, 64])
def test_pack_and_unpack_are_inverse(n_out):
    codes = torch.randint(-7, 8, (5, n_out), dtype=torch.int8, generator=torch.Generator().manual_seed(n_out))
    assert torch.equal(unpack(pack(codes), n_out), codes)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="outside"):
        pack(torch.tensor([[-8]], dtype=torch.int8))
    with pytest.raises(ValueError, match="cannot hold"):
        unpack(torch.zeros(2, 2, dtype=torch.int32), 17)
