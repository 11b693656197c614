"""The measuring functions that need no GPU."""

import pytest
import torch

from kernels.int8x import entropy_bits, histogram
from runtime.bench import bitmap_products


def test_synthetic_weights_have_the_entropy_they_claim():
    q = bitmap_products.synthetic_weights(2048, 512)
    assert entropy_bits(histogram(q)) == pytest.approx(4.62, abs=0.05)
    assert torch.equal(q, bitmap_products.synthetic_weights(2048, 512))
    assert not torch.equal(q, bitmap_products.synthetic_weights(2048, 512, seed=1))


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU has more decoders to time")
def test_ladder_without_a_gpu():
    figures = bitmap_products.decoder_ladder(bitmap_products.synthetic_weights(64, 1024), repeats=2)
    assert list(figures) == ["v7 Python bit loop", "compiled, CPU", "v8 vectorised torch"]
    assert figures["v7 Python bit loop"] > 10 * figures["compiled, CPU"] > 0
    assert figures["v8 vectorised torch"] > 0
