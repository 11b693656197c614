"""What clients send to the server: a head and a body, as they reach its application.

The first line of an input is `METHOD TARGET`, headers follow, and after an empty line the body.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import MutableMapping
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote

from runtime.protocol.commands import Load
from runtime.protocol.events import Done, Token
from runtime.protocol.lines import decode_command, encode
from runtime.server.access import Access
from runtime.server.app import build_app
from runtime.server.line import Order, Ticket
from runtime.server.settings import Limits, Settings
from tests.fuzz.mutations import mutate_bytes, mutate_json_bytes

NAME = "requests"
KEY = "a-key-of-these-tests"
_ASKED: dict[str, Any] = {
    "model": "default", "stream": False, "stream_options": {"include_usage": True}, "stop": ["x", ""], "n": 1,
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}], "name": "me", "tool_calls": None},
        {"role": "assistant", "content": "Yes"},
    ],
    "seed": 7, "temperature": 0.5, "top_p": 0.9, "top_k": 4, "min_p": 0.1, "repetition_penalty": 1.1,
    "max_tokens": 5, "max_completion_tokens": 6, "slowdown_pct": 5, "response_format": {"type": "text"},
    "modalities": ["text"], "tools": [], "functions": [], "logit_bias": {}, "logprobs": False,
    "top_logprobs": 0, "frequency_penalty": 0, "presence_penalty": 0.0, "audio": None, "user": "somebody",
}  # fmt: skip
_CHAT = "POST /v1/chat/completions"
_HEAD = ("Host: 127.0.0.1:8484", "Content-Type: application/json", f"Authorization: Bearer {KEY}")


def _request(line: str, *head: str, body: bytes = b"") -> bytes:
    return "\n".join([line, *head, "", ""]).encode() + body


def _chat(*head: str, **changed: object) -> bytes:
    return _request(_CHAT, *(head or _HEAD), body=json.dumps({**_ASKED, **changed}).encode())


def seeds(folder: Path) -> list[bytes]:
    """Requests as clients send them, and such as attackers do."""
    huge, half = 10**4000, "\ud83d"
    odd = [
        {"seed": huge}, {"temperature": huge}, {"n": huge}, {"top_k": -huge}, {"max_tokens": -huge},
        {"slowdown_pct": "lossless"}, {"slowdown_pct": half}, {"slowdown_pct": "a" * 5000}, {"model": half},
        {"stop": [half]},
        {"model": "../" * 50}, {"stream": True}, {"messages": _ASKED["messages"] * 2000},
        {"messages": [{"role": half, "content": half}]}, {"messages": [{"role": "user", "content": half}]},
        {"logit_bias": {"1": float("nan")}}, {"response_format": {"type": half}}, {"tools": [[[[]]]]},
    ]  # fmt: skip
    bodies = [
        b"",
        b"null",
        b"[]",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"9" * 9000,
        b"\xff\xfe",
        b'{"a":1,"a":2}',
    ]
    heads = [
        _HEAD[:2], _HEAD[1:], (*_HEAD, _HEAD[0]), (*_HEAD, "Origin: null"),
        (*_HEAD, "Sec-Fetch-Site: cross-site"),
        ("Host: evil.example", *_HEAD[1:]), (*_HEAD, "Content-Length: 5", "Transfer-Encoding: chunked"),
        (*_HEAD, "X: " + "y" * 40_000), (*_HEAD[:2], "Authorization: Bearer \xff"), (*_HEAD, "Origin: http://ours"),
    ]  # fmt: skip
    lines = [
        "GET /health",
        "GET /v1/models",
        "GET /v1/models/default",
        "GET /v1/models/%00%ff/..",
        "HEAD /health",
    ]
    lines += [
        "OPTIONS /v1/chat/completions",
        "GET http://127.0.0.1/health",
        "PUT /v1/models",
        "GET //",
        "GET *",
    ]
    may = (*_HEAD[:1], "Origin: http://ours", "Access-Control-Request-Method: PATCH")
    return [
        _chat(),
        _request("OPTIONS /v1/models", *may),
        *(_chat(**each) for each in odd),
        *(_request(_CHAT, *_HEAD, body=body) for body in bodies),
        *(_chat(*head) for head in heads),
        *(_request(line, *_HEAD) for line in lines),
    ]


def check(data: bytes, folder: Path) -> None:
    """Ask; what is refused is a document of errors with its status, and never the server's fault."""
    os.environ["DECDEC_HOME"] = str(folder)
    head, _, body = data.partition(b"\n\n")
    orders: list[Order] = []
    status, headers, answer = asyncio.run(_ask(head, body, orders))
    for order in orders:
        assert decode_command(encode(order.generate)) is not None
    assert status < 500, answer
    assert KEY.encode() not in answer
    kind = headers.get(b"content-type", b"")
    if answer.startswith(b"Disallowed CORS"):
        # To a browser's own question, of which it reads the headers alone.
        assert status == 400
    elif status >= 400:
        error = json.loads(answer)["error"]
        assert kind == b"application/json"
        assert set(error) == {"message", "type", "param", "code"}
        assert error["message"].endswith(".")
        assert len(error["message"]) < 1000
    elif kind == b"application/json":
        json.loads(answer)


def mutate(data: bytes, random: Random) -> bytes:
    """The body changed by structure, or bytes anywhere."""
    head, gap, body = data.partition(b"\n\n")
    if random.random() < 0.2:
        return mutate_bytes(head, random) + gap + body
    return head + gap + mutate_json_bytes(body, random)


class _Engine:
    state, loaded = "ok", None


class _Line:
    """Answers every order with one word."""

    waiting = 0

    def __init__(self, orders: list[Order]) -> None:
        self._orders = orders

    def join(self, order: Order) -> Ticket:
        self._orders.append(order)
        ticket = Ticket(order)
        for event in (Token("Hi", 1), Done("generate", {"finish_reason": "stop"}), None):
            ticket.put(event)
        return ticket


async def _ask(head: bytes, body: bytes, orders: list[Order]) -> tuple[int, dict[bytes, bytes], bytes]:
    access = Access(KEY, frozenset({"http://ours"}))
    settings = Settings(Load("tiny"), access=access, limits=Limits(wrong_key_s=0.0))
    app = build_app(settings, _Engine(), _Line(orders))  # type: ignore[arg-type]
    sent: list[MutableMapping[str, Any]] = []
    incoming = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop()
        await asyncio.sleep(5)
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await app(_scope(head), receive, send)
    answer = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), answer


def _scope(head: bytes) -> dict[str, Any]:
    """As the HTTP library makes it: names in lower case, a path without its escapes."""
    first, *lines = head.split(b"\n")
    method, _, target = first.decode("latin-1").partition(" ")
    raw, _, query = target.encode("ascii", "replace").partition(b"?")
    pairs = [line.partition(b":") for line in lines]
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "method": method,
        "path": unquote(raw.decode()), "raw_path": raw, "query_string": query, "root_path": "",
        "headers": [(name.strip().lower(), value.strip()) for name, _, value in pairs],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8484), "state": {},
    }  # fmt: skip
