"""What a server that speaks OpenAI's API answers: lists of models, and streams of an answer.

The first line of an input is `PART STATUS CONTENT-TYPE`: a list, or an answer.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from random import Random

import httpx2

from runtime.client.remote import Server
from runtime.client.remote.connection import Connection
from runtime.client.remote.engine import RemoteEngine
from runtime.protocol.commands import Command, Generate, Load, Message
from runtime.protocol.events import Done, Event, Failed, Loaded, Token
from runtime.protocol.lines import MAX_LINE_BYTES, encode
from tests.fuzz.mutations import mutate_bytes, mutate_json_bytes

NAME = "openai_answers"
_MODELS = {
    "data": [{"id": "a-model", "max_model_len": 4096, "owned_by": "x"}, {"id": "embed", "meta": {"n_ctx": 1}}]
}
_LIST = json.dumps(_MODELS).encode()


def _chunk(finish: str | None = None, **delta: object) -> str:
    return json.dumps({"choices": [{"delta": delta, "finish_reason": finish}]})


_STREAM = (
    _chunk(reasoning_content="hm"), _chunk(content="Hi "), _chunk(content="there"), _chunk("stop"),
    json.dumps({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}), "[DONE]",
)  # fmt: skip
_HALVES = (_chunk(content="\ud83d"), _chunk(content="\ude00"), _chunk("length", content="\udfff"), "[DONE]")
_FAILED = (_chunk(content="Half"), json.dumps({"error": {"message": "\x1b[31mout of\nmemory"}}))


def _events(pieces: tuple[str, ...], end: str = "\n\n") -> bytes:
    return "".join(f"data: {piece}{end}" for piece in pieces).encode()


def seeds(folder: Path) -> list[bytes]:
    """Streams as servers send them, and such as none should."""
    many = tuple(_chunk(content="x" * 50) for _ in range(200))
    whole = {"choices": [{"message": {"content": "All"}, "finish_reason": "stop"}]}
    streams = [
        *map(_events, (_STREAM, _HALVES, _FAILED, many, _STREAM[:2])), _events(_STREAM, "\r\n\r\n"),
        b": comment\n\nevent: x\nid: 1\nretry: 5\n" + _events(_STREAM), b"data:\n\n" * 5000,
        b"data: " + b"x" * (2 << 20), b"data: " + b"[" * 100_000 + b"\n\n", b"data: {\n" * 3000 + b"\n",
        _events((_chunk(content="x" * 900_000),) * 6), _events((_chunk(content="<think>" * 900),)),
        b"data: " + b"9" * 60_000 + b"\n\n", b'data: {"choices":[{"delta":{"content":NaN}}]}\n\n',
        b"\xff" * 90, b"",
    ]  # fmt: skip
    answers = [b"answer 200 text/event-stream\n" + stream for stream in streams]
    answers += [
        b"answer 200 application/json\n" + json.dumps(whole).encode(),
        b"answer 200 text/html\n<html>",
    ]
    for status in (301, 400, 401, 404, 413, 429, 500, 503, 204, 100):
        answers.append(f"answer {status} application/json\n".encode() + _FAILED[1].encode())
    long = {"data": [{"id": "m" * 290}] * 9000}
    odd = [{"data": None}, {"models": [{"model": "\x1b]0;x\x07"}]}, {"data": [{"id": 1}, {}, []]}, long]
    lists = [_LIST, *(json.dumps(each).encode() for each in odd), b"[" * 100_000, b"9" * 50_000, b"", b"{"]
    return [*answers, *(b"list 200 application/json\n" + each for each in lists)]


def check(data: bytes, folder: Path) -> None:
    """Choose a model there and ask a question."""
    os.environ["DECDEC_HOME"] = str(folder)
    head, _, body = data.partition(b"\n")
    part, status, kind = [*head.decode("latin-1").split(" "), "", "", ""][:3]
    code = int(status) if status.isdecimal() and status.isascii() and 200 <= int(status) <= 599 else 200
    answer = (code, kind, body)
    events = asyncio.run(_talk(part == "list", answer))
    assert isinstance(events[-1], Done | Failed)
    for event in events:
        assert "unexpected" not in getattr(event, "what", ""), event
        assert len(encode(event)) < MAX_LINE_BYTES


def mutate(data: bytes, random: Random) -> bytes:
    """One event changed by structure, or bytes anywhere."""
    head, _, body = data.partition(b"\n")
    if random.random() < 0.3:
        return head + b"\n" + mutate_bytes(body, random)
    lines = body.split(b"\n")
    at = random.randrange(len(lines))
    label, colon, rest = lines[at].partition(b": ")
    lines[at] = (
        label + colon + mutate_json_bytes(rest, random)
        if colon == b": "
        else mutate_json_bytes(lines[at], random)
    )
    return head + b"\n" + b"\n".join(lines)


async def _talk(listed: bool, answer: tuple[int, str, bytes]) -> list[Event]:
    code, kind, body = answer

    def respond(request: httpx2.Request) -> httpx2.Response:
        if listed or request.url.path.endswith("completions"):
            return httpx2.Response(code, headers=[(b"content-type", kind.encode("latin-1"))], content=body)
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=_LIST)

    server = Server.of("http://127.0.0.1:9/v1", None)
    connection = Connection(server)
    await connection.close()
    connection._http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond), follow_redirects=False)
    events: list[Event] = []

    async def take(more: list[Event]) -> None:
        events.extend(more)

    engine = RemoteEngine(server, connection, take)
    for command in (Load(""), Generate((Message("user", "Hi"),))):
        await _run(engine, command, take)
    await connection.close()
    text = "".join(event.text for event in events if isinstance(event, Token))
    if isinstance(events[-1], Done):
        assert events[-1].result["text"] == text
    assert isinstance(events[0], Loaded | Failed)
    return events


async def _run(engine: RemoteEngine, command: Command, take: object) -> None:
    """As the client does: what a command raises is how it ends."""
    try:
        await take(await engine.run(command))
    except Exception as error:
        await take(engine.failed(command, error))
