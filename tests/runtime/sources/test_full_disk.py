"""A disk that fills up while a file is fetched: one sentence, what is there stays, the rest comes later."""

import json
import subprocess
import sys

import pytest

from runtime.download import RemoteFile
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import hub
from runtime.sources.hub_api import Listing

pytest.importorskip("resource", reason="this system has no limits of files")

# The limit of a process stands for the full disk; writing beyond it fails in the same way.
_CLIENT = """
import hashlib, json, resource, sys
from pathlib import Path
from runtime.download import HttpTransport, RemoteFile, download, missing_bytes
from runtime.errors import DecdecError
from tests.runtime.download.lying_server import Server

content = hashlib.shake_256(b"weights").digest(3_000_000)
file = RemoteFile("model.safetensors", len(content), hashlib.sha256(content).hexdigest())
folder, server = Path(sys.argv[1]), Server()
server.files["/w"] = content
fetch = lambda: download(file, folder / file.name, HttpTransport.of(server.url("/w")), lambda have: None)

_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
try:
    fetch()
except DecdecError as error:
    failed = {"what": error.what, "sentence": error.sentence, "code": error.code}
missing = missing_bytes(file, folder)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
fetch()
whole = (folder / file.name).read_bytes() == content
ranges = [headers.get("Range") for headers in server.asked("/w")]
print(json.dumps({**failed, "missing": missing, "ranges": ranges, "whole": whole}))
"""


def test_what_is_there_is_kept_and_the_next_start_fetches_the_rest(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    done = subprocess.run(
        [sys.executable, "-c", _CLIENT, str(tmp_path)], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["what"] == "Downloading model.safetensors failed"
    assert f"the disk of {tmp_path / 'model.safetensors'} is full" in found["sentence"]
    assert "or set DECDEC_HOME to a folder on a larger disk" in found["sentence"]
    assert found["missing"] == 2_000_000
    assert found["ranges"] == [None, "bytes=1000000-"]
    assert found["whole"]


def test_a_hub_s_model_that_is_too_large_is_refused_before_the_first_byte(home, monkeypatch):
    files = (RemoteFile("config.json", 2), RemoteFile("model.safetensors", 10**17))
    monkeypatch.setattr(hub.hub_api, "list_files", lambda repo, tick: Listing("c0ffee", files))
    monkeypatch.setattr(hub.hub_api, "in_hub_cache", lambda repo, listing=None: None)
    monkeypatch.setattr(hub.hub_api, "transport", lambda *of: pytest.fail("something was asked for"))
    with pytest.raises(DecdecError) as caught:
        hub.HubSource("o--m", "o/m", "o/m").fetch(JobContext.silent())
    assert str(home) in caught.value.what
    assert " GB are needed and " in caught.value.why
    assert "DECDEC_HOME to a folder on a larger disk" in caught.value.fix
    assert not [path for path in (home / "downloads").rglob("*") if path.is_file()]
