"""The run of all sections over made-up engines: order, notes, failures that stop nothing."""

import itertools
import json

import pytest
import torch

from runtime.bench.decode import built, sections, stepping
from runtime.bench.decode.built import Builder
from runtime.bench.decode.notes import NOTES
from runtime.bench.decode.random_model import Mode
from runtime.bench.decode.sections import DecodeBench
from runtime.bench.decode.stepping import Tables
from runtime.bench.gpu_report import GpuReport
from runtime.bench.shapes import BY_NAME, ModelShape
from runtime.engine.slider import TunedPath
from runtime.protocol import KChunk, SlowdownPoint
from tests.fakes.step_engine import FakeStepEngine

DEVICE = torch.device("cpu")
TINY = ModelShape("Tiny", 1, 128, 128, 2, 1, 64, 64)
SMALL = ModelShape("Small", 1, 128, 256, 2, 1, 64, 64)
TABLES = Tables(TunedPath([SlowdownPoint(0.0, KChunk()), SlowdownPoint(5.0, KChunk(8, 8, 8, 8))]), {})
MILLISECONDS = {"DenseWeights": 1.0, "DeviceGroups": 0.25, "DevicePlanes": 0.5}


@pytest.fixture
def made(monkeypatch):
    """What engines were asked for, in order: model, tables, options."""
    asked = []

    def new_engine(model, tables=None, **options):
        asked.append((model, tables, options))
        engine = FakeStepEngine(itertools.repeat([3, 4]), vocab_size=64, context_limit=model.context)
        ms = MILLISECONDS[type(model.blocks[0].linears["o"].weights).__name__]
        engine.step_milliseconds = lambda position, replays: ms + engine.table.total / 100
        return engine

    monkeypatch.setattr(stepping, "new_engine", new_engine)
    monkeypatch.setattr(sections, "tune", lambda *args: TABLES)
    monkeypatch.setattr(sections, "LLAMA", TINY)
    return asked


@pytest.fixture
def bench(tmp_path, made):
    report = GpuReport(tmp_path, {"GPU": "none"}, 60.0, NOTES)
    bench = DecodeBench.new(report, DEVICE, lambda: iter([{"processes": 1}]))
    bench.known.link_gb_s, bench.known.ceiling_gb_s = 50.0, 4000.0
    return bench


def test_every_section_is_noted_and_the_most_wanted_come_first(bench, monkeypatch):
    names, begun = [], []
    monkeypatch.setattr(sections, "LLAMA", BY_NAME["Llama-3-8B"])
    monkeypatch.setattr(GpuReport, "run", lambda self, name, section: names.append(name))
    bench.begin = begun.append
    bench.all()
    assert begun == names
    without = [name for name in names if not name.startswith(tuple(NOTES))]
    assert without == ["compile", "compile for tuning"]
    assert names[3:5] == ["transformers Llama-3-8B", "steps Llama-3-8B"]
    last = [names.index(what) for what in ("steps MiniCPM5-1B", "steps Phi-3-medium", "peers Llama-3-8B")]
    assert last == sorted(last)
    assert names[-1] == "compiled Llama-3-8B"


def test_modes_are_beside_bf16_of_the_same_run(bench, made):
    bench.known.eager_ms["Tiny"] = 8.0
    rows = list(bench.step_rows(TINY, [Mode("bf16"), Mode("awq4"), Mode("int8x")]))
    assert [(row["weights"], row["slider"]) for row in rows] == [
        ("bf16", "-"),
        *(("awq4", f"{pct} %") for pct in ("0", "2.5", "5", "10", "20")),
        ("int8x", "-"),
    ]
    assert [row["x bf16"] for row in rows[:2]] == [1.0, 4.0]
    assert [row["x eager"] for row in rows[:2]] == [8.0, 32.0]
    assert [tables for _, tables, _ in made] == [None, TABLES, None]
    assert rows[0]["of ceiling"] == pytest.approx(1e9 * rows[0]["GB read"] / 1e-3 / 4e12)


def test_tables_are_tuned_once_for_each_shape(bench, monkeypatch):
    tuned = []
    monkeypatch.setattr(sections, "tune", lambda *args: tuned.append(args) or TABLES)
    for shape in (TINY, TINY, SMALL):
        list(bench.step_rows(shape, [Mode("awq3")]))
    assert [(shape, base) for shape, base, _, _ in tuned] == [(TINY, "awq3"), (SMALL, "awq3")]


def test_a_mode_that_fails_leaves_the_others(bench, monkeypatch):
    real = Builder.build

    def build(self, shape, mode, *args, **options):
        return 1 / 0 if mode.name == "bf16" else real(self, shape, mode, *args, **options)

    monkeypatch.setattr(Builder, "build", build)
    bench.report.run("steps", lambda: bench.step_rows(TINY, [Mode("bf16"), Mode("int8x")]))
    assert [row["weights"] for row in bench.report.rows["steps"]] == ["int8x"]
    assert bench.report.failures == {"Tiny bf16": "ZeroDivisionError: division by zero"}
    assert json.loads((bench.report.folder / "int8x-gpu.json").read_text())["rows"]["steps"]


def test_modes_for_which_no_time_is_left_are_named(bench, monkeypatch):
    bench.report.deadline_s = 0.0
    with pytest.raises(RuntimeError, match="for bf16"):
        list(bench.step_rows(TINY, [Mode("bf16")]))


def test_other_sections_ask_for_what_they_measure(bench, made):
    assert [row["context"] for row in bench.long_rows()] == [100, 2000, 8000] * 2
    assert [model.context for model, _, _ in made] == [8192, 8192]
    assert [row["bits of cache"] for row in bench.memory_rows()] == [16, 8]
    assert [options for _, _, options in made[2:]] == [{"kv_bits": 16}, {"kv_bits": 8}]
    assert [row["corrected"] for row in bench.first_rows()] == [True, True, False, False]
    assert [options for _, _, options in made[4:]] == [
        {"prompt_correction": True},
        {"prompt_correction": False},
    ]


def test_memory_counts_the_residuals_of_every_block(bench, made, monkeypatch):
    deep = ModelShape("Deep", 3, 128, 128, 2, 1, 64, 64)
    monkeypatch.setattr(sections, "LLAMA", deep)
    row = next(bench.memory_rows())
    residuals = 3 * sum(n_in * n_out / 2 for n_out, n_in in deep.linears.values())
    assert row["GB host"] == pytest.approx((residuals + 64 * 128) / 1e9)
    assert (row["GB weights"], row["GB cache"], row["context"]) == (5.0, 1.0, 4096)


def test_kernels_are_compiled_with_a_shallow_model(made):
    tall = ModelShape("Tall", 9, 128, 128, 2, 1, 64, 64)
    for name in ("awq4", "bf16"):
        built.compile_kernels(tall, Mode(name), DEVICE)
    assert [len(model.blocks) for model, _, _ in made] == [1, 1]
    assert [tables is None for _, tables, _ in made] == [False, True]
    assert made[0][1].path.at(1.0).total > 0
