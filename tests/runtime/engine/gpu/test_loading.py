"""From a prepared model to a GPU's: the weights that were stored, as much of them as memory takes."""

from dataclasses import fields, is_dataclass, replace
from types import SimpleNamespace

import pytest
import torch

from kernels.dec import GroupCodes, TableCodes, pack_nibbles, quantise_rtn
from kernels.gpu.host_memory import PinError, allocate
from kernels.gpu.lowbit.groups import pack_groups
from kernels.gpu.lowbit.tables import pack_tables
from kernels.gpu.packing import pack_planes
from runtime import lowbit
from runtime.engine.cpu_loading import load_cpu_engine
from runtime.engine.gpu import loading, loading_model
from runtime.engine.gpu.contents import expected_contents, stored_contents
from runtime.engine.gpu.footprint import SMALLEST
from runtime.engine.gpu.head import coarser
from runtime.engine.gpu.loading import load_at
from runtime.engine.gpu.loading_model import ModelLoader
from runtime.engine.gpu.memory_plan import Setting, lay_out
from runtime.engine.opened import open_model
from runtime.errors import DecdecError, Interrupted
from runtime.layers.base import LINEAR_KINDS
from runtime.lowbit import with_residual
from runtime.model.quantised import int8_block
from runtime.model.weights import block_norms, fused_bias, linear_shape
from runtime.progress import JobContext
from runtime.protocol import Load
from runtime.protocol.events import KChunk, SlowdownPoint
from runtime.tuner.measurer import Launch
from runtime.tuner.profile import Profile, write_profile
from tests.runtime.engine.gpu.device_models import DEVICE
from tests.runtime.engine.gpu.prepared import MACHINE, place, prepare_tiny
from tests.runtime.engine.gpu.test_footprint import taken

SILENT = JobContext.silent()
BASES = ("rtn4", "squeezellm3", "int8x4")
TOKENS = [40, 41, 50]
CONTEXT = 64


@pytest.fixture(scope="module", autouse=True)
def model(tmp_path_factory):
    """A Qwen2 with biases and a tied table."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DECDEC_HOME", str(folder / "home"))
        yield prepare_tiny(folder, "qwen2", BASES)


def load(model, base="rtn4", ctx=SILENT, **options):
    return load_at(Load(model, base, CONTEXT), ctx, options.pop("at", place()), **options)


def device_model(model, base, take=allocate, **changes):
    setting = Setting(**({"context": CONTEXT, "kv_bits": 16, "head_bits": 8} | CHOSEN | changes))
    opened = open_model(Load(model, base))
    return ModelLoader(opened, base, setting, torch.device(DEVICE), SILENT, take).load()


CHOSEN = {"packing": SMALLEST, "chunk": 128}


def off(found, wanted):
    return float((found - wanted).norm() / wanted.norm())


def same(found, wanted):
    """Whether two dataclasses or tensors hold the same."""
    if isinstance(wanted, torch.Tensor):
        return torch.equal(found.cpu(), wanted)
    if not is_dataclass(wanted):
        return found == wanted
    return type(found) is type(wanted) and all(
        same(getattr(found, field.name), getattr(wanted, field.name)) for field in fields(wanted)
    )


def packed(base, packing=SMALLEST):
    """A stored base, packed from what the CPU reads."""
    if isinstance(base, GroupCodes):
        return pack_groups(base)
    if isinstance(base, TableCodes):
        return pack_tables(base)
    return pack_planes(base.q, base.row_scale().contiguous(), escape_cost=packing)


@pytest.mark.parametrize("base", BASES)
def test_linears_are_those_that_were_stored(model, base):
    loaded = device_model(model, base, packing=8.0)
    opened = open_model(Load(model, base))
    for index in range(3):
        stored = lowbit.read_block(opened.record.path, base, index)
        biases = {kind: fused_bias(opened.reader, opened.spec, index, kind) for kind in LINEAR_KINDS}
        for kind, linear in loaded.model.blocks[index].linears.items():
            low = stored[kind]
            assert same(linear.weights, packed(low.base, 8.0))
            assert linear.residual is not None
            assert same(linear.residual.words, pack_nibbles(low.correction.codes))
            assert same(linear.residual.scale, low.correction.scale)
            assert (linear.inverse_columns is None) == (low.columns is None)
            assert low.columns is None or same(linear.inverse_columns, 1 / low.columns)
            assert (linear.bias is None) == (kind != "qkv")
            assert linear.bias is None or same(linear.bias, biases[kind])


@pytest.mark.parametrize("base", ["int8", "rtn4"])
def test_lossless_linears_are_those_of_the_container(model, base):
    loaded = device_model(model, base, packing=8.0, lossless=None if base == "int8" else 24.0)
    bank = [block.linears for block in loaded.model.blocks] if base == "int8" else loaded.lossless
    opened = open_model(Load(model, base))
    for index in range(3):
        for kind, layer in int8_block(opened.reader, opened.spec, index).items():
            linear = bank[index][kind]
            packing = 8.0 if base == "int8" else 24.0
            assert same(linear.weights, pack_planes(layer.q, layer.scale, escape_cost=packing))
            assert layer.inverse_columns is None or same(linear.inverse_columns, layer.inverse_columns)
            assert (linear.bias is None) == (kind != "qkv")
            assert linear.residual is None
    assert (loaded.lossless is None) == (base == "int8")


def test_norms_and_ropes_are_the_decoder_s(model):
    found = device_model(model, "rtn4").model
    opened = open_model(Load(model, "rtn4"))
    for index, block in enumerate(found.blocks):
        assert same(block.norms, block_norms(opened.reader, opened.spec, index))
        assert block.layer == opened.spec.layers[index]
    assert same(found.norm, opened.reader.load("model.norm.weight").float())
    cos, sin = opened.spec.ropes[0].tables(CONTEXT)
    assert same(found.ropes[0][0], cos)
    assert same(found.ropes[0][1], sin)


@pytest.mark.parametrize("bits", [8, 7, 6])
def test_the_head_and_the_embedding(model, bits):
    found = device_model(model, "rtn4", head_bits=bits)
    opened = open_model(Load(model, "rtn4"))
    table = opened.reader.quantised("model.embed_tokens.weight")
    tokens = torch.tensor([0, 7, 511])
    torch.testing.assert_close(found.model.embedding.rows(tokens).cpu(), table.dequantise()[tokens])
    q, scale = (table.q, table.row_scale()) if bits == 8 else coarser(table.q, table.row_scale(), bits)
    assert same(found.model.head.weights, pack_planes(q, scale.contiguous()))
    assert off(q * scale[:, None], table.dequantise()) < 2.0 ** (2 - bits)
    assert ("rounded to" in found.note) == (bits < 8)


def test_fewer_bits_are_wider_steps():
    q, scale = torch.tensor([[-127, -4, 0, 1, 2, 3, 127]], dtype=torch.int8), torch.tensor([0.5])
    codes, steps = coarser(q, scale, 6)
    assert codes.tolist() == [[-31, -1, 0, 0, 0, 1, 31]]
    assert codes[0, 0] * steps[0] == pytest.approx(-63.5)
    with pytest.raises(ValueError, match="8, 7, 6 bits, not 5"):
        coarser(q, scale, 5)


@pytest.mark.parametrize("base", [*BASES, "int8"])
def test_what_was_planned_is_what_is_taken(model, base):
    opened = open_model(Load(model, base))
    lossless = None if base == "int8" else SMALLEST
    setting = Setting(CONTEXT, 16, 8, SMALLEST, 128, lossless)
    plan = lay_out(stored_contents(opened.reader, opened.spec, base), setting, 0)
    loaded = device_model(model, base, lossless=lossless)
    found = loaded.model
    linears = [linear for block in found.blocks for linear in block.linears.values()]
    scales = [linear.residual.scale for linear in linears if linear.residual is not None]
    held = [[linear.weights, linear.inverse_columns, linear.bias] for linear in linears]
    norms = [block.norms for block in found.blocks]
    on_device = [held, scales, norms, found.norm, found.ropes, found.head, loaded.lossless or ()]
    tiny = 0.1 if base.startswith("int8") else 0.03
    assert plan.weights == pytest.approx(taken(on_device), rel=tiny)


def test_groups_that_no_kernel_has_are_refused_by_their_headers(model):
    opened = open_model(Load(model, "rtn4"))
    generator = torch.Generator().manual_seed(0)
    for base, group in (("packed4", 64), ("rtn4.wide", 256)):
        for index in range(3):
            block = {}
            for kind in LINEAR_KINDS:
                weight = torch.randn(linear_shape(opened.spec, kind), generator=generator)
                codes = quantise_rtn(weight, 4, group)
                block[kind] = with_residual(weight, codes, None, torch.zeros(weight.shape[1]))
            lowbit.write_block(opened.record.path, base, index, block)
    with pytest.raises(
        DecdecError, match=r"packed4 cannot be used on a GPU: its groups have 64 columns.*awq4"
    ):
        stored_contents(opened.reader, opened.spec, "packed4")
    assert stored_contents(opened.reader, opened.spec, "rtn4.wide").blocks[0]["o"].bits == 4


def test_many_heads_on_one_are_refused(model):
    opened = open_model(Load(model, "rtn4"))
    spec = replace(opened.spec, n_heads=17 * opened.spec.n_kv_heads)
    with pytest.raises(DecdecError, match=r"cannot be used on a GPU: 1 to 16 query heads .* not 17"):
        stored_contents(opened.reader, spec, "rtn4")


@pytest.mark.parametrize("base", BASES)
def test_a_base_that_is_made_is_as_it_was_expected(model, base):
    opened = open_model(Load(model, base))
    stored = stored_contents(opened.reader, opened.spec, base)
    expected = expected_contents(opened.spec, base)
    assert len(stored.blocks) == len(expected.blocks) == len(stored.exact) == 3
    for found, wanted in zip(stored.blocks[0].values(), expected.blocks[0].values(), strict=True):
        assert (found.layout, found.columns) == (wanted.layout, wanted.columns)
        assert found.bits == wanted.bits if found.layout != "planes" else 3 < found.bits < 8
    assert stored.head.layout == "planes"
    assert stored.bias_bytes == 3 * 1024


def test_an_engine_answers_as_on_the_cpu(model):
    base = "rtn4"
    found = load(model, base)
    here = load_cpu_engine(Load(model, base, CONTEXT), SILENT)
    logits = found.engine.prefill(TOKENS, lambda: None).cpu()
    assert off(logits, here.engine.prefill(TOKENS, lambda: None)) < 0.03
    event = found.loaded
    assert (event.model, event.base, event.context_limit) == (model, base, CONTEXT)
    assert event.device == "NVIDIA Tiny (cuda:0)"
    assert event.lossless
    assert event.bytes_in_memory > found.engine.model.bytes_on_device() // 2
    assert "not tuned" in event.untuned_reason


def test_residuals_that_do_not_fit_leave_their_blocks_uncorrected(model):
    calls = []

    def take(nbytes):
        calls.append(nbytes)
        if len(calls) > 2:
            raise PinError("0.01 GiB of host memory cannot be page-locked: out of memory")
        return allocate(nbytes)

    found = device_model(model, "rtn4", take)
    corrected = [[linear.residual is not None for linear in b.linears.values()] for b in found.model.blocks]
    assert corrected == [[True] * 4, [False] * 4, [False] * 4]
    assert found.note.startswith("Blocks 1 to 2 stay uncorrected")
    assert len(found.model.held) == 2


def test_memory_that_the_system_needs_is_not_locked(monkeypatch):
    monkeypatch.setattr(
        loading_model.psutil, "virtual_memory", lambda: SimpleNamespace(available=(1 << 30) + 4096)
    )
    assert loading_model.within_free_memory(4096).nbytes == 4096
    with pytest.raises(PinError, match=r"1\.07 GB of host memory are free"):
        loading_model.within_free_memory(4097)


def test_an_embedding_without_host_memory_is_refused(model):
    def take(nbytes):
        raise PinError("nothing can be page-locked")

    with pytest.raises(DecdecError, match="embedding cannot be kept in host memory: nothing can be"):
        device_model(model, "rtn4", take)


def test_progress_goes_by_blocks_and_a_stop_is_taken_between_them(model):
    seen = []
    context = JobContext("load", seen.append, lambda: False)
    load(model, ctx=context)
    blocks = [event for event in seen if (event.step, event.unit) == ("load", "blocks")]
    assert (blocks[0].done, blocks[-1].done, blocks[-1].total) == (0, 3, 3)
    assert [event.step for event in seen] == ["load"] * len(blocks) + ["compile"] * 2
    stops = iter([False, False, True])
    with pytest.raises(Interrupted):
        load(model, ctx=JobContext("load", seen.append, lambda: next(stops)))


def test_a_model_that_does_not_fit_is_refused_before_it_is_read(model, monkeypatch):
    monkeypatch.setattr(loading, "ModelLoader", lambda *args: pytest.fail("it was read"))
    with pytest.raises(DecdecError, match=r"does not fit on the GPU.*1\.00 MB are free|1\.0 MB are free"):
        load(model, at=place(free=10**6))


def test_memory_that_runs_out_after_all_is_told_in_numbers(model, monkeypatch):
    def full(self):
        raise torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB"
            " of which 1.50 GiB is free."
        )

    monkeypatch.setattr(ModelLoader, "load", full)
    with pytest.raises(DecdecError) as caught:
        load(model)
    for amount in ("2.15 GB more were needed", "1.61 GB", "17.18 GB were free"):
        assert amount in caught.value.sentence
    assert caught.value.__context__ is None


def tuned(model, **launches):
    path = (SlowdownPoint(0.0, KChunk()), SlowdownPoint(5.0, KChunk(8, 0, 16, 4)))
    base_us = {str(kind): 10.0 for kind in LINEAR_KINDS}
    return Profile(model, "rtn4", MACHINE, base_us, path, launches)


def test_a_profile_of_this_gpu_is_used(model):
    profile = tuned(model, o=Launch(4, 2, 4), down=Launch(1, 8, 1))
    write_profile(profile)
    found = load(model)
    assert (found.loaded.path, found.loaded.untuned_reason) == (profile.path, "")
    fetches = {kind: linear.fetch.config for kind, linear in found.engine._base.graphs.step.blocks[0].items()}
    assert (fetches["o"].rows, fetches["o"].splits) == (2, 4)
    assert (fetches["down"].rows, fetches["down"].splits) == (8, 1)
    found.engine.set_slowdown(6.0, False)
    assert found.engine.slider().k_chunk == KChunk(8, 0, 16, 4)


def test_a_profile_that_no_kernel_can_follow_is_not(model):
    write_profile(tuned(model, o=Launch(4, 99, 4)))
    found = load(model)
    assert found.loaded.path == ()
    assert "damaged" in found.loaded.untuned_reason


def test_without_any_residual_there_is_no_slider(model, monkeypatch):
    write_profile(tuned(model, o=Launch(4, 2, 4)))
    calls = []

    def take(nbytes):
        calls.append(nbytes)
        if len(calls) > 1:
            raise PinError("no more")
        return allocate(nbytes)

    monkeypatch.setattr(ModelLoader.__init__, "__defaults__", (take,))
    found = load(model)
    assert found.loaded.path == ()
    assert found.loaded.untuned_reason == loading.NO_RESIDUALS
    assert "Blocks 0 to 2 stay uncorrected" in found.loaded.note
