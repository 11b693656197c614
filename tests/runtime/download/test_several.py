"""Several files at once: one progress, one failure for all, and nothing that is here is fetched again."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from runtime.download import Address, HttpTransport, Limits, RemoteFile, UnreachableError, download_all
from runtime.errors import DecdecError, Interrupted
from runtime.progress import JobContext
from tests.runtime.download.conftest import quick_client
from tests.runtime.download.lying_server import Play

SIZES = {"a.json": 30, "b.safetensors": 90_000, "c.safetensors": 60_000, "d.safetensors": 70_000, "e.json": 0}
CONTENTS = {name: hashlib.shake_256(name.encode()).digest(size) for name, size in SIZES.items()}
FILES = [
    RemoteFile(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in CONTENTS.items()
]
TOTAL = sum(SIZES.values())


class Model:
    """The files of a server, fetched into a folder; `events` are what was reported."""

    def __init__(self, server, folder):
        self.server, self.folder, self.events = server, folder, []
        self.server.files.update({f"/{name}": content for name, content in CONTENTS.items()})

    async def wait(self, seconds):
        pass

    def get(self, limits=None, stop=lambda: False, files=FILES, wait=None):
        transport = HttpTransport(lambda file: Address(self.server.url(f"/{file.name}")), quick_client)
        ctx = JobContext("prepare", self.events.append, stop)
        download_all(files, self.folder, transport, ctx, limits or Limits(), wait or self.wait)

    def whole(self):
        return {path.name: path.read_bytes() for path in self.folder.iterdir()} == CONTENTS

    def asked(self):
        return [path.strip("/") for path, _ in self.server.requests]


@pytest.fixture
def model(server, tmp_path):
    return Model(server, tmp_path / "model")


def test_largest_first_and_one_progress_for_all(model):
    model.get(Limits(connections=1))
    assert model.whole()
    assert model.asked() == ["b.safetensors", "d.safetensors", "c.safetensors", "a.json"]
    done = [event.done for event in model.events]
    assert done == sorted(done)
    assert done[-1] == TOTAL
    assert {(event.step, event.total, event.unit) for event in model.events} == {("download", TOTAL, "bytes")}


def test_several_connections_at_once(model):
    """None of the first three answers ends before all of them have begun."""
    for name in ("b", "d", "c"):
        model.server.plays[f"/{name}.safetensors"] = [Play(silent=True)]

    def stop():
        if len(model.server.requests) >= 3:
            model.server.over.set()
        return False

    model.get(Limits(connections=3), stop)
    assert model.whole()
    assert sorted(model.asked()[:3]) == ["b.safetensors", "c.safetensors", "d.safetensors"]


def test_what_is_here_is_not_fetched_again_and_parts_are_read_first(model):
    model.get()
    for name in ("c.safetensors", "a.json"):
        (model.folder / name).unlink()
    (model.folder / "c.safetensors.partial").write_bytes(CONTENTS["c.safetensors"][:20_000])
    model.server.requests.clear()
    model.events.clear()
    model.get()
    assert model.whole()
    assert sorted(model.asked()) == ["a.json", "c.safetensors"]
    assert model.server.asked("/c.safetensors")[0]["Range"] == "bytes=20000-"
    assert [event.step for event in model.events if event.step == "verify"] == ["verify"]
    assert (model.events[0].done, model.events[0].total) == (20_000, 20_000)
    assert next(event.done for event in model.events if event.step == "download") == TOTAL - 40_000 - 30


def test_nothing_to_do_asks_for_nothing(model):
    model.get()
    model.server.requests.clear()
    model.get()
    assert model.server.requests == []
    assert model.events[-1].done == TOTAL


def test_the_first_failure_stops_the_others_and_keeps_every_part(model):
    model.server.always["/d.safetensors"] = Play(403)
    for name in ("b", "c"):
        model.server.always[f"/{name}.safetensors"] = Play(drip=10_000)
    with pytest.raises(DecdecError, match=r"Downloading d\.safetensors failed: the answer is 403"):
        model.get()
    model.server.always.clear()
    model.server.requests.clear()
    parts = {path.stem: path.stat().st_size for path in model.folder.glob("*.partial")}
    model.get()
    assert model.whole()
    assert set(parts) >= {"b.safetensors", "c.safetensors", "d.safetensors"}
    for name in [name for name, size in parts.items() if 0 < size < SIZES[name]]:
        assert model.server.asked(f"/{name}")[0]["Range"] == f"bytes={parts[name]}-"


def test_a_stop_ends_all_within_what_each_waits_for(model):
    model.server.always["/b.safetensors"] = Play(drip=10_000)
    model.server.always["/c.safetensors"] = Play(silent=True)
    model.server.always["/d.safetensors"] = Play(503, {"Retry-After": "99"})

    async def forever(seconds):
        await asyncio.Event().wait()

    with pytest.raises(Interrupted) as caught:
        model.get(stop=lambda: len(model.server.requests) >= 4, wait=forever)
    assert caught.value.continues
    model.server.always.clear()
    model.get()
    assert model.whole()


def test_a_wrong_file_alone_is_fetched_again(model):
    wrong = bytes(len(CONTENTS["c.safetensors"]))
    model.server.plays["/c.safetensors"] = [Play(200, {}, wrong)]
    model.get()
    assert model.whole()
    assert len(model.server.asked("/c.safetensors")) == 2
    assert len(model.asked()) == 5


def test_while_it_waits_the_progress_says_for_what(model):
    model.server.plays["/b.safetensors"] = [Play(429, {"Retry-After": "42"})]
    said = []

    async def wait(seconds):
        while not any("42 s" in event.note for event in model.events):
            await asyncio.sleep(0.02)
        said.append(seconds)

    model.get(wait=wait)
    assert said == [42]
    assert "next attempt in 42 s: the answer is 429" in {event.note for event in model.events}


def test_names_that_clash_are_refused_before_anything_is_asked(model):
    with pytest.raises(DecdecError, match=r"A\.json and a\.json are one file"):
        model.get(files=[RemoteFile("A.json", 1), RemoteFile("a.json", 1)])
    assert model.server.requests == []


def test_a_dead_server_is_unreachable(model):
    model.server.shutdown()
    model.server.server_close()
    with pytest.raises(UnreachableError, match="the server cannot be reached"):
        model.get(Limits(tries=2))
