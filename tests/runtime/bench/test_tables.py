"""The paper's tables on small tensors whose sizes can be counted by hand."""

import json
from dataclasses import replace
from itertools import combinations

import pytest
import torch

from kernels.int8x import encode
from runtime.bench import jobs
from runtime.bench.coding import ADAPTIVE, HUFFMAN, PAPER, PLAIN, Codec, Matrix, Outcome, Parts, code_all
from runtime.bench.compare_table import compare_table
from runtime.bench.level_tables import PAPER_SCHEMES, best_of, bits_of, search_table, sweep_table
from runtime.bench.mixture import paper_mixture
from runtime.bench.samples import Sample, random_sample
from runtime.bench.shapes import LLAMA, MINICPM, ModelShape
from runtime.bench.size_tables import lossless_table, size_table
from runtime.bench.table import PAPER_MODEL, Table, cell, markdown
from runtime.progress import JobContext

TINY = ModelShape("Tiny", 2, 64, 96, 4, 2, 16, 300)


@pytest.fixture(scope="module")
def sample():
    return random_sample(TINY, rows=32)


@pytest.fixture(scope="module")
def coded(sample):
    return [(sample, code_all(sample.matrices))]


def one(q, represents=1.0, scale_bits=32):
    return [Matrix("w", q, scale_bits, represents)]


def test_shapes_are_the_published_models():
    norms = (2 * MINICPM.blocks + 1) * MINICPM.hidden
    assert MINICPM.linear_weights + MINICPM.table_weights + norms == 1_080_632_832
    norms = (2 * LLAMA.blocks + 1) * LLAMA.hidden
    assert LLAMA.linear_weights + LLAMA.table_weights + norms == 8_030_261_248


def test_parts_of_the_paper_are_its_arithmetic():
    q = torch.tensor([3] * 555 + [-15] * 404 + [100] * 41, dtype=torch.int8).repeat(64)
    bits = code_all(one(q.reshape(100, 640), scale_bits=0), [PAPER])[PAPER.name].bits
    assert bits.flags == pytest.approx(1.445, abs=1e-3)
    assert bits.data == pytest.approx(0.555 * 3 + 0.404 * 5 + 0.041 * 8, abs=1e-3)
    assert bits.tables == pytest.approx(2 * 32 / 1024, rel=0.02)


def test_outcome_counts_what_a_matrix_stands_for_and_compares_what_is_there():
    q = paper_mixture().draw(16, 64)
    outcome = code_all(one(q, represents=3.0), [PLAIN])[PLAIN.name]
    assert outcome.weights == 3 * 1024
    assert (outcome.compared, outcome.mismatches) == (1024, 0)
    assert outcome.bits == Parts(data=8.0, scales=32 / 1024)


def test_a_lossy_codec_is_found_out():
    lossy = Codec("lossy", torch.clone, lambda q: None, lambda q: q.clamp(-3, 3), lambda q: Parts(data=1.0))
    q = torch.tensor([[1, -4, 100, 3]], dtype=torch.int8)
    outcome = Outcome()
    outcome.add(lossy, one(q)[0])
    assert outcome.mismatches == 2
    assert (
        lossless_table([(Sample("x", False, one(q), 4, ""), {"lossy": outcome})]).rows[0]["match"] == "50.0%"
    )


def test_every_codec_is_lossless_and_ordered(coded):
    table = lossless_table(coded)
    assert {row["mismatches"] for row in table.rows} == {0}
    totals = {row["codec"]: row["total"] for row in size_table(coded).rows}
    assert totals["entropy"] <= totals["entropy, all together"]
    assert totals["entropy"] <= totals["Huffman code"] < totals[HUFFMAN.name] < totals[PLAIN.name]
    assert totals["INT8-X, best levels"] <= totals[PAPER.name]
    row = next(row for row in size_table(coded).rows if row["codec"] == ADAPTIVE.name)
    assert row["total"] == pytest.approx(row["data"] + row["tables"] + row["scales"])


def test_level_search_is_exhaustive_and_its_sizes_are_real(sample):
    histogram, q = sample.histogram, torch.cat([m.q.reshape(-1) for m in sample.matrices])
    counts = torch.bincount(q.int() + 128, minlength=256)
    for levels in ((3, 5, 8), (2, 4, 6, 8), (4, 8)):
        assert bits_of(counts, levels) == 8 * encode(q, levels).nbytes / q.numel()
    sizes = {s: bits_of(histogram, s) for n in (2, 3) for s in combinations(range(1, 9), n) if s[-1] == 8}
    assert best_of(histogram, 3) == min((s for s in sizes if len(s) == 3), key=sizes.__getitem__)
    assert best_of(histogram, 3, 2)[0] == 2
    assert {row["paper"] for row in search_table([sample]).rows} == {None}
    rows = search_table([replace(sample, name=f"{PAPER_MODEL} shapes")]).rows
    assert {row["paper"] for row in rows} - {None} == set(PAPER_SCHEMES.values())


def test_sweep_adds_up(sample):
    rows = sweep_table([sample]).rows
    assert [row["first level"] for row in rows] == [1, 2, 3, 4, 5]
    for row in rows:
        assert row["total"] == pytest.approx(row["bitmap"] + row["data"], abs=0.05)
        assert row["total"] <= row["first + 2"] + 1e-9
    magnitudes = (torch.arange(256) - 128).abs()
    share = float(sample.histogram[magnitudes <= 3].sum() / sample.histogram.sum())
    assert rows[2]["coverage"] == pytest.approx(share)


def test_comparison_takes_times_of_its_own_model(coded):
    token = {"model": "Tiny", "format": PAPER.name, "ms": 2.5, "ratio": 1.5, "weight_bytes": 10**6}
    other = {**token, "model": "Other", "ms": 9.0}
    rows = {row["format"]: row for row in compare_table(coded, [token, other]).rows}
    assert (rows[PAPER.name]["ms a token"], rows[PAPER.name]["device MB"]) == (2.5, 1.0)
    assert rows["bf16"]["ms a token"] is None
    assert rows["bf16"]["MB"] == pytest.approx(TINY.linear_weights * 2 / 1e6)
    assert rows[HUFFMAN.name]["CPU decode, ms"] > 0


def test_tables_print_what_they_hold():
    table = Table("t", "Title", [{"a": 1, "b": None, "c": 0.25, "d": "x|y"}], ["A note."])
    assert markdown(table).splitlines() == [
        "## Title",
        "",
        "| a | b | c | d |",
        "| --- | --- | --- | --- |",
        "| 1 | - | 0.250 | x\\|y |",
        "",
        "A note.",
    ]
    assert [cell(value) for value in (True, 12345, 1e-9, 1234.5)] == ["yes", "12 345", "1e-09", "1234"]
    with pytest.raises(ValueError, match="columns"):
        Table("t", "T", [{"a": 1}, {"b": 1}])


def test_job_writes_its_files(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(jobs, "RANDOM_MODELS", (TINY,))
    monkeypatch.setattr("runtime.bench.compare_table.LADDER_WEIGHTS", 2000)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = jobs.tables({"out": str(tmp_path / "out")}, JobContext.silent())
    assert [table["key"] for table in result["tables"]] == ["2.3", "3.3", "3.5", "3.4", "4.1", "4.2"]
    written = json.loads((tmp_path / "out" / "int8x-tables.json").read_text())
    assert written == json.loads(json.dumps(result))
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"int8x-tables.md", "int8x-tables.json", "int8x-sizes.svg", "int8x-first-level.svg"}
