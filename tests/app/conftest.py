"""A home of its own for every test, the scripted worker instead of an engine, no network."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from app import environment, hints
from runtime import store
from runtime.sources import catalogue

FAKE = Path(__file__).resolve().parents[1] / "fakes" / "scripted_worker.py"
MODEL = catalogue.default().name


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("DECDEC_HOME", str(folder))
    monkeypatch.delenv("NO_COLOR", raising=False)
    return folder


@pytest.fixture(autouse=True)
def _as_a_person_has_it(monkeypatch):
    """Hints come where a test asks for them; what settings put into the environment goes with the test."""
    monkeypatch.setattr(hints, "HINTS", ())
    monkeypatch.setattr(environment, "_ours", set())
    before = {name: os.environ.pop(name, None) for name in environment.VARIABLES.values()}
    yield
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """Set the scripted worker's script."""

    def use(*arguments, **script):
        script = {"rate": 0, "step_s": 0.05, "ticks": 2, **script}
        path = tmp_path / "script.json"
        path.write_text(json.dumps(script), encoding="utf-8")
        command = [sys.executable, str(FAKE), "--script", str(path), *arguments]
        monkeypatch.setenv("DECDEC_WORKER", shlex.join(command))

    use()
    return use


def add_model(name, source="a test"):
    with store.building(name) as staging:
        (staging / "weights.bin").write_bytes(b"x" * 1000)
        store.publish(name, staging, {"source": source, "bits_per_weight": 6.4, "bases": ["awq4"]})


@pytest.fixture
def model(home):
    """The default model, prepared."""
    add_model(MODEL)
    return MODEL
