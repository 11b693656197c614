"""The post norm against float64."""

import pytest
import torch

from kernels.gpu.post_norm import add_normed

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("columns", [1, 96, 640])
def test_the_normed_output_joins_the_stream(columns):
    torch.manual_seed(columns)
    stream, x = torch.randn(2, 1, columns, device=DEVICE)
    norm = torch.rand(columns, device=DEVICE)
    exact = stream.double() + x.double() / (x.double().square().mean() + 0.01).sqrt() * norm.double()
    assert add_normed(stream, x, norm, 0.01) is stream
    torch.testing.assert_close(stream.double(), exact, rtol=1e-6, atol=1e-6)


def test_sizes_must_agree():
    with pytest.raises(ValueError, match="do not fit"):
        add_normed(torch.zeros(1, 4), torch.zeros(1, 5), torch.zeros(4), 1e-6)


def test_squares_that_overflow_give_no_number_instead_of_nothing():
    stream, x = torch.zeros(1, 4, device=DEVICE), torch.full((1, 4), 1e20, device=DEVICE)
    assert add_normed(stream, x, torch.ones(4, device=DEVICE), 1e-6).isnan().all()
