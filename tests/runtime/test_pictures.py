"""A picture takes the place of another whole or not at all."""

import errno
import os

import pytest

from runtime import pictures
from runtime.errors import DecdecError


def test_a_full_disk_leaves_the_picture_that_was_there(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "picture.png"
    path.write_bytes(b"the old picture")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DecdecError, match="is full"):
            pictures.save(pictures.new_figure(1, 1), path)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [
        (path.name, b"the old picture")
    ]
    pictures.save(pictures.new_figure(1, 1), path)
    assert path.read_bytes().startswith(b"\x89PNG")
