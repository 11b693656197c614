"""However often a download is cut, it ends in the right file or in one sentence."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import DecdecError, Interrupted
from runtime.sources.resumable import RemoteFile, UnreachableError, download, missing_bytes

CONTENT = bytes(i * 7 % 251 for i in range(1000))
FILE = RemoteFile("model.safetensors", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


class FakeServer:
    """Serves pieces of 64 bytes; each opening follows a plan: (bytes until the cut, honours ranges)."""

    def __init__(self, plans, content=CONTENT):
        self.plans, self.content, self.served = list(plans), content, 0

    @contextmanager
    def open(self, name, start):
        cut, ranges = self.plans.pop(0) if self.plans else (None, True)
        if cut == 0:
            raise UnreachableError("refused")
        yield (start if ranges else 0), self._pieces(start if ranges else 0, cut)

    def _pieces(self, at, cut):
        end = len(self.content) if cut is None else min(at + cut, len(self.content))
        while at < end:
            piece = self.content[at : min(at + 64, end)]
            self.served += len(piece)
            at += len(piece)
            yield piece
        if cut is not None:
            raise UnreachableError("cut")


def get(folder, server, on_bytes=lambda have: None, file=FILE):
    download(file, folder / file.name, server, on_bytes, wait=lambda seconds: None)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=8),
    st.lists(st.integers(1, 999), max_size=4),
)
def test_cuts_and_interruptions_always_end_in_the_right_file(plans, stops):
    with tempfile.TemporaryDirectory() as name:
        folder, server, seen = Path(name), FakeServer(plans), []

        def on_bytes(have):
            seen.append(have)
            if stops and have >= stops[0]:
                stops.pop(0)
                raise Interrupted

        for _ in range(30):
            try:
                get(folder, server, on_bytes)
                break
            except (Interrupted, UnreachableError):
                assert not (folder / FILE.name).exists()
        assert (folder / FILE.name).read_bytes() == CONTENT
        assert [p.name for p in folder.iterdir()] == [FILE.name]
        assert max(seen) == len(CONTENT)
        if all(ranges for _, ranges in plans):
            assert server.served == len(CONTENT)


def test_a_dead_server_is_given_up_and_the_rest_waits(tmp_path):
    with pytest.raises(UnreachableError):
        get(tmp_path, FakeServer([(300, True)] + [(0, True)] * 50))
    assert missing_bytes(FILE, tmp_path) == 700
    server = FakeServer([])
    get(tmp_path, server)
    assert server.served == 700
    assert missing_bytes(FILE, tmp_path) == 0


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"!", CONTENT + b"more"])
def test_wrong_content_is_refused_and_does_not_poison_the_next_start(tmp_path, content):
    for _ in range(2):
        with pytest.raises(DecdecError, match=r"arrived damaged|more than its 1000 bytes") as caught:
            get(tmp_path, FakeServer([], content))
        assert caught.value.code == 1
    assert not (tmp_path / FILE.name).exists()
    get(tmp_path, FakeServer([(None, False)]))
    assert (tmp_path / FILE.name).read_bytes() == CONTENT


def test_a_stale_partial_file_of_another_content_heals(tmp_path):
    (tmp_path / f"{FILE.name}.partial").write_bytes(b"x" * 500)
    with pytest.raises(DecdecError, match="arrived damaged"):
        get(tmp_path, FakeServer([]))
    get(tmp_path, FakeServer([]))
    (tmp_path / FILE.name).unlink()
    (tmp_path / f"{FILE.name}.partial").write_bytes(b"x" * 5000)
    get(tmp_path, FakeServer([]))


def test_git_blob_hash_and_empty_file(tmp_path):
    # `printf '{}' | git hash-object --stdin`, and git's well-known name of the empty blob
    config = RemoteFile("config.json", 2, git_sha1="9e26dfeeb6e641a33dae4961196235bdb965b21b")
    get(tmp_path, FakeServer([], b"{}"), file=config)
    with pytest.raises(DecdecError, match="arrived damaged"):
        get(tmp_path, FakeServer([], b"[]"), file=config)
    get(
        tmp_path,
        FakeServer([]),
        file=RemoteFile("empty.txt", 0, git_sha1="e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
    )
    assert (tmp_path / "empty.txt").read_bytes() == b""
