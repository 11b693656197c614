"""Parts and whole files that a newer commit has unchanged."""

from __future__ import annotations

import pytest

from runtime.download import RemoteFile
from runtime.sources.carried import carry_over
from runtime.sources.hub_api import Listing

OLD, NEW = "a" * 40, "b" * 40


def file(name, size, sha="1"):
    return RemoteFile(name, size, sha * 64 if sha else "")


@pytest.fixture
def root(tmp_path):
    (tmp_path / OLD).mkdir()
    for name in ("whole", "part.partial", "part.partial.etag", "changed", "nameless"):
        (tmp_path / OLD / name).write_bytes(b"12345")
    return tmp_path


FILES = (file("whole", 5), file("part", 9), file("changed", 5), file("nameless", 5, ""))


def test_what_is_equal_is_taken_and_whole_files_stay_where_they_were(root):
    carry_over(Listing(OLD, FILES), Listing(NEW, (*FILES[:2], file("changed", 5, "2"), FILES[3])), root)
    taken = {path.name for path in (root / NEW).iterdir()}
    assert taken == {"whole", "part.partial", "part.partial.etag"}
    assert {path.name for path in (root / OLD).iterdir()} == {"whole", "changed", "nameless"}
    assert (root / NEW / "whole").samefile(root / OLD / "whole")


def test_what_is_here_already_is_not_replaced(root):
    (root / NEW).mkdir()
    (root / NEW / "whole").write_bytes(b"newer")
    carry_over(Listing(OLD, FILES), Listing(NEW, FILES), root)
    assert (root / NEW / "whole").read_bytes() == b"newer"


def test_a_part_is_no_file_to_carry_where_the_older_folder_is_gone(tmp_path):
    carry_over(Listing(OLD, FILES), Listing(NEW, FILES), tmp_path)
    assert list((tmp_path / NEW).iterdir()) == []


def test_the_same_commit_has_nothing_to_carry(root):
    carry_over(Listing(OLD, FILES), Listing(OLD, FILES), root)
    assert len(list((root / OLD).iterdir())) == 5
