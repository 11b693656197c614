"""Random weights have the form and the size of the bases they stand for."""

import pytest
import torch

from kernels.dec import quantise_rtn
from kernels.gpu.lowbit.groups import DeviceGroups, pack_groups
from kernels.gpu.lowbit.tables import DeviceTables
from kernels.gpu.planes import DevicePlanes
from runtime.tuner.random_model import cloned
from runtime.tuner.random_weights import makers

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("base", "kinds"),
    [
        ("awq4", [(DeviceGroups, 4)]),
        ("rtn3", [(DeviceGroups, 3)]),
        ("awq3.5", [(DeviceGroups, 3), (DeviceGroups, 3), (DeviceGroups, 4), (DeviceGroups, 4)]),
        ("squeezellm3", [(DeviceTables, 3)]),
    ],
)
def test_bases_by_name(base, kinds):
    made = [make(16, 200) for make in makers(base, CPU)]
    assert [(type(weights), weights.bits) for weights in made] == kinds
    assert all((weights.rows, weights.columns) == (16, 200) for weights in made)


def test_random_groups_are_as_large_as_packed_ones():
    (make,) = makers("awq4", CPU)
    packed = pack_groups(quantise_rtn(torch.randn(24, 640), 4))
    assert make(24, 640).nbytes == packed.nbytes


def test_planes_take_about_the_bits_asked_for():
    for bits in (3.3, 4.3):
        (make,) = makers(f"int8x{bits}", CPU)
        weights = make(256, 512)
        assert isinstance(weights, DevicePlanes)
        assert bits < weights.bits_per_weight < bits + 1.3


def test_copies_share_no_memory():
    (make,) = makers("squeezellm4", CPU)
    weights = make(8, 128)
    twin = cloned(weights)
    assert torch.equal(twin.words, weights.words)
    assert twin.words.data_ptr() != weights.words.data_ptr()
