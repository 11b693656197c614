"""A disk that fills up while a file is fetched: one sentence, what is there stays, the rest comes later."""

import json
import subprocess
import sys

import pytest

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import hub
from runtime.sources.hub_api import Listing
from runtime.sources.resumable import RemoteFile

pytest.importorskip("resource", reason="this system has no limits of files")

# The limit of a process stands for the full disk; writing beyond it fails in the same way.
_CLIENT = """
import hashlib, json, resource, sys
from contextlib import contextmanager
from pathlib import Path
from runtime.errors import DecdecError
from runtime.sources.resumable import RemoteFile, download, missing_bytes

content = bytes(i * 7 % 251 for i in range(100_000))
file = RemoteFile("model.safetensors", len(content), hashlib.sha256(content).hexdigest())
folder, served = Path(sys.argv[1]), []

class Server:
    @contextmanager
    def open(self, name, start):
        yield start, self.pieces(start)

    def pieces(self, start):
        for at in range(start, len(content), 4096):
            served.append(at)
            yield content[at : at + 4096]

def fetch():
    download(file, folder / file.name, Server(), lambda have: None, wait=lambda seconds: None)

_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
try:
    fetch()
except DecdecError as error:
    failed = {"what": error.what, "sentence": error.sentence, "code": error.code}
missing, first = missing_bytes(file, folder), len(served)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
fetch()
whole = (folder / file.name).read_bytes() == content
print(json.dumps({**failed, "missing": missing, "served_again": served[first], "whole": whole}))
"""


def test_what_is_there_is_kept_and_the_next_start_fetches_the_rest(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", _CLIENT, str(tmp_path)], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["what"] == "Downloading model.safetensors failed"
    assert f"the disk of {tmp_path / 'model.safetensors'} is full" in found["sentence"]
    assert "or set DECDEC_HOME to a folder on a larger disk" in found["sentence"]
    assert 0 < found["missing"] < 100_000
    assert found["served_again"] == 100_000 - found["missing"]
    assert found["whole"]


def test_a_hub_s_model_that_is_too_large_is_refused_before_the_first_byte(home, monkeypatch):
    files = (RemoteFile("config.json", 2), RemoteFile("model.safetensors", 10**17))
    monkeypatch.setattr(hub.hub_api, "list_files", lambda repo: Listing("c0ffee", files))
    monkeypatch.setattr(hub.hub_api, "in_hub_cache", lambda repo, commit=None: None)
    monkeypatch.setattr(hub, "HubTransport", lambda *of: pytest.fail("something was asked for"))
    with pytest.raises(DecdecError) as caught:
        hub.HubSource("o--m", "o/m", "o/m").fetch(JobContext.silent())
    assert str(home) in caught.value.what
    assert " GB are needed and " in caught.value.why
    assert "DECDEC_HOME to a folder on a larger disk" in caught.value.fix
    assert not [path for path in home.rglob("*") if path.is_file() and path.suffix != ".lock"]
