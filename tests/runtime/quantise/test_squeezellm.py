"""SqueezeLLM against round-to-nearest and plain k-means, and against outputs that really come out."""

import pytest
import torch

from kernels.dec import dequantise, dequantise_table, quantise_rtn
from kernels.dec.kmeans import quantise_table
from runtime.quantise.inputs import InputMoments
from runtime.quantise.method import Place
from runtime.quantise.squeezellm import SqueezeLLM

PLACE = Place(2, "down")


@pytest.fixture(scope="module")
def weight():
    return torch.randn(40, 256, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def inputs():
    generator = torch.Generator().manual_seed(1)
    channels = torch.randn(256, generator=generator).mul(1.5).exp()
    return InputMoments(torch.randn(600, 256, generator=generator) * channels)


def output_error(inputs, lost):
    return float((inputs.inputs @ lost.t()).square().mean())


@pytest.mark.parametrize("bits", [3, 4])
def test_outputs_are_nearer_than_with_groups_or_plain_kmeans(weight, inputs, bits):
    base, columns = SqueezeLLM(bits).quantise(PLACE, weight, inputs)
    assert columns is None
    assert base.bits == bits
    ours = output_error(inputs, weight - dequantise_table(base))
    plain = quantise_table(weight, torch.ones(256), bits)
    assert ours < 0.8 * output_error(inputs, weight - dequantise_table(plain))
    assert ours < 0.6 * output_error(inputs, weight - dequantise(quantise_rtn(weight, bits)))


def test_errors_are_weighed_by_mean_squares(weight, inputs):
    base, _ = SqueezeLLM(3).quantise(PLACE, weight, inputs)
    expected = quantise_table(weight, inputs.inputs.square().mean(0), 3)
    assert torch.equal(base.codes, expected.codes)


def test_fisher_information_is_asked_for_by_place_and_decides(weight, inputs):
    asked = []
    fisher = torch.full((40, 256), 1e-3)
    fisher[:, :8] = 1.0

    def give(place):
        asked.append(place)
        return fisher

    method = SqueezeLLM(3, give)
    lost = weight - dequantise_table(method.quantise(PLACE, weight, inputs)[0])
    assert asked == [PLACE]
    assert float(lost[:, :8].square().mean()) < 1e-2 * float(lost[:, 8:].square().mean())
    assert (method.weighting, SqueezeLLM(3).weighting) == ("fisher", "inputs")


def test_a_damaged_weight_is_refused(weight, inputs):
    damaged = weight.clone()
    damaged[0, 0] = torch.inf
    with pytest.raises(ValueError, match="finite"):
        SqueezeLLM(4).quantise(PLACE, damaged, inputs)
