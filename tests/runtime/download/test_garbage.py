"""Answers with bytes changed at random end in the right file or in one sentence, and never tell the token."""

from __future__ import annotations

import os
import random
import socket
import threading

from runtime.download import HttpTransport, Limits, RemoteFile, download
from runtime.errors import DecdecError
from tests.runtime.download.conftest import CONTENT, quick_client

# Many more by hand.
ROUNDS = int(os.environ.get("DECDEC_GARBAGE", "20"))
PATIENT = Limits(tries=3, answer_s=2, window_s=1)
BODY = CONTENT[:3000]
SEEDS = [
    b'HTTP/1.1 200 OK\r\nETag: "abc"\r\nContent-Length: 3000\r\n\r\n' + BODY,
    b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 100-2999/3000\r\n\r\n" + BODY[100:],
    b'HTTP/1.1 302 Found\r\nLocation: /else\r\nX-Linked-Etag: "0"\r\nContent-Length: 0\r\n\r\n',
    b"HTTP/1.1 429 No\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\n" + BODY + b"\r\n0\r\n\r\n",
]


def spoilt(data, dice):
    """Some bytes replaced, put in, left out."""
    data = bytearray(data)
    for _ in range(dice.randrange(1, 6)):
        at = dice.randrange(len(data))
        data[at : at + dice.randrange(3)] = dice.randbytes(dice.randrange(3))
    return bytes(data)


def answer(dice):
    head, end, body = dice.choice(SEEDS).partition(b"\r\n\r\n")
    how = dice.randrange(5)
    return (
        (spoilt(head, dice) if how > 1 else head) + end + (spoilt(body, dice) if body and how == 1 else body)
    )


def serve(listener, dice):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            try:
                connection.settimeout(5)
                connection.recv(65536)
                connection.sendall(answer(dice))
            except OSError:
                continue


async def at_once(seconds):
    pass


def test_whatever_answers(client):
    file = RemoteFile("m.bin", len(BODY), client.file(BODY).sha256)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, random.Random(5)), daemon=True).start()
        url, target = f"http://127.0.0.1:{listener.getsockname()[1]}/m", client.folder / file.name
        transport = HttpTransport.of(url, {"Authorization": "Bearer hf_secret"}, quick_client)
        said = []
        for _ in range(ROUNDS):
            target.unlink(missing_ok=True)
            try:
                download(file, target, transport, lambda have: None, PATIENT, at_once)
                assert target.read_bytes() == BODY
            except DecdecError as error:
                said.append(error.sentence)
                assert not target.exists()
    assert said
    assert not [sentence for sentence in said if "hf_secret" in sentence or "\n" in sentence]
