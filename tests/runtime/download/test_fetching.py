"""However a server misbehaves, a download ends in the right file or in one sentence, and starts go on."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.download import Limits, UnreachableError
from runtime.errors import DecdecError
from tests.runtime.download.conftest import CONTENT, PATH, Client
from tests.runtime.download.lying_server import Play, Server

# Many more by hand.
EXAMPLES = int(os.environ.get("DECDEC_CUTS", "12"))
OTHER = hashlib.shake_256(b"other weights").digest(len(CONTENT))


@pytest.fixture(scope="module")
def lasting():
    running = Server()
    running.files[PATH] = CONTENT
    yield running
    running.end()


cuts = st.builds(
    Play, cut=st.integers(0, len(CONTENT)), reset=st.booleans(), ranges=st.booleans(), chunked=st.booleans()
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(cuts, max_size=6), st.integers(1, 4))
def test_cuts_at_any_byte_and_restarts_end_in_the_right_file(lasting, plays, tries):
    """With few tries it is given up often, and the next one has nothing but what is on disk."""
    with tempfile.TemporaryDirectory() as name:
        lasting.plays[PATH], asked = list(plays), len(lasting.requests)
        for _ in range(len(plays) + 1):
            client = Client(Path(name), lasting, Limits(tries=tries))
            try:
                assert client.get() == CONTENT
                break
            except UnreachableError:
                assert not (client.folder / "model.safetensors").exists()
        assert [path.name for path in client.folder.iterdir()] == ["model.safetensors"]
        assert len(lasting.requests) - asked <= len(plays) + 1


def test_every_cut_is_continued_at_its_byte_and_no_byte_comes_twice(client, server):
    server.plays[PATH] = [Play(cut=1), Play(cut=9_999), Play(cut=20_000), Play(cut=9_999)]
    assert client.get() == CONTENT
    assert client.ranges() == [None, "bytes=1-", "bytes=10000-", "bytes=30000-", "bytes=39999-"]
    assert server.sent == len(CONTENT)
    assert client.note.name not in [path.name for path in client.folder.iterdir()]


def test_a_later_start_asks_for_the_rest_of_the_same_version(client, server):
    client.begin(count=15_000)
    assert client.get() == CONTENT
    asked = server.asked(PATH)[0]
    assert asked["Range"] == "bytes=15000-"
    assert asked["If-Range"] == f'"{hashlib.md5(CONTENT).hexdigest()}"'
    assert server.sent == len(CONTENT) - 15_000


def test_a_file_that_changed_between_starts_is_begun_anew_and_never_glued(client, server):
    client.begin(OTHER)
    assert client.get() == CONTENT
    assert client.ranges() == ["bytes=15000-"]


def test_a_server_that_heeds_no_condition_is_found_out_by_its_version(client, server):
    client.begin(OTHER)
    now = {"ETag": '"new"', "Content-Range": f"bytes 15000-{len(CONTENT) - 1}/{len(CONTENT)}"}
    server.plays[PATH] = [Play(206, now, CONTENT[15_000:])]
    assert client.get() == CONTENT
    assert client.ranges() == ["bytes=15000-", None]


def test_a_weak_version_is_compared_but_not_asked_for(client, server):
    client.begin()
    client.note.write_text('W/"weak"')
    assert client.get() == CONTENT
    assert "If-Range" not in server.asked(PATH)[0]
    assert client.ranges() == ["bytes=15000-", None]


def test_a_part_of_an_unknown_version_is_found_out_by_its_hash_and_fetched_once_more(client, server):
    client.partial.write_bytes(OTHER[:15_000])
    assert client.get() == CONTENT
    assert client.ranges() == ["bytes=15000-", None]


def test_a_whole_part_is_only_checked_and_one_that_is_too_long_is_begun_anew(client, server):
    client.partial.write_bytes(CONTENT)
    assert client.get() == CONTENT
    assert server.requests == []
    client.partial.write_bytes(CONTENT + b"more")
    assert client.get() == CONTENT
    assert client.ranges() == [None]


WRONG = {
    "another start": Play(206, {"Content-Range": f"bytes 14999-{len(CONTENT) - 1}/{len(CONTENT)}"}, b"x"),
    "another size": Play(206, {"Content-Range": "bytes 15000-39999/50000"}, CONTENT[15_000:]),
    "beyond the end": Play(206, {"Content-Range": f"bytes 15000-99999/{len(CONTENT)}"}, bytes(85_000)),
    "no range named": Play(206, {}, CONTENT[15_000:]),
    "many ranges": Play(206, {"Content-Type": "multipart/byteranges; boundary=x"}, b"--x"),
    "nothing there": Play(416, {"Content-Range": "bytes */15000"}),
    "whole, of another size": Play(200, {}, CONTENT[:-1]),
    "endless": Play(200, {}, CONTENT + b"more", chunked=True),
}


@pytest.mark.parametrize("play", WRONG.values(), ids=WRONG)
def test_an_answer_that_does_not_continue_begins_the_file_anew_once(client, server, play):
    client.begin()
    server.plays[PATH] = [play]
    assert client.get() == CONTENT
    assert client.ranges() == ["bytes=15000-", None]
    client.begin()
    server.always[PATH] = play
    server.requests.clear()
    with pytest.raises(DecdecError, match=r"^Downloading model.safetensors failed: "):
        client.get()
    assert len(server.requests) == 2
    server.always.clear()
    assert client.get() == CONTENT


REFUSED = {
    "a login page": (
        Play(200, {"Content-Type": "text/html"}, b"<html>log in"),
        "login page or proxy answered",
    ),
    "a page in chunks": (
        Play(200, {"Content-Type": "application/octet-stream"}, b"\n<!DOCTYPE HTML>log in", chunked=True),
        "login page or proxy answered",
    ),
    "packed": (Play(headers={"Content-Encoding": "gzip"}, packed=True), r"packed \(gzip\)"),
    "forbidden": (Play(403), "the answer is 403"),
    "empty success": (Play(204), "the answer is 204"),
    "not modified": (Play(304), "the answer is 304"),
}


@pytest.mark.parametrize(("play", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_answer_is_refused_at_once_and_nothing_of_it_stays(client, server, play, words):
    client.begin()
    server.always[PATH] = play
    with pytest.raises(DecdecError, match=words) as caught:
        client.get()
    assert not isinstance(caught.value, UnreachableError)
    assert len(server.requests) == 1
    server.always.clear()
    assert client.get() == CONTENT
    assert client.ranges()[-1] == "bytes=15000-"


def test_a_damaged_file_is_fetched_once_more_then_told_and_removed(client, server):
    damaged = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    server.plays[PATH] = [Play(200, {}, damaged)]
    assert client.get() == CONTENT
    server.requests.clear()
    server.files[PATH] = damaged
    with pytest.raises(DecdecError, match="arrived damaged: twice its hash is") as caught:
        client.get()
    assert caught.value.code == 1
    assert len(server.requests) == 2
    assert list(client.folder.iterdir()) == [client.folder / "model.safetensors"]
    server.files[PATH] = CONTENT
    assert client.get() == CONTENT


def test_blobs_of_git_and_empty_files(client, server):
    # `printf '{}' | git hash-object --stdin`, and git's well-known name of the empty blob
    server.files[PATH] = b"{}"
    blob = client.file(b"{}", sha256="", git_sha1="9e26dfeeb6e641a33dae4961196235bdb965b21b")
    assert client.get(blob) == b"{}"
    server.files[PATH] = b"[]"
    with pytest.raises(DecdecError, match="arrived damaged"):
        client.get(blob)
    server.requests.clear()
    empty = client.file(b"", sha256="", git_sha1="e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
    assert client.get(empty) == b""
    assert server.requests == []
