"""A server that misbehaves, and a download that neither waits nor needs settings of a proxy."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import httpx2
import pytest

from runtime.download import HttpTransport, Limits, RemoteFile, download
from tests.runtime.download.lying_server import Server

PATH = "/model.safetensors"
CONTENT = hashlib.shake_256(b"weights").digest(40_000)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,127.0.0.2")


@pytest.fixture
def server():
    running = Server()
    running.files[PATH] = CONTENT
    yield running
    running.end()


@pytest.fixture
def other():
    """The host that a hub sends its clients on to."""
    running = Server()
    running.files[PATH] = CONTENT
    yield running
    running.end()


def quick_client():
    """Without the certificates that no test needs, which take their time."""
    return httpx2.AsyncClient(timeout=20, verify=False)


@dataclass
class Client:
    """Fetches the file of a server; `waits` are the seconds it would have waited."""

    folder: object
    server: Server
    limits: Limits = field(default_factory=Limits)
    waits: list = field(default_factory=list)
    heard: list = field(default_factory=list)

    def file(self, content=CONTENT, **wrong):
        return RemoteFile(
            "model.safetensors",
            **{"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **wrong},
        )

    async def wait(self, seconds):
        self.waits.append(seconds)

    def get(self, file=None, headers=None, on_bytes=None, wait=None):
        file = file or self.file()
        transport = HttpTransport.of(self.server.url(PATH), headers, quick_client)
        target = self.folder / file.name
        on_bytes = on_bytes or self.heard.append
        download(file, target, transport, on_bytes, self.limits, wait or self.wait)
        return target.read_bytes()

    @property
    def partial(self):
        return self.folder / "model.safetensors.partial"

    @property
    def note(self):
        return self.folder / "model.safetensors.partial.etag"

    def begin(self, content=CONTENT, count=15_000):
        """Leave a part as a download of `content` that was stopped would."""
        self.partial.write_bytes(content[:count])
        self.note.write_text(f'"{hashlib.md5(content).hexdigest()}"')

    def ranges(self):
        return [headers.get("Range") for headers in self.server.asked(PATH)]


@pytest.fixture
def client(tmp_path, server):
    folder = tmp_path / "files"
    folder.mkdir()
    return Client(folder, server)
