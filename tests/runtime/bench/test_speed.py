"""Speeds of the CPU codecs."""

import torch

from runtime.bench import jobs
from runtime.bench.speed import speed_rows, speed_table
from runtime.progress import JobContext


def test_rows_hold_what_was_coded():
    weights = [torch.randn(32, 64), torch.randn(16, 64)]
    rows = speed_rows("w", weights)
    assert [row["codec"] for row in rows] == [
        "INT8-X (3,5,8)",
        "INT8-X, best levels",
        "INT8-X, adaptive planes",
    ]
    for row in rows:
        assert row["M weights"] == 48 * 64 / 1e6
        assert 3 < row["bit/w"] < 11
        assert row["encode"] > row["encode from float"] > 0
        assert row["decode"] > 0
    assert "2 threads" in speed_table(rows, 2).notes[0]


def test_job_without_a_model_measures_random_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(jobs, "SPEED_SHAPE", (32, 64))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = jobs.int8x({"out": str(tmp_path)}, JobContext.silent())
    assert {row["weights"] for row in result["tables"][0]["rows"]} == {"random 32x64"}
    assert (tmp_path / "int8x-speed.json").exists()
    assert (tmp_path / "int8x-speed.md").exists()
