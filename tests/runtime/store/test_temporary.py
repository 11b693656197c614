"""Folders for a while: gone with the block, and one sentence where none can be made."""

import errno
import os
import tempfile

import pytest

from runtime.errors import DecdecError
from runtime.store.temporary import temporary_folder


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_goes_with_what_is_in_it_and_what_was_raised_comes_through(place):
    folder = None

    def work():
        nonlocal folder
        with temporary_folder() as folder:
            (folder / "within").mkdir()
            (folder / "within" / "file").write_text("x")
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert folder.parent == place
    assert list(place.iterdir()) == []


def test_what_cannot_be_removed_hides_nothing(place, monkeypatch):
    def refuse(*about, **more):
        raise PermissionError(errno.EACCES, "Permission denied")

    def work():
        with temporary_folder() as folder:
            (folder / "file").write_text("x")
            for name in ("unlink", "rmdir", "chmod"):
                monkeypatch.setattr(os, name, refuse)
            raise DecdecError("the real reason")

    with pytest.raises(DecdecError, match="the real reason"):
        work()
    assert [path.name for path in place.glob("*/*")] == ["file"]


def test_a_place_that_takes_no_folder_is_one_sentence(place, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(place / "gone"))
    with (
        pytest.raises(DecdecError, match=r"Making a temporary folder failed.*does not exist"),
        temporary_folder(),
    ):
        pass


def test_no_place_at_all_is_one_sentence(monkeypatch):
    def refuse(*about):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", refuse)
    with (
        pytest.raises(DecdecError, match=r"No usable temporary directory .* or set TMPDIR to"),
        temporary_folder(),
    ):
        pass
