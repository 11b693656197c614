"""The size of a folder in which others work at the same moment."""

import os
import shutil

import pytest

from runtime.store.leftovers import tree_bytes


@pytest.fixture
def tree(tmp_path):
    for name in ("a", "b", "b/c", "d"):
        folder = tmp_path / "tree" / name
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"x" * 10)
    return tmp_path / "tree"


def test_files_count_at_every_depth(tree):
    assert tree_bytes(tree) == 40
    assert tree_bytes(tree / "none") == 0


@pytest.mark.parametrize("gone", ["a", "b", "b/c", "d"])
def test_a_folder_that_vanishes_before_it_is_looked_into_does_not_count(tree, monkeypatch, gone):
    real = os.scandir

    def scandir(path):
        if str(path) == str(tree / gone):
            shutil.rmtree(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert tree_bytes(tree) == {"b": 20}.get(gone, 30)


def test_a_file_that_vanishes_before_it_is_asked_does_not_count(tree, monkeypatch):
    real = os.lstat

    def lstat(path, **more):
        if str(path) == str(tree / "a" / "file"):
            os.unlink(path)
        return real(path, **more)

    monkeypatch.setattr(os, "lstat", lstat)
    assert tree_bytes(tree) == 30


def test_what_a_link_leads_to_does_not_count(tree):
    (tree / "a" / "link").symlink_to(tree / "b", target_is_directory=True)
    (tree / "round").symlink_to(tree, target_is_directory=True)
    assert tree_bytes(tree) == 40
