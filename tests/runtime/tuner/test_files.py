"""Profiles are found by model, base and device, also where names of models hold dots."""

import pytest

from runtime import locations
from runtime.tuner.files import profile_files, profile_path, was_tuned


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))


def tuned(*where):
    path = profile_path(*where)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


def test_every_device_has_its_file():
    cpu, gpu = tuned("Qwen2.5-0.5B", "awq4"), tuned("Qwen2.5-0.5B", "awq4", "cuda:12")
    tuned("Qwen2.5-0.5B", "awq3.5")
    assert profile_files("Qwen2.5-0.5B", "awq4") == {"cpu": cpu, "cuda:12": gpu}
    assert profile_files("Qwen2.5-0.5B", "awq3") == {}, "awq3.5 is another base"
    assert profile_files("Qwen2", "awq4") == {}


def test_tuned_on_any_device_counts():
    assert not was_tuned("m", ["awq4", "awq3"])
    tuned("m", "awq3", "cuda:0")
    assert was_tuned("m", ["awq4", "awq3"])
    assert not was_tuned("m", ["awq4"])


def test_a_damaged_profile_set_aside_is_none():
    tuned("m", "awq4").rename(locations.profiles() / "m.awq4.json.bad")
    (locations.profiles() / "m.awq4.cuda-x.json").write_text("{}")
    assert profile_files("m", "awq4") == {}
