"""Every way a disk refuses becomes one sentence; a failed write leaves the old file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from runtime.errors import DecdecError
from runtime.store import atomic, in_words, oserrors, require_space, translated


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, r"disk of .* is full \(.* free\).*Free some space, or set DECDEC_HOME"),
        (errno.EACCES, r"may not be used by you.*set DECDEC_HOME to a folder you can write"),
        (errno.EROFS, r"read-only file system\. Set DECDEC_HOME"),
        (errno.ENOENT, "does not exist"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_sentences(home, code, words):
    with pytest.raises(DecdecError, match=words) as caught, translated(home / "models", "Writing x"):
        raise OSError(code, os.strerror(code))
    assert "\n" not in caught.value.sentence
    assert caught.value.sentence.startswith("Writing x failed: ")


def test_outside_the_home_decdec_home_is_no_advice(tmp_path):
    with pytest.raises(DecdecError) as caught, translated(tmp_path / "text", "Writing x"):
        raise OSError(errno.ENOSPC, "full")
    assert "DECDEC_HOME" not in caught.value.sentence


def write_on_a_full_disk(path):
    with atomic.replacing(path) as file:
        file.write(b"new")
        raise OSError(errno.ENOSPC, "full")


def test_a_failed_write_keeps_the_old_file_and_no_rest(home):
    atomic.write_bytes(home / "file", b"old")
    with pytest.raises(DecdecError, match="full"):
        write_on_a_full_disk(home / "file")
    assert [(p.name, p.read_bytes()) for p in home.iterdir()] == [("file", b"old")]
    with pytest.raises(KeyboardInterrupt), atomic.replacing(home / "file"):
        raise KeyboardInterrupt
    assert [p.name for p in home.iterdir()] == ["file"]


def test_a_truly_full_device():
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full on this platform")
    with pytest.raises(DecdecError, match="is full"), translated(full, "Writing"), full.open("wb") as file:
        file.write(b"x")


def test_what_ran_out_is_said(home, monkeypatch):
    monkeypatch.setattr(oserrors, "_free", lambda path: (10**9, 0))
    assert "it takes no more files, though 1.00 GB are free" in oserrors.full_words(home)
    assert oserrors.looks_full(home)
    assert oserrors.full_words(home, errno.EDQUOT).startswith("your quota on the disk of ")
    monkeypatch.setattr(oserrors, "_free", lambda path: (None, None))
    assert "(an unknown number of bytes free)" in oserrors.full_words(home)
    assert not oserrors.looks_full(home)


def test_space_is_asked_before_the_folder_exists(home):
    require_space(home / "deep" / "er", 1)
    with pytest.raises(DecdecError, match=r"Not enough disk space in .*: 1000000000\.00 GB are needed"):
        require_space(home / "deep", 10**18)
    with pytest.raises(DecdecError, match="set HF_HOME to"):
        require_space(home, 10**18, "HF_HOME")
    assert not home.exists()


def test_json_survives_the_way(home):
    atomic.write_json(home / "a" / "b.json", {"x": [1, "é"]})
    assert (home / "a" / "b.json").read_text("utf-8") == '{\n  "x": [\n    1,\n    "é"\n  ]\n}\n'


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (98_362_432, "98.4 MB"), (1_080_632_832, "1.08 GB")],
)
def test_bytes_in_words(count, words):
    assert in_words(count) == words
