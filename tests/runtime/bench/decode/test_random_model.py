"""Models of a tiny shape with random weights: sizes, memory of their own, bytes that a step reads."""

from math import prod

import pytest
import torch

from kernels.gpu.decode import decode_bf16
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.lowbit.groups import DeviceGroups
from kernels.gpu.planes import DevicePlanes
from runtime.bench.decode.random_model import Mode, make_shared, random_device_model
from runtime.bench.decode.sections import MODES
from runtime.bench.decode.step_rows import bytes_read
from runtime.bench.shapes import ModelShape

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TINY = ModelShape("Tiny", 2, 256, 384, 4, 2, 64, 600)
# Decoding takes its time without a GPU.
SMALL = ModelShape("Small", 1, 128, 96, 2, 1, 64, 40)
KINDS = {"bf16": DenseWeights, "awq4": DeviceGroups, "awq3": DeviceGroups}


@pytest.fixture(scope="module")
def shared():
    return make_shared(TINY, DEVICE)


def test_every_mode_that_is_measured_is_made(shared):
    for mode in {mode for modes in MODES.values() for mode in modes}:
        model = random_device_model(TINY, mode, 128, DEVICE, shared)
        assert (model.context, model.spec.context, len(model.blocks)) == (128, 128, 2)
        assert (model.spec.hidden, model.spec.kv_size, model.spec.tied) == (256, 128, False)
        for block in model.blocks:
            for kind, (rows, columns) in TINY.linears.items():
                linear = block.linears[kind]
                assert isinstance(linear.weights, KINDS.get(mode.name, DevicePlanes))
                assert (linear.weights.rows, linear.weights.columns) == (rows, columns)
                assert (linear.residual is not None) == mode.corrected
                assert (linear.inverse_columns is None) == (mode.name == "bf16")
        assert (model.head.weights.rows, model.head.weights.columns) == (600, 256)
        assert model.embedding.codes.shape == (600, 256)
        assert model.ropes[0][0].shape == (128, 32)


@pytest.mark.parametrize("name", ["bf16", "int8x", "awq3"])
def test_blocks_have_memory_of_their_own(name, shared):
    model = random_device_model(TINY, Mode(name), 64, DEVICE, shared)
    first, second = (block.linears["down"].weights for block in model.blocks)
    names = [key for key in type(first).__slots__ if isinstance(getattr(first, key), torch.Tensor)]
    for key in names:
        one, other = getattr(first, key), getattr(second, key)
        assert torch.equal(one, other)
        assert one.numel() == 0 or one.data_ptr() != other.data_ptr()


def test_residual_rows_are_shared_and_their_scales_are_not(shared):
    model = random_device_model(TINY, Mode("awq4"), 64, DEVICE, shared)
    first, second = (block.linears["o"].residual for block in model.blocks)
    assert first.words is second.words is shared.residuals["o"].words
    assert first.scale.data_ptr() != second.scale.data_ptr()


@pytest.mark.parametrize(("mode", "level"), [("int8x", 127), ("awq4", 31)])
def test_the_head_has_a_scale_for_every_row_and_reaches_it(mode, level):
    head = make_shared(SMALL, DEVICE).heads[Mode(mode).head_bits]
    assert head.scale.numel() == SMALL.vocabulary
    largest = (decode_bf16(head).float().abs().amax(1) / head.scale).round()
    assert torch.equal(largest, torch.full_like(largest, level))


def test_a_step_in_bf16_reads_every_weight_once_and_the_cache(shared):
    model = random_device_model(TINY, Mode("bf16"), 64, DEVICE, shared)
    linears = TINY.blocks * sum(prod(size) for size in TINY.linears.values())
    norms = (2 * TINY.blocks + 1) * TINY.hidden
    cached = 2 * TINY.blocks * 2 * 64 * 10
    weights = 2 * (linears + TINY.vocabulary * TINY.hidden) + 4 * norms
    assert bytes_read(model, 10) == weights + 2 * cached
    # A float32 scale for every row of a head.
    scales = 4 * 2 * TINY.blocks * 2 * 10
    assert bytes_read(model, 10, kv_bits=8) == weights + cached + scales


def test_lossless_weights_are_the_paper_s_mixture():
    model = random_device_model(SMALL, Mode("int8x"), 64, DEVICE)
    weights = model.blocks[0].linears["gate_up"].weights
    q = (decode_bf16(weights).float() / weights.scale).round()
    assert float((q.abs() <= 3).float().mean()) == pytest.approx(0.555, abs=0.03)
