"""A hub with one repository on loopback that gives its files slowly, in ranges."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REPO = "owner/tiny"
COMMIT = "c0ffee" * 6 + "c0ff"
PIECE = 16 << 10


class Handler(BaseHTTPRequestHandler):
    """Answers for the files of `folder`; between pieces it waits `pause` seconds."""

    folder: Path
    pause: float
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Nobody reads it."""

    def do_HEAD(self):
        """As GET, without the content."""
        self.do_GET()

    def do_GET(self):
        """The listing of the repository, or a part of one of its files."""
        name = re.fullmatch(rf"/{REPO}/resolve/[^/]+/([^?]+).*", self.path)
        if name is None:
            self._send(200, json.dumps(self._listing()).encode(), {"Content-Type": "application/json"})
        elif (path := self.folder / name[1]).is_file():
            self._file(path)
        else:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

    def _listing(self):
        files = [_sibling(path) for path in sorted(self.folder.iterdir())]
        return {"id": REPO, "sha": COMMIT, "siblings": files, "private": False, "tags": [], "downloads": 0}

    def _file(self, path):
        content, headers, status = (
            path.read_bytes(),
            {"ETag": f'"{_blob(path)}"', "Accept-Ranges": "bytes"},
            200,
        )
        if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            size, start = len(content), int(asked[1])
            end = min(int(asked[2] or size), size - 1)
            if start >= size:
                self._send(416, b"", {"Content-Range": f"bytes */{size}"})
                return
            content, status = content[start : end + 1], 206
            headers["Content-Range"] = f"bytes {start}-{end}/{size}"
        self._send(status, content, headers)

    def _send(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body)), "X-Repo-Commit": COMMIT}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            for at in range(0, len(body), PIECE):
                self.wfile.write(body[at : at + PIECE])
                time.sleep(self.pause)
        except OSError:
            self.close_connection = True


def _blob(path):
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _sibling(path):
    entry = {"rfilename": path.name, "size": path.stat().st_size, "blobId": _blob(path)}
    if path.suffix == ".safetensors":
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        entry["lfs"] = {"size": entry["size"], "sha256": sha256, "pointerSize": 130}
    return entry


def start(folder: Path, pause: float = 0.01) -> str:
    """Serve a folder as REPO until the process ends; its address."""
    handler = type("Handler", (Handler,), {"folder": folder, "pause": pause})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
