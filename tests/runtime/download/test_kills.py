"""A downloader that is killed, again and again, loses nothing that had arrived."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import time

import pytest

from runtime.download import RemoteFile, missing_bytes
from tests.runtime.download.conftest import PATH
from tests.runtime.download.lying_server import Play

# Of one file; many more by hand.
KILLS = int(os.environ.get("DECDEC_KILLS", "2"))
PATIENCE_S = 60
CONTENT = hashlib.shake_256(b"large").digest(20_000 * (KILLS + 2))
FILE = RemoteFile("model.safetensors", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
CHILD = """
import sys
from pathlib import Path
from runtime.download import HttpTransport, RemoteFile, download
from tests.runtime.download.conftest import quick_client
folder, url, size, sha256 = sys.argv[1:]
file = RemoteFile("model.safetensors", int(size), sha256)
download(file, Path(folder) / file.name, HttpTransport.of(url, None, quick_client), lambda have: None)
"""


def start(server, folder):
    args = [str(folder), server.url(PATH), str(FILE.bytes), FILE.sha256]
    return subprocess.Popen([sys.executable, "-c", CHILD, *args])


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be watched there")
def test_what_had_arrived_is_never_fetched_again(server, tmp_path):
    """Each process gets some bytes, then waits for more that do not come, and is killed at some moment."""
    server.files[PATH], dice = CONTENT, random.Random(7)
    for _ in range(KILLS):
        before = missing_bytes(FILE, tmp_path)
        server.plays[PATH] = [Play(drip=dice.randrange(1, 20_000))]
        child, end = start(server, tmp_path), time.monotonic() + PATIENCE_S
        while missing_bytes(FILE, tmp_path) == before and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(dice.random() * 0.2)
        child.kill()
        child.wait()
        there = FILE.bytes - missing_bytes(FILE, tmp_path)
        assert (tmp_path / "model.safetensors.partial").read_bytes() == CONTENT[:there]
        assert missing_bytes(FILE, tmp_path) < before
        server.requests.clear()
    assert start(server, tmp_path).wait(PATIENCE_S) == 0
    assert server.asked(PATH)[0]["Range"] == f"bytes={there}-"
    assert server.asked(PATH)[0]["If-Range"]
    assert (tmp_path / "model.safetensors").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
