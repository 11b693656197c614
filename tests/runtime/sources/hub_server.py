"""A hub of a few tiny repositories on this machine's loopback, as far as the hub's HTTP interface is used.

Large files are kept by a second host, to which it sends its clients on, as the real one does.
"""

from __future__ import annotations

import hashlib
import json

from tests.runtime.download.lying_server import Play, Server

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
SMALL = {"config.json": CONFIG, "model.safetensors": b"weights"}
CLIMBING = {"../escape.json": b"{}", "/tmp/escape.json": b"{}", "a\\b.json": b"{}", "nul\0.json": b"{}"}
REPOS = {
    "owner/good": USUAL,
    "owner/cut": USUAL,
    "owner/corrupt": USUAL,
    "owner/busy": SMALL,
    "owner/newer": SMALL,
    "owner/climbing": {**SMALL, **CLIMBING, "a" * 5000 + ".json": b"{}"},
    "owner/clash": {**SMALL, "Config.json": b"{}"},
    "owner/device": {**SMALL, "con.json": b"{}"},
    "owner/loop": SMALL,
    "owner/othersize": SMALL,
    "owner/otherhash": SMALL,
    "owner/othercommit": SMALL,
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
    "owner/gated": Play(403, {"X-Error-Code": "GatedRepo"}),
    "owner/missing": Play(404, {"X-Error-Code": "RepoNotFound"}),
    "owner/broken": Play(500),
    "owner/secret": Play(401),
    "owner/html": Play(200, {"Content-Type": "text/html"}, b"<html>please log in</html>"),
    "owner/nonsense": Play(200, {}, b'{"sha": 3}'),
    "owner/packed": Play(200, {"Content-Encoding": "gzip"}, b"{}", packed=True),
    "owner/endless": Play(200, {}, b" " * (33 << 20)),
    "owner/negative": Play(200, {}, json.dumps({"sha": COMMIT, "siblings": [
        {"rfilename": "config.json", "size": 2, "blobId": "0" * 40},
        {"rfilename": "model.safetensors", "size": -1, "blobId": "0" * 40},
    ]}).encode()),
    "owner/absurd": Play(200, {}, json.dumps({"sha": COMMIT, "siblings": [
        {"rfilename": "config.json", "size": 2, "blobId": "0" * 40},
        {"rfilename": "model.safetensors", "size": 2**63, "blobId": "0" * 40},
    ]}).encode()),
    "owner/twice": Play(200, {}, json.dumps({"sha": COMMIT, "siblings": [
        {"rfilename": "config.json", "size": 2, "blobId": "0" * 40},
        {"rfilename": "model.safetensors", "size": 3, "blobId": "0" * 40},
        {"rfilename": "model.safetensors", "size": 4, "blobId": "0" * 40},
    ]}).encode()),
}  # fmt: skip


class Hub(Server):
    """The hub itself; `.cdn` is the host of its large files."""

    def __init__(self):
        super().__init__()
        self.cdn = Server("127.0.0.2")
        for repo, files in REPOS.items():
            self.add(repo, files)
        for repo, play in ERRORS.items():
            self.always[listed(repo)] = play
        self._lie()

    def add(self, repo, files, commit=COMMIT):
        """Serve a repository."""
        body = json.dumps(listing(repo, files, commit)).encode()
        self.always[listed(repo)] = Play(200, {"Content-Type": "application/json"}, body)
        for name, content in files.items():
            path = resolved(repo, name, commit)
            if is_large(name, content):
                self.cdn.files[path] = content
                self.always[path] = sent_on(self.cdn.url(path), content, commit)
            else:
                self.files[path] = content

    def _lie(self):
        weights = {repo: resolved(repo, "model.safetensors") for repo in REPOS}
        self.cdn.plays[weights["owner/cut"]] = [Play(cut=350_000)]
        self.cdn.files[weights["owner/corrupt"]] = WEIGHTS[:-1] + b"!"
        self.plays[listed("owner/busy")] = [Play(429, {"Retry-After": "1"})]
        self.always[weights["owner/loop"]].headers["Location"] = weights["owner/loop"]
        self.always[weights["owner/othersize"]].headers["X-Linked-Size"] = "8"
        self.always[weights["owner/otherhash"]].headers["X-Linked-Etag"] = f'"{"0" * 64}"'
        self.always[weights["owner/othercommit"]].headers["X-Repo-Commit"] = "d" * 40

    def end(self):
        self.cdn.end()
        super().end()


def listed(repo):
    return f"/api/models/{repo}?blobs=true"


def resolved(repo, name, commit=COMMIT):
    return f"/{repo}/resolve/{commit}/{name}"


def is_large(name, content):
    return name.endswith(".safetensors") and content != POINTER


def sent_on(url, content, commit):
    """The hub's answer for a file that another host keeps."""
    sha = hashlib.sha256(content).hexdigest()
    linked = {"X-Linked-Size": str(len(content)), "X-Linked-Etag": f'"{sha}"', "X-Repo-Commit": commit}
    return Play(302, {"Location": url, "X-Xet-Hash": "0" * 64, "ETag": '"of-the-hop"', **linked})


def listing(repo, files, commit):
    siblings = [sibling(name, content) for name, content in files.items()]
    return {"id": repo, "sha": commit, "siblings": siblings, "private": False, "tags": [], "downloads": 0}


def sibling(name, content):
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    entry = {"rfilename": name, "size": len(content), "blobId": blob}
    if is_large(name, content):
        sha = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"size": len(content), "sha256": sha, "pointerSize": 130}
    return entry
