"""Connections under attack: what is no HTTP, several requests at once, crowds, and clients that vanish."""

import asyncio
import contextlib
import json
import socket
import struct

import pytest

from runtime.protocol import Done
from runtime.server import connections
from tests.runtime.server.conftest import PATIENCE_S, ask
from tests.runtime.server.test_turns import ends, health, tokens, until

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(body, *headers, stream=False):
    """The bytes of a chat completion's request."""
    data = body if isinstance(body, bytes) else json.dumps(ask(body, stream=stream)).encode()
    lines = ["POST /v1/chat/completions HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines += headers or (f"Content-Length: {len(data)}",)
    return "\r\n".join([*lines, "", ""]).encode() + data


@contextlib.asynccontextmanager
async def opened(server):
    host, port = server.root.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


async def whole(reader):
    """All that comes until the server ends the connection."""
    with contextlib.suppress(ConnectionResetError):
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    return b""


async def said(server, data):
    async with opened(server) as (reader, writer):
        writer.write(data)
        return await whole(reader)


def error(answer):
    """Status and code of the one answer that there is."""
    assert answer.count(b"HTTP/1.1 ") == 1, answer
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/json" in head
    assert b"connection: close" in head.lower()
    return int(head.split()[1]), json.loads(body)["error"]["code"]


CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "no_http"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", 400, "no_http"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "no_http"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "no_http"),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40_000, 400, "no_http"),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40_000 + b"\r\n\r\n", 431, "too_large"),
        (HEALTH[:-2] + b"X: y\r\n" * 6_000 + b"\r\n", 431, "too_large"),
        (post(b"{}", "Content-Length: 2", "Content-Length: 3"), 400, "no_http"),
        (post(b"{}", "Content-Length: -2"), 400, "no_http"),
        (post(b"zz\r\n{}\r\n0\r\n\r\n", CHUNKED), 400, "no_http"),
        (post(b"{}", "Transfer-Encoding: gzip, chunked"), 400, "no_http"),
        (post(b"0\r\n\r\n" + HEALTH, "Content-Length: 5", CHUNKED), 400, "ambiguous"),
        (HEALTH[:-2] + b"Origin: http://a\r\nOrigin: http://b\r\n\r\n", 400, "ambiguous"),
    ],
    ids=range(13),
)  # fmt: skip
async def test_what_is_no_request_is_one_error_and_the_end_of_the_connection(start, data, status, code):
    server = await start()
    assert error(await said(server, data)) == (status, code)
    assert await health(server) == {"status": "ok", "waiting": 0}


@pytest.mark.parametrize("rest", [HEALTH, post("!crash"), b"\r\n", HEALTH[:10]], ids=range(4))
@pytest.mark.parametrize("late", [False, True])
async def test_a_request_behind_another_is_never_answered(start, worker, rest, late):
    worker(rate=100)
    server = await start()
    async with opened(server) as (reader, writer):
        writer.write(post("hello") + (b"" if late else rest))
        if late:
            await until(lambda: tokens(server) > 0)
            writer.write(rest)
        answer = await whole(reader)
    assert answer.count(b"HTTP/1.1 200") == answer.count(b"HTTP/1.1 ") == 1
    assert answer.count(b'"finish_reason":"stop"') == 1
    assert ends(server) == ["stop"]


async def test_a_connection_is_used_again_for_the_next_request(start):
    server = await start()
    async with opened(server) as (reader, writer):
        for _ in range(3):
            writer.write(post("hello"))
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            assert b"finish_reason" in await asyncio.wait_for(reader.readexactly(length), PATIENCE_S)


async def test_an_upgrade_is_not_made(start):
    server = await start()
    asks = (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n"
    )
    async with opened(server) as (reader, writer):
        writer.write(b"GET /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" + asks + b"\r\n")
        assert b" 405 " in await asyncio.wait_for(reader.readline(), PATIENCE_S)


async def trickle(writer):
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(b"G")
            await writer.drain()
            await asyncio.sleep(0.02)


async def test_a_head_of_a_byte_at_a_time_gets_no_more_time(start):
    server = await start(head_s=0.2)
    async with opened(server) as (reader, writer):
        trickling = asyncio.create_task(trickle(writer))
        assert await whole(reader) == b""
        trickling.cancel()
    await until(lambda: not server.service._server.server_state.connections)


async def test_so_many_connections_and_no_more(start):
    server = await start(connections=2)
    async with opened(server) as (reader, writer), opened(server):
        await until(lambda: len(server.service._server.server_state.connections) == 2)
        assert error(await said(server, b"")) == (503, "too_many_connections")
        writer.write(HEALTH)
        assert b" 200 " in await asyncio.wait_for(reader.readline(), PATIENCE_S)
    await until(lambda: not server.service._server.server_state.connections)
    assert (await health(server))["status"] == "ok"


async def test_another_machine_has_its_share_of_them(start, monkeypatch):
    monkeypatch.setattr(connections, "_peer", lambda address: "192.0.2.0/32")
    server = await start(connections_each=1)
    async with opened(server):
        await until(lambda: len(server.service._server.server_state.connections) == 1)
        assert error(await said(server, b"")) == (503, "too_many_connections")


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("127.0.0.1", ""), ("::1", ""), ("::ffff:127.0.0.1", ""), ("", ""),
        ("192.0.2.7", "192.0.2.7/32"), ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("2001:db8::7", "2001:db8::/64"), ("2001:db8::9999:7", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)  # fmt: skip
def test_whose_connections_are_counted_together(address, peer):
    assert connections._peer(address) == peer


STAGES = ["head", "body", "waiting", "prefill", "decode", "end"]


async def reached(server, stage, writer, stream):
    """Bring a request into the state in which its client is to vanish."""
    data = post("hello" if stage == "end" else "!long", stream=stream)
    cut = {"head": 30, "body": len(data) - 5}.get(stage, len(data))
    writer.write(data[:cut])
    await writer.drain()
    if stage in ("head", "body"):
        await until(lambda: server.service._server.server_state.connections)
    elif stage == "waiting":
        while (await health(server))["waiting"] != 1:
            await asyncio.sleep(0.01)
    elif stage == "prefill":
        await until(lambda: server.service._line._current)
    else:
        await until(lambda: tokens(server) > 0)


def vanish(writer, how):
    """End a connection: in order, in one direction alone, or as a process that was killed."""
    plain = writer.get_extra_info("socket")
    if how == "half":
        writer.write_eof()
        return
    if how == "reset":
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize("how", ["close", "half", "reset"])
@pytest.mark.parametrize("stage", STAGES)
async def test_a_client_that_vanishes_costs_a_token(start, worker, how, stage):
    worker(rate=200)
    server = await start()
    stream = stage in ("decode", "end")
    async with contextlib.AsyncExitStack() as stack:
        if stage == "waiting":
            _, first = await stack.enter_async_context(opened(server))
            await reached(server, "decode", first, True)
        _, writer = await stack.enter_async_context(opened(server))
        await reached(server, stage, writer, stream)
        vanish(writer, how)
        if stage == "waiting":
            while (await health(server))["waiting"]:
                await asyncio.sleep(0.01)
            vanish(first, how)
        await until(lambda: not server.service._server.server_state.connections)
        await until(lambda: server.service._line._current is None)
    assert tokens(server) < 4000
    answer = await said(server, post("hello").replace(b"Host", b"Connection: close\r\nHost", 1))
    assert b'"finish_reason":"stop"' in answer
    assert sum(isinstance(event, Done) for event in server.events) <= 3


@pytest.mark.parametrize("stage", ["waiting", "decode"])
async def test_a_client_that_vanishes_is_missed_also_behind_what_it_sent_too_much(start, worker, stage):
    worker(rate=100)
    server = await start()
    async with contextlib.AsyncExitStack() as stack:
        if stage == "waiting":
            _, first = await stack.enter_async_context(opened(server))
            await reached(server, "decode", first, True)
        _, writer = await stack.enter_async_context(opened(server))
        writer.write(post("!long"))
        if stage == "waiting":
            while (await health(server))["waiting"] != 1:
                await asyncio.sleep(0.01)
        else:
            await until(lambda: tokens(server) > 0)
        writer.write(HEALTH)
        await asyncio.sleep(0.1)
        writer.write(HEALTH)
        await asyncio.sleep(0.1)
        writer.transport.abort()
        if stage == "waiting":
            while (await health(server))["waiting"]:
                await asyncio.sleep(0.01)
            first.transport.abort()
        await until(lambda: ends(server) == ["stopped"])


def reads_nothing(server, data):
    """A client with a small buffer of its own, which asks and never reads."""
    host, port = server.root.removeprefix("http://").split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((host, int(port)))
    client.send(data)
    return client


@pytest.mark.parametrize("stream", [False, True])
async def test_the_rest_of_an_answer_is_not_kept_for_ever(start, worker, monkeypatch, stream):
    """Less than uvicorn itself lets wait unsent, of an answer that is whole: nobody writes any more."""
    made = connections.TimedProtocol.connection_made

    def small(self, transport):
        made(self, transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    monkeypatch.setattr(connections.TimedProtocol, "connection_made", small)
    worker(replies=["word " * 6000], rate=0)
    server = await start(reader_s=0.3)
    with reads_nothing(server, post("hello", stream=stream)):
        await until(lambda: ends(server) == ["stop"] or ends(server) == ["stopped"])
        await until(lambda: not server.service._server.server_state.connections)


async def test_who_does_not_read_does_not_hold_up_the_next(start, worker):
    worker(replies=["word " * 40_000, "short"], rate=0)
    server = await start()
    with reads_nothing(server, post("hello", stream=True)):
        await until(lambda: server.service._line._current or tokens(server))
        answer = await said(server, post("hello").replace(b"Host", b"Connection: close\r\nHost", 1))
        assert b'"content":"short"' in answer
