"""A hub of a few tiny repositories on this machine's loopback, as far as the hub's HTTP interface is used."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c0ffee" * 6 + "c0ff"
WEIGHTS = bytes(i % 253 for i in range(700_000))
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"
CONFIG = b'{"model_type": "llama"}'
INDEX = json.dumps(
    {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "gone.safetensors"}}
).encode()
USUAL = {
    "config.json": CONFIG,
    "model.safetensors": WEIGHTS,
    "tokenizer.json": b"{}",
    "chat_template.jinja": b"{{ x }}",
    "pytorch_model.bin": b"pickle",
    "original/consolidated.00.pth": b"pickle",
    "README.md": b"# words",
}
REPOS = {
    "owner/good": USUAL,
    "owner/cut": USUAL,
    "owner/corrupt": USUAL,
    "owner/pickle": {"config.json": CONFIG, "pytorch_model.bin": b"pickle"},
    "owner/gguf": {"model.gguf": b"GGUF"},
    "owner/bare": {"model.safetensors": WEIGHTS},
    "owner/pointer": {"config.json": CONFIG, "model.safetensors": POINTER},
    "owner/shards": {
        "config.json": CONFIG,
        "model-00001-of-00002.safetensors": b"w",
        "model.safetensors.index.json": INDEX,
    },
}
ERRORS = {
    "owner/gated": (403, "GatedRepo"),
    "owner/missing": (404, "RepoNotFound"),
    "owner/broken": (500, ""),
    "owner/secret": (401, ""),
}


class Handler(BaseHTTPRequestHandler):
    """`requests` collects (path, Range header, Authorization header) of everything asked."""

    requests: list[tuple[str, str, str]]
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.requests.append(
            (self.path, self.headers.get("Range", ""), self.headers.get("Authorization", ""))
        )
        match = re.fullmatch(r"/(?:api/models/)?([^/]+/[^/?]+)(?:/resolve/[^/]+/([^?]+))?(\?.*)?", self.path)
        repo, name = match[1], match[2]
        if repo in ERRORS:
            status, code = ERRORS[repo]
            return self._answer(status, b"{}", {"X-Error-Code": code} if code else {})
        if repo == "owner/html":
            return self._answer(200, b"<html>please log in</html>", {})
        if repo not in REPOS:
            return self._answer(404, b"{}", {})
        if name is None:
            return self._answer(200, json.dumps(listing(repo)).encode(), {"Content-Type": "application/json"})
        return self._file(repo, name)

    def _file(self, repo, name):
        content = REPOS[repo][name]
        if repo == "owner/corrupt" and name == "model.safetensors":
            content = content[:-1] + b"!"
        start = int(re.fullmatch(r"bytes=(\d+)-", self.headers["Range"])[1])
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        first = [r[0] for r in self.requests].count(self.path) == 1
        return self._answer(206, content[start:], headers, cut=repo == "owner/cut" and first)

    def _answer(self, status, body, headers, cut=False):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = cut


def listing(repo):
    siblings = [sibling(name, content) for name, content in REPOS[repo].items()]
    return {"id": repo, "sha": COMMIT, "siblings": siblings, "private": False, "tags": [], "downloads": 0}


def sibling(name, content):
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    entry = {"rfilename": name, "size": len(content), "blobId": blob}
    if name.endswith(".safetensors") and content != POINTER:
        sha = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"size": len(content), "sha256": sha, "pointerSize": 130}
    return entry


def start():
    """The server, running; its `.requests` are those of all clients so far."""
    handler = type("Handler", (Handler,), {"requests": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.requests = handler.requests
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
