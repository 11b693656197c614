"""Profiles survive the disk, and are refused with a reason when they do not belong here."""

import msgspec
import pytest

from runtime.progress import JobContext
from runtime.protocol.commands import Tune
from runtime.tuner import profile as profiles
from runtime.tuner.profile import Machine, Profile, profile_path, read_profile, write_profile

jobs = pytest.importorskip("runtime.tuner.jobs")


class Curve:
    """A measurer with made-up times."""

    def base_us(self, kind):
        return {"qkv": 38.0, "o": 27.0, "gate_up": 85.0, "down": 52.0}[kind]

    def corrected_us(self, kind, k_chunk):
        return self.base_us(kind) + 5 + 0.05 * k_chunk

    def limit(self, kind):
        return 256


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))


def made() -> Profile:
    return jobs.measured_profile(Tune("small", "rtn4"), Curve(), JobContext.silent())


def test_a_profile_comes_back(monkeypatch):
    profile = made()
    write_profile(profile)
    assert read_profile("small", "rtn4") == (profile, "")


def test_untuned_says_so():
    found, reason = read_profile("small", "rtn4")
    assert found is None
    assert "not tuned" in reason


@pytest.mark.parametrize(("field", "value"), [("threads", 99), ("torch", "1.0"), ("processor", "Other CPU")])
def test_another_machine_or_version_is_named(field, value):
    profile = made()
    then = msgspec.structs.replace(profile.machine, **{field: value})
    write_profile(msgspec.structs.replace(profile, machine=then))
    found, reason = read_profile("small", "rtn4")
    assert found is None
    assert field in reason
    assert str(value) in reason


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"model": 3}', b"\xff" * 40])
def test_a_damaged_file_is_kept_aside(content):
    path = write_profile(made())
    path.write_bytes(content)
    found, reason = read_profile("small", "rtn4")
    assert found is None
    assert "damaged" in reason
    assert path.with_suffix(".json.bad").read_bytes() == content
    assert "not tuned" in read_profile("small", "rtn4")[1]


def test_a_path_that_does_not_ascend_is_damage():
    path = write_profile(made())
    document = msgspec.json.decode(path.read_bytes())
    document["path"].reverse()
    path.write_bytes(msgspec.json.encode(document))
    assert "damaged" in read_profile("small", "rtn4")[1]


def test_a_profile_of_another_model_under_this_name_is_refused():
    path = write_profile(made())
    path.rename(profile_path("other", "rtn4"))
    assert read_profile("other", "rtn4")[0] is None


def test_summary_has_the_documented_shape():
    result = jobs.summary(made())
    assert set(result) == {"model", "device", "base_us", "n_tb", "path", "detents"}
    assert set(result["detents"]) == {"2.5", "5", "10", "20"}
    assert result["n_tb"] == {}
    assert result["path"][0] == {"slowdown_pct": 0.0, "k_chunk": {"qkv": 0, "o": 0, "gate_up": 0, "down": 0}}
    assert result["detents"]["20"] == result["path"][-1]["k_chunk"]
    assert set(result["base_us"]) == {"qkv", "o", "gate_up", "down"}


def test_this_machine_has_a_name():
    here = Machine.here()
    assert here.processor
    assert here.threads >= 1
    assert here == profiles.Machine.here()
