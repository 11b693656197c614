"""Blocks that are measured: the engine's own kernels, and no kernel of a correction that is not asked for."""

import itertools
from dataclasses import replace

import pytest
import torch

from kernels.gpu.dec.fetch import FetchConfig
from runtime.layers.base import LINEAR_KINDS
from runtime.model.spec import LayerSpec, ModelSpec
from runtime.protocol.events import KChunk
from runtime.tuner import compiling, device_measurer, step_ends
from runtime.tuner.compiling import Case
from runtime.tuner.device_block import COLD_BYTES, DeviceBlock, copies_needed
from runtime.tuner.device_measurer import DeviceMeasurer
from runtime.tuner.random_weights import makers
from tests.runtime.tuner.recording import Recorder

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SPEC = ModelSpec.from_config(
    {
        "model_type": "llama",
        "vocab_size": 96,
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "max_position_embeddings": 16,
    }
)
WAY = FetchConfig(4, 2)


def block(base="awq4", copies=2, spec=SPEC):
    return DeviceBlock(spec, makers(base, DEVICE), DEVICE, copies=copies)


def stream(block, fetching, table):
    block.start(table)
    for call in block.calls(fetching):
        call()
    return block.results[0].clone()


def test_blocks_compute_and_correct_what_their_table_says():
    mine, every = block(copies=1), dict.fromkeys(LINEAR_KINDS, WAY)
    plain = stream(mine, {}, {})
    assert torch.isfinite(plain).all()
    nothing = stream(mine, every, {})
    assert torch.allclose(nothing, plain, rtol=1e-3, atol=1e-3 * float(plain.abs().max()))
    assert not torch.allclose(stream(mine, every, {"down": 64}), plain, rtol=1e-5)


@pytest.fixture
def recorder(monkeypatch):
    return Recorder(monkeypatch)


def products(started):
    return [what for what in started if what[0] == "product"]


def fetches(started):
    return [what for what in products(started) if what[2] is not None]


def selecting(started):
    return [what for what in started if what[0] == "prepare" and what[3]]


@pytest.mark.parametrize("kinds", [(), ("o",), ("qkv", "down"), LINEAR_KINDS])
def test_kinds_that_are_not_asked_for_start_nothing(recorder, kinds):
    mine = block()
    started = recorder.run(mine.calls(dict.fromkeys(kinds, WAY)))
    names = [what[0] for what in started]
    assert len(products(started)) == 2 * 4
    assert names.count("attention") == 2
    assert [what[1][2:] for what in fetches(started)] == 2 * [
        (mine.shapes[kind].n_out, mine.shapes[kind].n_in) for kind in kinds
    ]
    assert len(selecting(started)) == 2 * len(kinds)
    assert names.count("add") == 2 * len({"o", "down"} & set(kinds))
    assert names.count("gate") == 2 * ("gate_up" in kinds)
    assert all((what[1] is not None) == ("qkv" in kinds) for what in started if what[0] == "attention")


@pytest.mark.parametrize("kind", LINEAR_KINDS)
def test_a_linear_runs_once_more_without_its_correction(recorder, kind):
    mine = block()
    plain, more = recorder.run(mine.calls({})), recorder.run(mine.calls({}, again=kind))
    assert not fetches(more)
    assert not selecting(more)

    def count(started):
        shape = mine.shapes[kind]
        return sum(what[1][2:] == (shape.n_out, shape.n_in) for what in products(started))

    assert (count(plain), count(more), len(products(more))) == (2, 4, 10)


def test_copies_take_turns_and_fill_more_than_a_cache():
    mine = block("awq3.5", copies=6)
    assert [linears["o"].weights.bits for linears in mine.linears({})] == [3, 3, 4, 4, 3, 3]
    words = {linears["o"].weights.words.data_ptr() for linears in mine.linears({})}
    assert len(words) == 6
    assert copies_needed(COLD_BYTES // 10) == 10
    assert (copies_needed(COLD_BYTES), copies_needed(1)) == (4, 48)


def test_every_family_s_blocks_have_its_parts(recorder):
    layers = (LayerSpec(5, 0), LayerSpec(None, 0))
    gemma = replace(SPEC, qk_norm=True, post_norms=True, activation="gelu_tanh", layers=layers)
    mine = block(copies=3, spec=gemma)
    assert [part.layer.window for part in mine.model.blocks] == [5, None, 5]
    assert recorder.run(mine.calls({})).count(("post norm",)) == 6
    assert all(part.norms.q is not None for part in mine.model.blocks)


def test_the_ends_of_a_step_are_all_but_its_blocks(recorder):
    calls = step_ends.ends_calls(SPEC, DEVICE, rows=32, copies=2)
    names = [what[0] for what in recorder.run(calls) if what[0] != "prepare"]
    assert names == ["embed", "product", "choose"] * 2
    assert step_ends.measured_rows(SPEC) == 96
    assert step_ends.measured_rows(replace(SPEC, vocab_size=1 << 21)) * SPEC.hidden == 1 << 27


def test_the_ends_of_a_step_run():
    (call,) = step_ends.ends_calls(SPEC, DEVICE, rows=32, copies=1)
    call()


class CountingReplay:
    """Takes a microsecond for every kernel of its calls."""

    recorder = None

    def __init__(self, calls):
        self.started = self.recorder.run(calls)

    def microseconds(self, replays=15):
        return float(len(self.started))

    def added_to(self, reference, replays=11):
        return self.microseconds() - reference.microseconds(), reference.microseconds()


@pytest.fixture
def measurer(recorder, monkeypatch):
    monkeypatch.setattr(device_measurer, "Replay", CountingReplay)
    monkeypatch.setattr(CountingReplay, "recorder", recorder)
    return DeviceMeasurer(block(), 50.0, 3.0)


def test_graphs_hold_what_a_table_corrects_and_nothing_else(measurer):
    launches = {kind: measurer.launches(kind)[0] for kind in LINEAR_KINDS}
    measurer.table_pct(launches, KChunk(gate_up=3, down=1))
    measurer.corrected_us("qkv", launches["qkv"], 4)
    both, single = measurer._graphs.values()
    assert {what[1][2:] for what in fetches(both.started)} == {(512, 128), (128, 256)}
    assert {what[1][2:] for what in fetches(single.started)} == {(256, 128)}
    assert not fetches(measurer._base.started)
    assert measurer.total_us == measurer._block_us + 3.0


@pytest.mark.parametrize("base", ["awq4", "awq3.5"])
def test_all_that_is_measured_was_compiled_before(measurer, recorder, base):
    case = Case(base, SPEC)
    compiled = set(recorder.run(compiling.variants(case, DEVICE)))
    mine = block(base, copies=4)
    for picks in itertools.product((None, 0, -1), repeat=4):
        fetching = {
            kind: compiling._ways(case, mine, kind)[pick]
            for kind, pick in zip(LINEAR_KINDS, picks, strict=True)
            if pick is not None
        }
        assert set(recorder.run(mine.calls(fetching))) <= compiled
    for kind in LINEAR_KINDS:
        assert set(recorder.run(mine.calls({}, again=kind))) <= compiled
    assert ("choose",) in compiled


def test_processes_share_the_variants(recorder, monkeypatch):
    done = []
    monkeypatch.setattr(compiling, "_run", done.append)
    cases = [Case("awq4", SPEC), Case("awq3", SPEC)]
    counts = [compiling.run_part(cases, part, 3, DEVICE) for part in range(3)]
    assert sum(counts) == len(done) == sum(len(list(compiling.variants(c, DEVICE))) for c in cases)
    assert max(counts) - min(counts) <= 1
