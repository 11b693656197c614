"""A server that never ends, never begins, or blows up: one sentence, bounded reading, and a stop at once."""

import asyncio
import contextlib
import gzip
import itertools
import json
import socket
import threading

import pytest

from runtime.client.remote import RemoteClient, Server, limits
from runtime.errors import DecdecError
from runtime.protocol import Done, Failed, Generate, Load, Loaded, Message, Stop, Token
from tests.fakes.chat_server import chunk

ASK = Generate((Message("user", "hello"),))
KEY = "sk-verysecret-verysecret"
PATIENCE_S = 20
MB = 1 << 20
OK = b"HTTP/1.1 200 OK\r\n"
JSON, EVENTS = b"Content-Type: application/json\r\n", b"Content-Type: text/event-stream\r\n"
LIST = json.dumps({"data": [{"id": "small"}]}).encode()
GZIP = b"Content-Encoding: gzip\r\n"
BOMB = gzip.compress(b" " * (256 * MB), 9)
EVENT_BOMB = gzip.compress(b"data: " + b"x" * (64 * MB), 9)


class Hostile:
    """Sends `head` and then `pieces` for as long as anybody reads, to a question or to all."""

    def __init__(self, head, pieces, *, listed=True):
        self.head, self.pieces, self.listed = head, pieces, listed
        self.sent, self.asked, self.gone = 0, threading.Event(), threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.gone.set()
        self._socket.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client):
        with client, contextlib.suppress(OSError):
            asked = _request(client)
            if self.listed and asked.startswith(b"GET"):
                client.sendall(OK + JSON + b"Connection: close\r\n\r\n" + LIST)
                return
            self.asked.set()
            client.sendall(self.head)
            for piece in self.pieces:
                if isinstance(piece, bytes):
                    client.sendall(piece)
                    self.sent += len(piece)
                elif self.gone.wait(piece):
                    return
        self.gone.set()


def _request(client):
    """All of it: what was not read would be answered by the system, with a reset."""
    asked = b""
    while b"\r\n\r\n" not in asked or (asked.startswith(b"POST") and not asked.endswith(b"}")):
        asked += client.recv(65536)
    return asked


async def until(client, *kinds):
    async with asyncio.timeout(PATIENCE_S):
        async for event in client.events():
            if isinstance(event, (*kinds, Failed)):
                return event
    raise AssertionError("the stream ended")


@contextlib.asynccontextmanager
async def connected(hostile, load=True):
    client = RemoteClient(Server(hostile.url, KEY, "SOME_KEY"))
    await client.start()
    try:
        if load:
            await client.send(Load(""))
            assert isinstance(await until(client, Loaded), Loaded)
        yield client
    finally:
        await client.close()


def sentence(failed):
    said = DecdecError(failed.what, failed.why, failed.fix).sentence
    assert "\n" not in said
    assert KEY[:8] not in said
    assert "unexpected" not in said
    return said


for_ever = itertools.repeat
ENDLESS = {
    "line": (OK + EVENTS + b"\r\ndata: ", for_ever(b"x" * 65536), "an event that is too large"),
    "comment": (OK + EVENTS + b"\r\n:", for_ever(b"x" * 65536), "an event that is too large"),
    "lines": (OK + EVENTS + b"\r\n", for_ever(b"data: x\n" * 8192), "an event that is too large"),
    "document": (OK + JSON + b"\r\n", for_ever(b"[" * 65536), "a document that is too large"),
    "answer": (OK + EVENTS + b"\r\n", for_ever(chunk("x" * 60_000)), "an answer that is too large"),
    "error": (b"HTTP/1.1 500 No\r\n\r\n", for_ever(b"x" * 65536), "failed"),
    "page": (OK + b"Content-Type: text/html\r\n\r\n", for_ever(b"<p>" * 9999), "is no OpenAI-compatible API"),
    "header": (OK + b"X: ", for_ever(b"x" * 65536), "does not speak HTTP"),
    "headers": (OK, for_ever(b"X: y\r\n" * 9999), "does not speak HTTP"),
    "bomb": (OK + JSON + GZIP + b"\r\n", [BOMB], "a document that is too large"),
    "event bomb": (OK + EVENTS + GZIP + b"\r\n", [EVENT_BOMB], "an event that is too large"),
    "no gzip": (OK + EVENTS + GZIP + b"\r\n", [b"data: x\n\n"], "broke"),
    "nonsense": (b"\x00\xff" * 500, [], "does not speak HTTP"),
    "nothing": (b"", [], "does not speak HTTP"),
    "half a chunk": (OK + EVENTS + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", [], "broke"),
    "bytes": (OK + EVENTS + b"\r\n", [b"data: \xff\xfe\n\n"], "unreadable"),
    "depth": (OK + EVENTS + b"\r\n", [b"data: " + b"[" * 500_000 + b"\n\n"], "unreadable"),
    "digits": (OK + EVENTS + b"\r\n", [b"data: " + b"9" * 500_000 + b"\n\n"], "unreadable"),
}


@pytest.mark.parametrize("kind", ENDLESS)
async def test_what_never_ends_is_read_to_a_limit_and_is_one_sentence(kind):
    head, pieces, words = ENDLESS[kind]
    with Hostile(head, pieces) as hostile:
        async with connected(hostile) as client:
            await client.send(ASK)
            failed = await until(client, Done)
            assert words in sentence(failed)
            await asyncio.to_thread(hostile.gone.wait, PATIENCE_S)
    # What was read, and what the system holds for a connection.
    assert hostile.sent < 32 * MB


@pytest.mark.parametrize("kind", ["document", "bomb", "error", "headers", "nothing"])
async def test_a_list_of_models_that_never_ends_is_one_sentence(kind):
    head, pieces, words = ENDLESS[kind]
    with Hostile(head, pieces, listed=False) as hostile:
        async with connected(hostile, load=False) as client:
            await client.send(Load(""))
            assert words in sentence(await until(client, Loaded))
    assert hostile.sent < 32 * MB


async def test_a_list_of_models_that_comes_in_drops_is_given_up(monkeypatch):
    monkeypatch.setattr(limits, "LIST_S", 0.3)
    with Hostile(OK + JSON + b"\r\n", itertools.cycle([b" ", 0.01]), listed=False) as hostile:
        async with connected(hostile, load=False) as client:
            await client.send(Load(""))
            assert "had not come after 0.3 s" in sentence(await until(client, Loaded))


HANGS = {
    "silence": (b"", [PATIENCE_S]),
    "trickling head": (OK + b"X: ", itertools.cycle([b"y", 0.01])),
    "more to come": (b"", itertools.cycle([b"HTTP/1.1 102 Wait\r\n\r\n", 0.001])),
    "trickling line": (OK + EVENTS + b"\r\n", itertools.cycle([b"d", 0.01])),
    "comments": (OK + EVENTS + b"\r\n", itertools.cycle([b": x\n\n" * 99, 0.001])),
    "empty events": (OK + EVENTS + b"\r\n", itertools.cycle([b"data:\n\n" * 99, 0.001])),
    "nothing said": (OK + EVENTS + b"\r\n", itertools.cycle([chunk("") * 9, 0.001])),
    "flood": (OK + EVENTS + b"\r\n", for_ever(b": x\n\n" * 9999)),
    "chunks": (OK + EVENTS + b"Transfer-Encoding: chunked\r\n\r\n", itertools.cycle([b"1\r\nx\r\n", 0.01])),
}


@pytest.mark.parametrize("kind", HANGS)
async def test_a_stop_is_heard_whatever_a_server_does(kind):
    with Hostile(*HANGS[kind]) as hostile:
        async with connected(hostile) as client:
            await client.send(ASK)
            await asyncio.to_thread(hostile.asked.wait, PATIENCE_S)
            await asyncio.sleep(0.05)
            await client.send(Stop())
            async with asyncio.timeout(5):
                ended = await until(client, Done)
            assert isinstance(ended, Done)
            assert ended.result["finish_reason"] == "stopped"


WHOLE = chunk("Hi ") + chunk("there é") + chunk(finish="stop") + b"data: [DONE]\n\n"


@pytest.mark.parametrize("cut", range(1, len(WHOLE), 13))
async def test_a_stream_cut_anywhere_is_an_answer_or_a_sentence(cut):
    with Hostile(OK + EVENTS + b"\r\n", [WHOLE[:cut]]) as hostile:
        async with connected(hostile) as client:
            await client.send(ASK)
            text = ""
            async with asyncio.timeout(PATIENCE_S):
                async for event in client.events():
                    text += event.text if isinstance(event, Token) else ""
                    if isinstance(event, Done | Failed):
                        break
    assert "Hi there é".startswith(text)
    if isinstance(event, Failed):
        sentence(event)
    else:
        assert text == event.result["text"] == "Hi there é"


@pytest.mark.parametrize("before", [0, 270, 285, 299])
async def test_no_part_of_the_key_is_quoted(before):
    said = json.dumps({"error": {"message": "x" * before + f" {KEY}"}}).encode()
    with Hostile(b"HTTP/1.1 400 No\r\n" + JSON + b"\r\n", [said]) as hostile:
        async with connected(hostile) as client:
            await client.send(ASK)
            assert "refused the request" in sentence(await until(client, Done))


async def test_the_key_in_a_redirect_is_not_quoted():
    place = f"Location: http://evil.example/login/{KEY}/x\r\n".encode()
    with Hostile(b"HTTP/1.1 302 No\r\n" + place + b"Content-Length: 0\r\n\r\n", []) as hostile:
        async with connected(hostile) as client:
            await client.send(ASK)
            assert "http://evil.example/login/[key]/x" in sentence(await until(client, Done))
