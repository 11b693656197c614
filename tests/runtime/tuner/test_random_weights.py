"""Random weights have the form and the size of the bases they stand for."""

import pytest
import torch

from kernels.dec import quantise_rtn
from kernels.gpu.dec.fetch import FetchConfig
from kernels.gpu.lowbit.groups import DeviceGroups, pack_groups
from kernels.gpu.lowbit.tables import DeviceTables
from kernels.gpu.planes import DevicePlanes
from runtime.layers.base import LINEAR_KINDS
from runtime.tuner.device_block import DeviceBlock, cloned
from runtime.tuner.random_weights import makers

CPU = torch.device("cpu")
TINY = {"qkv": (48, 128), "o": (32, 128), "gate_up": (64, 128), "down": (32, 192)}


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
        assert weights.bits_per_weight == pytest.approx(bits, abs=0.5)


def test_copies_share_no_memory():
    (make,) = makers("squeezellm4", CPU)
    weights = make(8, 128)
    twin = cloned(weights)
    assert torch.equal(twin.words, weights.words)
    assert twin.words.data_ptr() != weights.words.data_ptr()


def test_a_block_takes_turns_and_has_more_base_rows_than_outputs():
    block = DeviceBlock(TINY, makers("awq3.5", CPU), CPU, ratio=2.0, copies=6)
    assert [weights["o"].bits for weights in block.weights] == [3, 3, 4, 4, 3, 3]
    assert block.weights[0]["gate_up"].rows == 128
    assert block.sources["gate_up"].residual.rows == 64
    fetching = {"qkv": FetchConfig(4, 1), "down": FetchConfig(4, 1)}
    corrected = [kind for kind, linear in block.linears(fetching)[0].items() if linear.fetch]
    assert corrected == ["qkv", "down"]
    assert len(block.calls(fetching)) == 6 * len(LINEAR_KINDS)
    assert len(block.calls(fetching, ("o",))) == 6


def test_a_call_of_a_block_corrects_what_its_table_says():
    block = DeviceBlock({"o": (32, 128)}, makers("awq4", CPU), CPU, copies=1)
    block.set_table({"o": 16})
    (call,) = block.calls({"o": FetchConfig(4, 1)}, adding=True)
    (base,) = block.calls({})
    plain = base().clone()
    assert not torch.equal(call(), plain)
    block.set_table({"o": 0})
    assert torch.equal(call(), plain)


def test_a_step_does_the_same_with_and_without_being_ready_to_correct():
    shapes = {"qkv": (16, 128), "o": (16, 128), "gate_up": (256, 128), "down": (16, 128)}
    block = DeviceBlock(shapes, makers("awq4", CPU), CPU, copies=1)
    block.set_table(dict.fromkeys(shapes, 0))
    fetching = dict.fromkeys(shapes, FetchConfig(4, 1))
    plain = block.step_calls({})[0]()
    ready = block.step_calls(fetching)[0]()
    assert torch.allclose(ready, plain, rtol=1e-4, atol=1e-4 * float(plain.abs().max()))
    block.set_table({"gate_up": 32})
    assert not torch.allclose(block.step_calls(fetching)[0](), plain, rtol=1e-3)
