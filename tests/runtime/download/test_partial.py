"""What is on the way to a file: nothing is written through links, and no note stays without its bytes."""

from __future__ import annotations

import hashlib
import os

import pytest

from runtime.errors import DecdecError
from tests.runtime.download.conftest import CONTENT, PATH
from tests.runtime.download.lying_server import Play

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need rights there that tests do not have")


@pytest.fixture
def victim(tmp_path):
    file = tmp_path / "victim"
    file.write_bytes(b"precious")
    return file


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
@pytest.mark.parametrize("suffix", ["", ".partial", ".partial.etag"], ids=["file", "part", "note"])
def test_nothing_is_written_through_a_link(client, server, victim, link, suffix):
    place = client.folder / f"model.safetensors{suffix}"
    link(victim, place)
    assert client.get() == CONTENT
    assert victim.read_bytes() == b"precious"
    assert not (client.folder / "model.safetensors").is_symlink()
    assert client.ranges() == [None]


def test_a_link_to_nowhere_makes_no_file_there(client, tmp_path):
    os.symlink(tmp_path / "new", client.partial)
    assert client.get() == CONTENT
    assert not (tmp_path / "new").exists()


def test_something_else_in_the_place_of_a_part_is_one_sentence(client, server):
    client.partial.mkdir()
    with pytest.raises(DecdecError, match=r"Downloading model.safetensors failed: .*directory"):
        client.get()
    assert server.requests == []


@pytest.mark.parametrize("suffix", [".partial", ".partial.etag"], ids=["part", "note"])
def test_a_pipe_is_neither_read_nor_written(client, server, suffix):
    os.mkfifo(client.folder / f"model.safetensors{suffix}")
    if suffix == ".partial":
        with pytest.raises(DecdecError, match="no regular file"):
            client.get()
    else:
        assert client.get() == CONTENT


def test_a_folder_that_may_not_be_written_is_one_sentence(client, monkeypatch):
    def refuse(*args):
        raise PermissionError(13, "no", str(client.partial))

    monkeypatch.setattr("runtime.download.partial.os.open", refuse)
    with pytest.raises(DecdecError, match="may not be used by you"):
        client.get()


@pytest.mark.parametrize("note", [b"\xff\xfe", b"", b"no quotes", b'"\n"', b'"x' * 5000], ids=repr)
def test_a_spoilt_note_only_means_that_the_version_is_not_known(client, server, note):
    client.begin()
    client.note.write_bytes(note)
    assert client.get() == CONTENT
    assert "If-Range" not in server.asked(PATH)[0]
    assert client.ranges() == ["bytes=15000-"]


def test_the_note_is_of_the_version_whose_bytes_are_there(client, server):
    client.begin(bytes(len(CONTENT)))
    server.plays[PATH] = [Play(cut=100)]
    client.limits = type(client.limits)(tries=1)
    with pytest.raises(DecdecError, match="cannot be reached"):
        client.get()
    assert client.partial.read_bytes() == CONTENT[:100]
    assert client.get() == CONTENT
    etag = hashlib.md5(CONTENT).hexdigest()
    assert [headers.get("If-Range") for headers in server.asked(PATH)][1] == f'"{etag}"'
    assert client.ranges() == ["bytes=15000-", "bytes=100-"]
