"""A server of files on the loopback that misbehaves as it is told, answer by answer."""

from __future__ import annotations

import gzip
import hashlib
import re
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Play:
    """One answer. `cut`: close the connection after so many bytes of the body; `reset`: do it rudely.

    `headers` replace or add to the honest ones, None leaves one out. `drip`: after so many bytes one by one,
    until the server ends. `silent`: say nothing at all.
    """

    status: int = 0
    headers: dict = field(default_factory=dict)
    body: bytes | None = None
    cut: int | None = None
    reset: bool = False
    ranges: bool = True
    packed: bool = False
    chunked: bool = False
    drip: int | None = None
    silent: bool = False


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        server = self.server
        with server.lock:
            server.requests.append((self.path, {name.title(): it for name, it in self.headers.items()}))
            plays = server.plays.get(self.path)
            play = plays.pop(0) if plays else server.always.get(self.path, Play())
        if play.silent:
            server.over.wait(30)
            self.close_connection = True
            return
        status, headers, body = self._honest(play) if not play.status else (play.status, {}, b"")
        body = body if play.body is None else play.body
        body = gzip.compress(body) if play.packed else body
        usual = {"Transfer-Encoding": "chunked"} if play.chunked else {"Content-Length": str(len(body))}
        headers = {**usual, **headers, **play.headers}
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self._send(body, play)

    def _honest(self, play):
        content = self.server.files.get(self.path)
        if content is None:
            return 404, {}, b""
        etag = f'"{hashlib.md5(content).hexdigest()}"'
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")) if play.ranges else None
        if wanted is None or self.headers.get("If-Range", etag) != etag:
            return 200, {"ETag": etag}, content
        start = int(wanted[1])
        if start >= len(content):
            return 416, {"Content-Range": f"bytes */{len(content)}"}, b""
        span = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return 206, {"ETag": etag, "Content-Range": span}, content[start:]

    def _send(self, body, play):
        sent = body if play.cut is None else body[: play.cut]
        if play.drip is not None:
            self._drip(body, play.drip)
        elif play.chunked:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(sent), sent) if sent else b"")
            self.wfile.write(b"" if play.cut is not None else b"0\r\n\r\n")
        else:
            self.wfile.write(sent)
        self.server.sent += len(sent)
        self.close_connection = play.cut is not None or play.drip is not None
        if play.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def _drip(self, body, first):
        try:
            self.wfile.write(body[:first])
            for at in range(first, len(body)):
                self.wfile.flush()
                if self.server.over.wait(0.05):
                    return
                self.wfile.write(body[at : at + 1])
        except OSError:
            return


class Server(ThreadingHTTPServer):
    """`files` by path; `plays` by path: each answer takes the next, then `always`, then honesty."""

    daemon_threads = True

    def __init__(self, host="127.0.0.1"):
        super().__init__((host, 0), Handler)
        self.files, self.plays, self.always, self.requests, self.sent = {}, {}, {}, [], 0
        self.lock, self.over = threading.Lock(), threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def url(self, path=""):
        return f"http://{self.server_address[0]}:{self.server_port}{path}"

    def asked(self, path):
        """Headers of the requests for a path, in order."""
        return [headers for asked, headers in self.requests if asked == path]

    def end(self):
        self.over.set()
        self.shutdown()
        self.server_close()
