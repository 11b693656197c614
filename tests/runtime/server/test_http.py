"""HTTP itself: paths, methods, labels, sizes, slow clients, and what is listed."""

import asyncio
import socket

import openai
import pytest

from runtime.errors import DecdecError
from runtime.protocol.commands import Load
from runtime.server import Service, Settings, bind, is_loopback, url_of
from tests.runtime.server.conftest import MODEL, OTHER, PATIENCE_S, ask

CHAT = "/v1/chat/completions"


def error_of(answer):
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"].endswith(".")
    return answer.status_code, error["code"]


async def test_models_are_those_that_can_be_loaded(start):
    server = await start()
    async with server.openai() as client:
        listed = (await client.models.list()).data
        assert [(m.id, m.object, m.owned_by) for m in listed] == [
            (MODEL, "model", "decdec-chat"),
            (OTHER, "model", "decdec-chat"),
        ]
        assert [m.model_extra["decdec"]["loaded"] for m in listed] == [True, False]
        one = await client.models.retrieve("default")
        assert (one.id, one.model_extra["decdec"]["context_limit"]) == (MODEL, 2048)
        assert one.model_extra["decdec"]["tuned"] is True
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("third")


async def test_the_lossless_base_needs_no_other(start):
    server = await start(base="int8")
    async with server.openai() as client:
        assert [m.id for m in (await client.models.list()).data] == [MODEL, OTHER, "third"]


async def test_health_and_what_is_not_there(start):
    server = await start()
    async with server.http() as client:
        assert (await client.get("/health")).json() == {"status": "ok", "waiting": 0}
        assert error_of(await client.get("/v1/nothing")) == (404, "no_such_path")
        assert error_of(await client.get("/")) == (404, "no_such_path")
        wrong = await client.get(CHAT)
        assert error_of(wrong) == (405, None)
        assert wrong.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "label", ["text/plain", "application/x-www-form-urlencoded", None, "application/jsonx"]
)
async def test_a_body_is_labelled_json(start, label):
    server = await start()
    async with server.http() as client:
        headers = {"Content-Type": label} if label else {}
        assert error_of(await client.post(CHAT, content=b"{}", headers=headers)) == (415, "not_json")
        headers = {"Content-Type": "Application/JSON; charset=utf-8"}
        assert error_of(await client.post(CHAT, content=b"{", headers=headers)) == (400, "invalid_json")


async def test_a_body_is_counted_as_it_comes(start):
    server = await start(body_bytes=100_000)

    async def unlabelled():
        for _ in range(110):
            yield b"x" * 1000

    headers = {"Content-Type": "application/json"}
    async with server.http() as client:
        for content in (b"x" * 110_000, unlabelled()):
            refused = await client.post(CHAT, content=content, headers=headers)
            assert error_of(refused) == (413, "too_large")
        assert (await client.post(CHAT, json=ask("x" * 50_000))).status_code == 200


def post_head(length):
    label = "Content-Type: application/json"
    return f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n{label}\r\nContent-Length: {length}\r\n\r\n".encode()


async def raw(server, data):
    host, port = server.root.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    await writer.drain()
    return reader, writer


async def test_a_body_that_does_not_come_is_not_waited_for(start):
    server = await start(body_s=0.1)
    reader, writer = await raw(server, post_head(50) + b"{")
    answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"not whole after 0.1 s" in answer
    writer.close()


@pytest.mark.parametrize("data", [b"", b"GET /health HTTP/1.1\r\nHost: loc"])
@pytest.mark.parametrize("answers", [0, 1])
async def test_a_head_that_does_not_come_is_not_waited_for(start, data, answers):
    server = await start(head_s=0.1)
    reader, writer = await raw(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * answers)
    for _ in range(answers):
        assert b'"ok"' in await asyncio.wait_for(reader.readuntil(b"}"), PATIENCE_S)
        data = data or b"GET"
    writer.write(data)
    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
    writer.close()


async def test_an_answer_outlives_the_time_for_a_head(start, worker):
    worker(rate=10)
    server = await start(head_s=0.05)
    async with server.openai() as client:
        done = await client.chat.completions.create(**ask("hello", max_tokens=3))
        assert done.usage.completion_tokens == 3


async def test_a_client_that_does_not_read_is_left(start, worker):
    worker(replies=["x" * 400_000])
    server = await start(reader_s=0.1)
    host, port = server.root.removeprefix("http://").split(":")
    body = b'{"messages": [{"role": "user", "content": "hello"}], "stream": true}'
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((host, int(port)))
        client.setblocking(False)
        client.send(post_head(len(body)) + body)
        inside = server.service._server.server_state.connections
        async with asyncio.timeout(PATIENCE_S):
            while not inside:
                await asyncio.sleep(0.01)
            while inside:
                await asyncio.sleep(0.01)


def test_an_address_in_use_is_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DecdecError, match=f"Port {port} of .* cannot be used: address already in use"):
            bind("127.0.0.1", port)


def test_an_address_of_another_machine_is_a_sentence():
    with pytest.raises(DecdecError, match=r"cannot assign requested address\. Check --host\."):
        bind("192.0.2.1", 0)


@pytest.mark.parametrize(
    "host",
    ["256.1.1.1", "", " ", "a..b", "x" * 70, "/tmp/a.sock", "unix:/tmp/a.sock", "[::1]", "127.0.0.1:80"],
)
def test_what_is_no_address_is_a_sentence(host):
    with pytest.raises(DecdecError, match=r"The address '.*' cannot be used: .*\."):
        bind(host, 0)


async def test_of_two_servers_that_load_at_once_the_later_one_is_told(worker, models):
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        try:
            second = bind("127.0.0.1", port)
        except DecdecError:
            pytest.skip("this system tells it at once")
        first.listen()
        async with Service(Settings(Load(MODEL)), second, lambda event: None) as service:
            with second, pytest.raises(DecdecError, match=f"Port {port} of .* address already in use"):
                await service.load()


@pytest.mark.parametrize(
    ("host", "loopback", "shown"),
    [("127.0.0.1", True, "127.0.0.1"), ("localhost", True, "localhost"), ("0.0.0.0", False, "0.0.0.0")],
)
def test_what_only_this_machine_reaches(host, loopback, shown):
    with bind(host, 0) as bound:
        assert is_loopback(bound) == loopback
        assert url_of(host, bound) == f"http://{shown}:{bound.getsockname()[1]}/v1"


def test_brackets_of_the_newer_kind():
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        bound = bind("::1", 0)
    except DecdecError:
        pytest.skip("no IPv6 loopback here")
    with bound:
        assert is_loopback(bound)
        assert url_of("::1", bound).startswith("http://[::1]:")
