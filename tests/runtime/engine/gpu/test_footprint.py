"""What is predicted of a model's memory is what its tensors take."""

from dataclasses import fields, is_dataclass, replace

import pytest
import torch

from kernels.dec import TableCodes, quantise_rtn
from kernels.gpu.attention.cache import new_device_cache
from kernels.gpu.attention.scratch import new_attention_scratch
from kernels.gpu.lowbit.groups import pack_groups
from kernels.gpu.lowbit.tables import pack_tables
from kernels.gpu.packing import pack_planes
from kernels.int8x import Quantised, Scales
from runtime.engine.gpu import footprint
from runtime.engine.gpu.footprint import PACKINGS, LinearForm, allocated
from runtime.engine.gpu.step import DecodeStep, new_step_buffers
from runtime.engine.gpu.step_memory import step_bytes
from runtime.int8x.choice import CodecChoice
from runtime.int8x.codecs import code_matrix
from tests.runtime.engine.gpu.device_models import device_model

SHAPES = [(40, 96), (64, 128), (100, 300), (24, 1100)]


def tensors(thing, seen):
    """All tensors on the device that are part of something, once by the memory they have."""
    if isinstance(thing, torch.Tensor):
        seen[thing.data_ptr()] = max(allocated(thing.nbytes), seen.get(thing.data_ptr(), 0))
    elif is_dataclass(thing):
        for field in fields(thing):
            tensors(getattr(thing, field.name), seen)
    elif isinstance(thing, dict):
        for part in thing.values():
            tensors(part, seen)
    elif isinstance(thing, (tuple, list)):
        for part in thing:
            tensors(part, seen)
    return seen


def taken(thing):
    return sum(tensors(thing, {}).values())


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_groups(shape, bits):
    packed = pack_groups(quantise_rtn(torch.randn(shape), bits))
    assert footprint.weight_bytes(*shape, LinearForm("groups", bits)) == taken(packed)
    with_factors = footprint.weight_bytes(*shape, LinearForm("groups", bits, columns=True))
    assert with_factors == taken(packed) + allocated(4 * shape[1])


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_tables(shape, bits):
    codes = torch.randint(0, 2**bits, shape, dtype=torch.uint8)
    packed = pack_tables(TableCodes(bits, codes, torch.randn(shape[0], 2**bits).bfloat16().float()))
    assert footprint.weight_bytes(*shape, LinearForm("table", bits)) == taken(packed)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("step", [0.6, 0.2, 0.05, 0.02])
def test_planes_are_within_three_percent_of_what_their_container_tells(step, packing):
    generator = torch.Generator().manual_seed(1)
    total = predicted = 0
    for shape in ((512, 640), (384, 1536)):
        rows, columns = (torch.exp(0.3 * torch.randn(n, generator=generator)) for n in shape)
        weight = torch.randn(shape, generator=generator) * rows[:, None] * columns
        q = (weight / step).round().clamp(-127, 127).to(torch.int8)
        scale = torch.ones(shape[0])
        entry, _ = code_matrix(Quantised(q, Scales("row", scale)), CodecChoice(), "nearest")
        form = LinearForm("planes", entry.stored_bits / entry.weights)
        total += taken(pack_planes(q, scale, escape_cost=packing))
        predicted += footprint.weight_bytes(*shape, form, packing)
    assert predicted == pytest.approx(total, rel=0.03)


def test_faster_planes_take_more():
    for large in (False, True):
        for stored in (1.5, 3.4, 5.15, 7.2):
            bits = [footprint.planes_bits(stored, packing, large) for packing in PACKINGS]
            assert stored < bits[0] <= bits[1] <= bits[2] < stored + 1


@pytest.mark.parametrize("bits", [16, 8])
def test_cache_norms_and_ropes(bits):
    model = device_model("gemma3", num_hidden_layers=2).model
    spec = model.spec
    cache = new_device_cache(2, spec.n_kv_heads, 64, spec.head_dim, "cpu", bits)
    assert footprint.cache_bytes(spec, 64, bits) == pytest.approx(taken(cache), abs=4 * 512)
    assert footprint.rope_bytes(spec, model.context) == taken(model.ropes)
    norms = [block.norms for block in model.blocks]
    assert footprint.norm_bytes(spec) == taken([*norms, model.norm])


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_buffers_of_a_step(family):
    model = device_model(family, num_hidden_layers=2, vocab_size=3000).model
    spec, buffers = model.spec, new_step_buffers(model)
    DecodeStep(model, new_device_cache(2, 1, 64, 32, "cpu"), buffers, {})
    splits = max(shape[0] for kind in buffers.kinds.values() for shape in kind.partials)
    held = replace(buffers, state=replace(buffers.state, answers=torch.zeros(2, dtype=torch.int32)))
    predicted, found = step_bytes(model.spec, splits), taken(held)
    # Fewer programs share a head here than on a large device.
    small, large = (
        taken(
            new_attention_scratch(
                spec.n_kv_heads, spec.n_heads // spec.n_kv_heads, spec.head_dim, "cpu", splits=n
            )
        )
        for n in (buffers.attention.splits, 32)
    )
    assert predicted == pytest.approx(found - small + large, abs=1024)


def test_impossible_forms_are_refused():
    with pytest.raises(ValueError, match="3 or 4 bits, not 5"):
        LinearForm("groups", 5)
