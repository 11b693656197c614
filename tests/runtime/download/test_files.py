"""Names that are files of any system, and nothing else."""

from __future__ import annotations

import os

import msgspec
import pytest

from runtime.download import RemoteFile, check_distinct, is_there, missing_bytes
from runtime.errors import DecdecError

NAMES = [
    "",
    ".",
    "..",
    ".hidden",
    "../escape.json",
    "/etc/passwd",
    "a/b.json",
    "a\\b.json",
    "C:b.json",
    "nul\0.json",
    "line\n",
    "config.json\n",
    "ends.",
    "ends ",
    "x\u202ejson.exe",
    "ünicode.json",
    "x" * 201,
    "x" * 5000,
    "con",
    "CON.json",
    "nul.tar.gz",
    "aux.safetensors",
    "com1.json",
    "LPT9",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_could_be_another_file_is_none(name):
    with pytest.raises(ValueError, match=r"no plain file name|name of a device"):
        RemoteFile(name, 3)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"name": name, "bytes": 3}, RemoteFile)


@pytest.mark.parametrize(
    "name", ["config.json", "a" * 200, "model-00001-of-00002.safetensors", "console.json"]
)
def test_usual_names_are_files(name):
    assert RemoteFile(name, 0).name == name


@pytest.mark.parametrize(
    "wrong",
    [
        {"bytes": -1},
        {"bytes": 2**63},
        {"sha256": "a" * 63},
        {"sha256": "A" * 64},
        {"git_sha1": "0" * 40 + "\n"},
    ],
)
def test_sizes_and_hashes_that_cannot_be(wrong):
    with pytest.raises(ValueError, match=r"is no size|the hash of"):
        RemoteFile("a.json", **{"bytes": 1, **wrong})


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("Config.json", "config.json"), "where case does not count"),
        (("config.json", "Config.json"), "where case does not count"),
        (("a", "b", "a"), "listed twice"),
    ],
)
def test_two_names_of_one_file_are_refused(names, words):
    with pytest.raises(DecdecError, match=words):
        check_distinct([RemoteFile(name, 1) for name in names], "o/m")


def test_a_link_is_never_taken_for_a_file_that_was_downloaded(tmp_path):
    file = RemoteFile("a.json", 3)
    (tmp_path / "elsewhere").write_bytes(b"abc")
    os.symlink(tmp_path / "elsewhere", tmp_path / "a.json")
    os.symlink(tmp_path / "elsewhere", tmp_path / "a.json.partial")
    assert not is_there(file, tmp_path)
    assert missing_bytes(file, tmp_path) == 3
    (tmp_path / "a.json").unlink()
    (tmp_path / "a.json").write_bytes(b"abc")
    assert is_there(file, tmp_path)
    assert missing_bytes(file, tmp_path) == 0
