"""The worker's protocol, both ways: commands on its stdin, events on its stdout.

An input that begins with `commands` is read as the worker does, any other as the front end and the command
line do, with all that they make of events.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
from pathlib import Path
from random import Random

from app import format
from app.job_progress import JobProgress
from app.session import ChatSession
from runtime.client.process import STREAM_LIMIT
from runtime.client.streaming import WorkerClient
from runtime.errors import DecdecError
from runtime.protocol.commands import Generate, Job, Load, Message, Prepare, Quit, SetSlowdown, Stop, Tune
from runtime.protocol.events import (
    Done,
    Event,
    Failed,
    KChunk,
    Loaded,
    Progress,
    Ready,
    SlowdownPoint,
    Stats,
    Token,
)
from runtime.protocol.lines import decode_event, encode, lines_of
from runtime.worker.inbox import Inbox
from tests.fuzz.mutations import mutate_bytes, mutate_json_bytes

NAME = "protocol"
_COMMANDS = (
    Load("small"), Prepare("owner/small"), Generate((Message("user", "Hi"),)), SetSlowdown(5.0), Stop(),
    Tune("small"), Job("doctor", {"a": [1]}), Quit(),
)  # fmt: skip
_STATS = Stats(50.0, 0.1, 10, 0, 3, 13, 2048, 5.0, 4.9, KChunk(8, 8, 8, 8), 40)
_EVENTS = (
    Ready(7), Progress("prepare", "download", 5, 10, "bytes", 1.5, 3.0, "a note"),
    Loaded("small", "awq4", "cpu", 2048, 1 << 20, (SlowdownPoint(0, KChunk()), SlowdownPoint(5, KChunk(8)))),
    Token("Hi", 1), Token(" there", 2), _STATS, Failed("generate", "It failed", "why", "fix"),
    Done("generate", {"text": "Hi there", "finish_reason": "stop", "dropped_messages": 0}),
)  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """Every message, and lines that are none."""
    commands = [*map(encode, _COMMANDS)]
    events = [*map(encode, _EVENTS)]
    odd = [
        b'{"type":"token","text":"' + b"x" * (1 << 20) + b'","index":1}\n',
        b'{"type":"job","name":"x","args":' + b"[" * 50_000 + b"\n",
        b'{"type":"job","name":"x","args":{"a":' + b"[" * 900 + b"]" * 900 + b"}}\n",
        b'{"type":"done","job":"generate","result":' + b'{"a":' * 50_000 + b"\n",
        b'{"type":"token","type":"done","text":"x","index":1,"index":2}\n',
        b'{"type":"set_slowdown","pct":NaN}\n{"type":"set_slowdown","pct":1e999}\n',
        b'{"type":"generate","messages":[{"role":"user","content":"\\ud800"}]}\n',
        b"Loading weights: 100%\n" + events[3],
        events[3][:-5] + events[4],
        b"\n\n\n", b"\xff\xfe\n", b"null\n", b"[]\n", b"9" * 5000 + b"\n", b'{"type":"token"', b'"' * 70_000,
    ]  # fmt: skip
    every = [*commands, b"".join(commands), *events, b"".join(events), *odd]
    return [kind + data for data in every for kind in (b"commands\n", b"events\n")]


def check(data: bytes, folder: Path) -> None:
    """Feed all lines to whoever reads such ones."""
    kind, _, body = data.partition(b"\n")
    if kind == b"commands":
        _worker(body)
    else:
        _front_end(body)
        with contextlib.suppress(DecdecError):
            for line in lines_of(io.BytesIO(body)):
                decode_event(line)


def mutate(data: bytes, random: Random) -> bytes:
    """One line of it changed by structure, or bytes anywhere."""
    kind, _, body = data.partition(b"\n")
    if random.random() < 0.3:
        return kind + b"\n" + mutate_bytes(body, random)
    lines = body.split(b"\n")
    at = random.randrange(len(lines))
    lines[at] = mutate_json_bytes(lines[at], random)
    return kind + b"\n" + b"\n".join(lines)


def _worker(body: bytes) -> None:
    failures: list[DecdecError] = []
    inbox = Inbox(failures.append)
    inbox.read(io.BytesIO(body))
    assert all(error.sentence for error in failures)


class _Child:
    """A process that has written everything."""

    returncode = 0

    def __init__(self, body: bytes) -> None:
        self.stdout = asyncio.StreamReader(STREAM_LIMIT)
        self.stdout.feed_data(body)
        self.stdout.feed_eof()

    def kill(self) -> None:
        """Nothing is left of it."""

    async def wait(self) -> int:
        return 0


def _front_end(body: bytes) -> None:
    events = asyncio.run(_read(body))
    session = ChatSession()
    progress = JobProgress()
    session.load("small")
    for event in events:
        if event == events[0]:
            with contextlib.suppress(DecdecError):
                session.ask("Hi")
        session.push(event)
        if isinstance(event, Progress):
            progress.push(event)
            format.progress_line(event)


async def _read(body: bytes) -> list[Event]:
    client = WorkerClient()
    reading = asyncio.create_task(client._read(_Child(body)))
    events = []
    while not reading.done() or not client._queue.empty():
        with contextlib.suppress(TimeoutError):
            event = await asyncio.wait_for(client._queue.get(), 0.05)
            events.append(event)
    await reading
    return events
