"""The worker's job: on a CPU the prepared model, on a GPU the run of all sections."""

import itertools
import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from runtime import devices, store
from runtime.bench.decode import cpu_rows, jobs, run
from runtime.bench.gpu_report import GpuReport
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.protocol import Loaded
from tests.fakes.fake_engine import PATH, FakeEngine


@pytest.fixture
def prepared(monkeypatch):
    """A model with two bases of which one is tuned."""

    def load(command, context, keep_lossless=True):
        path = PATH if command.base == "awq4" else ()
        engine = FakeEngine(itertools.repeat([5, 6]), 600, 2, command.context)
        loaded = Loaded(command.model, command.base, "CPU (2 threads)", 512, 10**9, path, "never tuned")
        return SimpleNamespace(engine=engine, loaded=loaded)

    record = SimpleNamespace(name="M", record={"bases": ["awq4", "rtn3"]})
    monkeypatch.setattr(cpu_rows, "load_engine", load)
    monkeypatch.setattr(store, "find", lambda name: record)
    monkeypatch.setattr(devices, "answering_gpu", lambda: None)


def test_on_a_cpu_every_form_of_the_model_is_measured(prepared, tmp_path):
    result = jobs.decode({"model": "M", "out": str(tmp_path)}, JobContext.silent())
    (table,) = result["tables"]
    assert [(row["weights"], row["slider"]) for row in table["rows"]] == [
        ("int8", "-"),
        *(("awq4", f"{pct} %") for pct in ("0", "5", "10", "20")),
        ("rtn3", "0 %"),
    ]
    assert [row["k_chunk"] for row in table["rows"]][1:3] == ["-", "qkv 8, o 8, gate_up 8, down 8"]
    assert table["notes"][1:] == ["rtn3: never tuned."]
    assert json.loads((tmp_path / "decode-cpu.json").read_text()) == result
    assert "| int8 | - |" in (tmp_path / "decode-cpu.md").read_text()


def test_without_a_prepared_model_one_sentence_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))
    monkeypatch.setattr(devices, "answering_gpu", lambda: None)
    with pytest.raises(DecdecError) as raised:
        jobs.decode({}, JobContext.silent())
    assert "decdec-chat pull" in raised.value.sentence


def test_on_a_gpu_the_run_s_tables_and_failures_come_back(monkeypatch):
    asked = []

    def measure(folder, seconds, models, begin):
        begin("steps")
        asked.append((Path(folder).is_dir(), seconds, models))
        report = GpuReport(folder, {}, seconds, {"steps": "a note"})
        report.run("steps M", lambda: iter([{"ms": 1.0}]))
        report.fail("peers", ValueError("none"))
        return report

    monkeypatch.setattr(devices, "answering_gpu", lambda: 0)
    monkeypatch.setattr(run, "measure", measure)
    monkeypatch.setattr(jobs.torch.cuda, "device", lambda index: nullcontext())
    result = jobs.decode({"model": "M", "seconds": 30}, JobContext.silent())
    assert asked == [(True, 30.0, ["M"])]
    assert result["failures"] == {"peers": "ValueError: none"}
    assert result["tables"][0]["notes"] == ["a note"]
