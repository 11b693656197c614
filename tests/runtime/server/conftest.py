"""A server in the test's own event loop, before the scripted worker, and the official client to ask it."""

import asyncio
import contextlib
import json
import shlex
import signal
import sys
from pathlib import Path

import httpx2
import openai
import pytest

from runtime import store
from runtime.protocol.commands import Load
from runtime.protocol.events import Loaded
from runtime.server import Access, Limits, Service, Settings, bind, url_of

FAKE = Path(__file__).parents[2] / "fakes" / "scripted_worker.py"
MODEL, OTHER = "first", "second"
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("DECDEC_HOME", str(folder))
    return folder


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """Set the scripted worker's script."""

    def use(*arguments, **script):
        path = tmp_path / "script.json"
        path.write_text(json.dumps({"rate": 0, "step_s": 0, "ticks": 1, **script}), encoding="utf-8")
        command = [sys.executable, str(FAKE), "--script", str(path), *arguments]
        monkeypatch.setenv("DECDEC_WORKER", shlex.join(command))

    use()
    return use


@pytest.fixture
def models():
    """Two prepared models, and one that lacks the base."""
    for name, bases in ((MODEL, ["awq4"]), (OTHER, ["awq4", "rtn4"]), ("third", ["rtn3"])):
        with store.building(name) as staging:
            (staging / "weights.bin").write_bytes(b"x" * 1000)
            store.publish(name, staging, {"source": "a test", "bits_per_weight": 6.4, "bases": bases})


class Serving:
    """A running server: where it is, what its engine said, and how to end it."""

    def __init__(self, service, task, url, events):
        self.service, self.task, self.url, self.events = service, task, url, events
        self.root = url.removesuffix("/v1")

    def openai(self, key="none", **options):
        return openai.AsyncOpenAI(api_key=key, base_url=self.url, **{"max_retries": 0, **options})

    def http(self, **options):
        return httpx2.AsyncClient(base_url=self.root, timeout=PATIENCE_S, **options)

    @property
    def loads(self):
        return [event.model for event in self.events if isinstance(event, Loaded)]


@pytest.fixture
def handlers():
    """A server's handlers of signals go with it, though the loop they were made in runs in pieces here."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
async def start(worker, models, handlers):
    """Start a server with the settings given; it ends with the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def begin(slowdown_pct=5.0, must_slide=False, access=None, base="awq4", **limits):
            load = Load(MODEL, base)
            settings = Settings(load, slowdown_pct, must_slide, access or Access(), Limits(**limits))
            return await stack.enter_async_context(_running(settings))

        yield begin


@contextlib.asynccontextmanager
async def _running(settings):
    events = []
    with contextlib.closing(bind("127.0.0.1", 0)) as bound:
        url = url_of("127.0.0.1", bound)
        async with Service(settings, bound, events.append) as service:
            await asyncio.wait_for(service.load(), PATIENCE_S)
            task = asyncio.create_task(service.run())
            try:
                yield Serving(service, task, url, events)
            finally:
                service.stop()
                await asyncio.wait_for(task, PATIENCE_S)


def ask(text, **fields):
    return {"model": "default", "messages": [{"role": "user", "content": text}], **fields}
