"""`tune`: what the worker is asked for, the table, and a JSON document that stays as it is."""

import json

import pytest

from app.cli import tune as module
from app.cli.guard import guarded
from app.cli.root import cli as root
from app.models import Target
from runtime.protocol.commands import Job, Prepare, Tune

TABLE = {"qkv": 16, "o": 0, "gate_up": 32, "down": 26}
RESULT = {
    "model": "small",
    "device": "cuda:0",
    "base_us": {"qkv": 7.31, "o": 5.82, "gate_up": 18.0, "down": 12.6},
    "n_tb": {"qkv": 24, "o": 16, "gate_up": 224, "down": 32},
    "path": [{"slowdown_pct": 0.0, "k_chunk": dict.fromkeys(TABLE, 0)}],
    "detents": {"2.5": dict.fromkeys(TABLE, 0), "5": TABLE},
    "report": {
        "processor": "NVIDIA H200",
        "link_gb_s": 50.36,
        "detents": [{"target_pct": 5.0, "k_chunk": TABLE, "predicted_pct": 4.61, "measured_pct": 4.43}],
    },
}


@pytest.fixture
def cli(capsys, monkeypatch):
    asked = []

    def run(commands):
        asked.extend(commands)
        return json.loads(json.dumps(RESULT))

    monkeypatch.setattr(module.work, "run", run)
    monkeypatch.setattr(
        "app.models.target", lambda wanted: Target("small", "small.gguf", wanted is None, frozenset({"awq4"}))
    )

    def call(*arguments):
        code = guarded(
            lambda: root.main(["tune", *arguments], prog_name="decdec-chat", standalone_mode=False)
        )
        captured = capsys.readouterr()
        return code, captured.out, asked

    return call


def test_json_has_the_documented_keys_and_no_others(cli):
    code, out, asked = cli("--json")
    assert code == 0
    assert list(json.loads(out)) == ["model", "device", "base_us", "n_tb", "path", "detents"]
    assert asked == [Tune("small", "awq4")]


def test_the_table_shows_predicted_and_measured_beside_every_detent(cli):
    code, out, _ = cli()
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "small is tuned on NVIDIA H200."
    assert "50.4 GB/s" in lines[1]
    assert lines[2].split("  ")[0] == "slowdown"
    five = next(line.split() for line in lines if line.startswith("5 %"))
    assert five == ["5", "%", "16", "0", "32", "26", "4.61", "4.43"]
    two = next(line.split() for line in lines if line.startswith("2.5 %"))
    assert two[-2:] == ["-", "-"]
    assert next(line.split() for line in lines if line.startswith("base")) == [
        "base,",
        "µs",
        "7.31",
        "5.82",
        "18",
        "12.6",
    ]
    assert next(line.split() for line in lines if line.startswith("n_tb"))[1:] == ["24", "16", "224", "32"]


def test_a_picture_goes_to_the_worker_as_a_whole_path(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, asked = cli("-m", "new", "--base", "rtn3", "--plot", "knees.svg")
    assert code == 0
    assert asked == [
        Prepare("small.gguf", "small", bases=("rtn3",)),
        Job("tune", {"model": "small", "base": "rtn3", "plot": str(tmp_path / "knees.svg")}),
    ]
