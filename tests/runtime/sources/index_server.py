"""A package index with one wheel on this machine's loopback, as far as pip and we use its HTTP interface."""

import base64
import hashlib
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PASSWORD = "s3cret-of-the-index"
METADATA = b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: none-such\n"
NAME = "tiny_model-1.0-py3-none-any.whl"


@dataclass
class Sent:
    """One request for the wheel: pip's or ours, with a name and password or not, and what it was answered."""

    pip: bool
    known: bool
    start: int
    status: int
    bytes: int = 0


@dataclass
class Index:
    """What the index does. `stops_at`: a request of ours gets nothing more from there on, once; `holds_pip`:
    pip gets only the beginning of a wheel; `private`: a wheel needs the password.
    """

    wheel: bytes
    metadata: bool = True
    hashed: str = ""
    stops_at: int = 0
    private: bool = False
    holds_pip: bool = False
    sent: list[Sent] = field(default_factory=list)
    url: str = ""

    def ours(self):
        """The requests that were not pip's."""
        return [request for request in self.sent if not request.pip]

    def page(self):
        digest = self.hashed or hashlib.sha256(self.wheel).hexdigest()
        extra = f'data-core-metadata="sha256={hashlib.sha256(METADATA).hexdigest()}"' if self.metadata else ""
        return f'<!DOCTYPE html><a href="/files/{NAME}#sha256={digest}" {extra}>{NAME}</a>'.encode()


class Handler(BaseHTTPRequestHandler):
    index: Index
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        # Asked as a proxy, whole addresses come.
        self.path = re.sub(r"^http://index\.invalid", "", self.path)
        if self.path == "/simple/tiny-model/":
            return self._answer(200, self.index.page(), {"Content-Type": "text/html"})
        if self.path == f"/files/{NAME}.metadata":
            return self._answer(200, METADATA, {})
        if self.path == f"/files/{NAME}":
            return self._wheel()
        return self._answer(404, b"", {})

    def _wheel(self):
        index, pip = self.index, self.headers.get("User-Agent", "").startswith("pip/")
        password = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
        known = self.headers.get("Authorization") == f"Basic {password}"
        if index.private and not known:
            index.sent.append(Sent(pip, known, 0, 401))
            return self._answer(401, b"", {"WWW-Authenticate": 'Basic realm="index"'})
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start, total = int(asked[1]) if asked else 0, len(index.wheel)
        sent = Sent(pip, known, start, 206 if asked else 200)
        index.sent.append(sent)
        self.send_response(sent.status)
        for name, value in {"Content-Length": total - start, "ETag": '"one"'}.items():
            self.send_header(name, str(value))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        self.end_headers()
        return self._body(sent, start)

    def _body(self, sent, start):
        index = self.index
        end = len(index.wheel)
        if sent.pip and index.holds_pip:
            end = 1000
        elif not sent.pip and index.stops_at > start:
            end, index.stops_at = index.stops_at, 0
        self.wfile.write(index.wheel[start:end])
        sent.bytes = end - start
        if end < len(index.wheel):
            self.close_connection = True
            self.rfile.read(1)

    def _answer(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Clients that leave in the middle are what these tests are about."""


def start(index):
    """The server of an index, running."""
    server = Server(("127.0.0.1", 0), type("Handler", (Handler,), {"index": index}))
    index.url = f"http://127.0.0.1:{server.server_port}/simple/"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server
