import pytest
import torch

from kernels.dec.table_steps import in_whole_steps, table_steps


def _tables(entries, rows=200, shift=0.0):
    generator = torch.Generator().manual_seed(entries)
    scale = torch.exp(3 * torch.randn(rows, 1, generator=generator))
    return ((torch.randn(rows, entries, generator=generator) + shift) * scale).bfloat16().float()


@pytest.mark.parametrize("entries", [8, 16])
@pytest.mark.parametrize("shift", [-9.0, -0.5, 0.0, 0.5, 9.0])
def test_numbers_fit_their_bytes_and_halves(entries, shift):
    fixed = table_steps(_tables(entries, shift=shift))
    lowest, highest = fixed.numbers.amin(), fixed.numbers.amax()
    if entries == 8:
        assert lowest >= -(2**15)
        assert highest < 2**15
        assert not fixed.zero.any()
    else:
        assert lowest >= -(2**14)
        assert highest < 127 * 128
        assert fixed.numbers[:, :8].amax() < 0
        assert fixed.numbers[:, 8:].amin() >= -128
    assert torch.equal(torch.frexp(fixed.step)[0], torch.full_like(fixed.step, 0.5))


@pytest.mark.parametrize("entries", [8, 16])
def test_rounding_is_at_most_half_a_step_and_nothing_for_large_entries(entries):
    table = _tables(entries)
    rounded = in_whole_steps(table)
    step = table_steps(table).step[:, None]
    assert ((rounded - table).abs() <= step / 2).all()
    large = table.abs() >= 128 * step
    assert large.float().mean() > 0.9
    assert torch.equal(rounded[large], table[large])


@pytest.mark.parametrize("entries", [8, 16])
def test_whole_steps_are_exact_in_bf16_and_stay_as_they_are(entries):
    for shift in (-2.0, 0.0, 0.1):
        rounded = in_whole_steps(_tables(entries, shift=shift))
        assert torch.equal(rounded.bfloat16().float(), rounded)
        assert torch.equal(in_whole_steps(rounded), rounded)
        assert torch.equal(table_steps(rounded).table, rounded.sort(1).values)


@pytest.mark.parametrize(("entries", "largest"), [(8, 32_000), (16, 16_000)])
def test_the_step_is_the_smallest_power_of_two_that_reaches_the_largest(entries, largest):
    table = torch.zeros(3, entries)
    table[:, 0] = torch.tensor([largest, largest * 2.0**-20, largest * 1.0078125])
    assert table_steps(table).step.tolist() == [1.0, 2.0**-20, 2.0]


def test_a_table_of_zeros():
    assert not table_steps(torch.zeros(2, 16)).table.any()


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError, match="finite"):
        table_steps(torch.full((1, 8), torch.nan))
    with pytest.raises(ValueError, match="8 or 16"):
        table_steps(torch.zeros(1, 4))
