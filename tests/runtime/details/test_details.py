"""Details of a prepared model, counted again from its files."""

import pytest
from safetensors import safe_open

from runtime import store
from runtime.details.jobs import check_files, details
from runtime.details.parts import by_part, parts
from runtime.errors import DecdecError
from runtime.prepare.pipeline import prepare
from runtime.progress import JobContext
from runtime.protocol.commands import Prepare
from runtime.protocol.events import KChunk, SlowdownPoint
from runtime.tuner.profile import Machine, Profile, write_profile
from runtime.worker import jobs
from tests.runtime.prepare.conftest import home, source  # noqa: F401

QUIET = JobContext.silent()
BASE_US = dict.fromkeys(("qkv", "o", "gate_up", "down"), 1.0)


@pytest.fixture
def model(home, source):  # noqa: F811
    return prepare(Prepare(str(source), bases=("rtn4",)), QUIET)


def test_bytes_by_part_add_up_and_residuals_are_apart(model):
    found = details({"model": "tiny"}, QUIET)
    assert sum(found["parts"].values()) == model.bytes
    residual = 0
    for path in (model.path / "base-rtn4").iterdir():
        with safe_open(path, "pt") as block:
            kept = [name for name in block.keys() if "residual" in name or "profile" in name]  # noqa: SIM118
            residual += sum(block.get_tensor(n).numel() * block.get_tensor(n).itemsize for n in kept)
    assert found["parts"]["residuals of rtn4"] == residual > 0
    assert found["parts"]["base rtn4"] + residual == parts(model)["base rtn4"]
    assert list(found["parts"].values()) == sorted(found["parts"].values(), reverse=True)


def test_architecture(model, source):  # noqa: F811
    found = details({"model": "TINY"}, QUIET)
    with safe_open(source / "model.safetensors", "pt") as weights:
        count = sum(weights.get_tensor(name).numel() for name in weights.keys())  # noqa: SIM118
    assert found["parameters"] == count
    assert (found["family"], found["layers"], found["hidden"]) == ("llama", 3, 128)
    assert found["context"] > 0


def test_profiles_say_whether_they_hold(model):
    path = (
        SlowdownPoint(0.0, KChunk()),
        SlowdownPoint(4.0, KChunk(qkv=8)),
        SlowdownPoint(15.0, KChunk(qkv=64)),
    )
    assert details({"model": "tiny"}, QUIET)["profiles"] == []
    write_profile(Profile("tiny", "rtn4", Machine.here(), BASE_US, path))
    (entry,) = details({"model": "tiny"}, QUIET)["profiles"]
    assert (entry["base"], entry["device"], entry["why_not"]) == ("rtn4", "cpu", "")
    assert [entry["detents"][pct]["qkv"] for pct in ("2.5", "5", "10", "20")] == [0, 8, 8, 64]
    old = Machine(**{**{f: getattr(Machine.here(), f) for f in Machine.__struct_fields__}, "torch": "1.0"})
    write_profile(Profile("tiny", "rtn4", old, BASE_US, path))
    assert "torch changed from 1.0" in details({"model": "tiny"}, QUIET)["profiles"][0]["why_not"]


def test_files_are_checked_and_the_bad_one_is_named(model):
    assert check_files({"model": "tiny"}, QUIET)["bytes"] == model.bytes
    weights = model.path / "model-00001.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DecdecError, match=r"model-00001\.safetensors does not match"):
        check_files({"model": "tiny"}, QUIET)
    assert store.models() == [], "it is in quarantine"


@pytest.mark.parametrize("args", [{}, {"model": ""}, {"model": 3}])
def test_no_model_is_wrong_usage(args):
    with pytest.raises(DecdecError) as caught:
        details(args, QUIET)
    assert caught.value.code == 2


@pytest.mark.parametrize("name", ["model_details", "check_files", "hub_search"])
def test_the_worker_knows_these_jobs(name):
    assert callable(jobs.find(name))


def test_parts_of_files():
    files = {
        "model-00001.safetensors": 50,
        "model.safetensors.index.json": 2,
        "base-awq4/block-0000.safetensors": 30,
        "base-awq3.5/block-0000.safetensors": 40,
        "calibration/sensitivity.safetensors": 5,
        "tokenizer.json": 7,
    }
    assert by_part(files) == {
        "INT8-X": 52,
        "base awq3.5": 40,
        "base awq4": 30,
        "tokenizer and settings": 7,
        "calibration": 5,
    }
