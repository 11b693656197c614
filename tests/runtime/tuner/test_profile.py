"""Profiles survive the disk, and are refused with a reason when they do not belong here."""

import msgspec
import pytest

from runtime.progress import JobContext
from runtime.protocol.commands import Tune
from runtime.tuner import profile as profiles
from runtime.tuner.measurer import NO_PROGRAMS, Launch
from runtime.tuner.profile import Machine, Profile, profile_path, read_profile, write_profile

jobs = pytest.importorskip("runtime.tuner.jobs")


class Curve:
    """A measurer with made-up times."""

    joint_trials, rest_us = 12, 0.0

    def base_us(self, kind):
        return {"qkv": 38.0, "o": 27.0, "gate_up": 85.0, "down": 52.0}[kind]

    def launches(self, kind):
        return (NO_PROGRAMS,)

    def rungs(self, kind, launch):
        return (8, 64, 256)

    def corrected_us(self, kind, launch, k_chunk):
        return self.base_us(kind) + (5 + 0.05 * k_chunk if k_chunk else 0)

    def table_pct(self, launches, table):
        ks = [table.qkv, table.o, table.gate_up, table.down]
        return 100 * sum(5.5 + 0.05 * k for k in ks if k) / 202.0


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))


def made() -> Profile:
    target = jobs.Target(Curve(), Machine.here())
    return jobs.make_profile(Tune("small", "rtn4"), target, jobs.run(target, JobContext.silent()))


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
    assert set(result) == {"model", "device", "base_us", "n_tb", "path", "detents", "report"}
    for detent in result["report"]["detents"][1:]:
        assert result["detents"][f"{detent['target_pct']:g}"] == detent["k_chunk"]
        assert detent["measured_pct"] <= detent["target_pct"]
    assert set(result["detents"]) == {"2.5", "5", "10", "20"}
    assert result["n_tb"] == {}
    assert result["path"][0] == {"slowdown_pct": 0.0, "k_chunk": {"qkv": 0, "o": 0, "gate_up": 0, "down": 0}}
    assert result["detents"]["20"] == result["path"][-1]["k_chunk"]
    assert set(result["base_us"]) == {"qkv", "o", "gate_up", "down"}


def gpu(**changes):
    found = Machine("cuda:0", "NVIDIA H200", 0, "2.13", "0.68", "0.1", driver="580.159.04", triton="3.6")
    return msgspec.structs.replace(found, **changes)


def test_a_gpu_has_a_profile_of_its_own():
    write_profile(made())
    on_gpu = msgspec.structs.replace(
        made(), machine=gpu(), launches={"down": Launch(32, 8, 8)}, link_gb_s=50.4
    )
    assert on_gpu.n_tb == {"down": 32}
    path = write_profile(on_gpu)
    assert path.name == "small.rtn4.cuda-0.json"
    assert read_profile("small", "rtn4", gpu()) == (on_gpu, "")
    assert read_profile("small", "rtn4")[0] == made()


@pytest.mark.parametrize("field", ["processor", "driver", "triton", "torch"])
def test_another_gpu_or_driver_makes_a_profile_worthless(field):
    write_profile(msgspec.structs.replace(made(), machine=gpu()))
    found, reason = read_profile("small", "rtn4", gpu(**{field: "other"}))
    assert found is None
    assert field in reason


def test_profiles_from_before_gpus_are_still_valid():
    path = write_profile(made())
    document = msgspec.json.decode(path.read_bytes())
    for name in ("launches", "detents", "link_gb_s"):
        del document[name]
    for name in ("driver", "triton"):
        del document["machine"][name]
    path.write_bytes(msgspec.json.encode(document))
    assert read_profile("small", "rtn4")[0].path == made().path


def test_this_machine_has_a_name():
    here = Machine.here()
    assert here.processor
    assert here.threads >= 1
    assert here == profiles.Machine.here()
