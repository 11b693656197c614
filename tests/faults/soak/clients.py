"""Clients of every kind: well-behaved ones, and those that send rubbish, leave, or do not read."""

import asyncio
import contextlib
import json
import random
import socket
import struct

PATIENCE_S = 300
BAD = [
    b"not http at all\r\n\r\n",
    b"{",
    b'{"messages": []}',
    b'{"messages": [{"role": "user", "content": "x"}], "temperature": 1e999}',
    b'{"messages": [{"role": "user", "content": "x"}], "seed": ' + b"9" * 4000 + b"}",
    b"[" * 50_000,
    b'{"messages": [{"role": "user", "content": "' + b"word " * 4000 + b'"}]}',
]


def request(body, host="localhost"):
    """The bytes of a chat completion's request, for which the connection ends."""
    if body.startswith(b"not http"):
        return body
    head = ["POST /v1/chat/completions HTTP/1.1", f"Host: {host}", "Content-Type: application/json"]
    head += ["Connection: close", f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(head).encode() + body


def question(tokens, stream=False):
    """A conversation that asks for so many tokens."""
    said = [{"role": "user", "content": f"Tell me about {random.randrange(1000)}."}]
    return json.dumps({"messages": said, "max_tokens": tokens, "stream": stream, "temperature": 1}).encode()


class Clients:
    """Each kind asks once and says how it went; raises AssertionError for an answer that is not whole."""

    def __init__(self, port, tokens):
        self.port, self.tokens = port, tokens
        self.kinds = [self.whole, self.stream, self.leaves, self.resets, self.halves, self.bad, self.slow]

    @contextlib.asynccontextmanager
    async def opened(self, data):
        """A connection on which these bytes were sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            await writer.drain()
            yield reader, writer
        finally:
            writer.close()

    async def said(self, data):
        """Status and body of the answer, which must come."""
        async with self.opened(data) as (reader, _):
            answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 "), answer[:200]
        return int(head.split()[1]), body

    async def whole(self):
        """An answer in one piece."""
        status, body = await self.said(request(question(self.tokens)))
        assert status == 200, body[:300]
        assert json.loads(body)["choices"][0]["finish_reason"] in ("stop", "length")

    async def stream(self):
        """An answer piece by piece."""
        status, body = await self.said(request(question(self.tokens, stream=True)))
        assert status == 200, body[:300]
        assert b"data: [DONE]" in body
        assert b'"error"' not in body

    async def bad(self):
        """What cannot be answered, or by another name than the server's."""
        body = random.choice([*BAD, None])
        data = request(question(1), host="evil.example") if body is None else request(body)
        status, said = await self.said(data)
        assert status in (400, 403), said[:300]
        assert json.loads(said.split(b"\r\n")[-1] if b"\r\n" in said else said)["error"]["message"]

    async def leaves(self):
        """Goes at any time, before or in the answer."""
        async with self.opened(request(question(200, stream=random.random() < 0.5))) as (_, writer):
            await asyncio.sleep(random.random() / 4)
            writer.transport.abort()

    async def resets(self):
        """Goes as a program that was killed, in the middle of its answer."""
        async with self.opened(request(question(200, stream=True))) as (reader, writer):
            await reader.read(random.randrange(1, 2000))
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

    async def halves(self):
        """Says that nothing more comes from it, or sends a part of its request alone."""
        data = request(question(200))
        cut = random.choice([20, len(data) - 5, len(data)])
        async with self.opened(data[:cut]) as (reader, writer):
            writer.write_eof()
            await asyncio.wait_for(reader.read(), PATIENCE_S)

    async def slow(self):
        """Reads little by little."""
        async with self.opened(request(question(self.tokens, stream=True))) as (reader, _):
            body = b""
            while part := await asyncio.wait_for(reader.read(64), PATIENCE_S):
                body += part
                await asyncio.sleep(0.002)
        assert b"data: [DONE]" in body
