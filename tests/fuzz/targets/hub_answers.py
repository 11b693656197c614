"""What a hub answers: the files of a repository, and what a search found.

The first line of an input says which of the two the rest is.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from unittest import mock

import msgspec

from app.library.facts import facts
from app.library.hints import hint
from app.library.rows import Shelf, View, sections
from runtime.download.documents import Document
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import hub_api, hub_search
from tests.fuzz.mutations import mutate_json_bytes

NAME = "hub_answers"
_NAMES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md")
_LISTING = {
    "id": "owner/small",
    "sha": "0123456789abcdef0123456789abcdef01234567",
    "siblings": [
        {"rfilename": name, "size": 1000, "blobId": "f" * 40, "lfs": {"size": 1000, "sha256": "a" * 64}}
        for name in _NAMES
    ],
}
_FOUND = [
    {
        "id": "owner/small", "downloads": 5, "gated": "manual", "pipeline_tag": "text-generation",
        "tags": ["safetensors", "llama", "license:mit"], "library_name": "transformers",
        "config": {"model_type": "llama"}, "safetensors": {"parameters": {"BF16": 135_000_000}, "total": 1},
    },
    {"id": "owner/other", "tags": []},
]  # fmt: skip
_EVIL = (
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../b.safetensors",
    "C:\\x",
    "con",
    "\x1b[31m.json",
    "a\0b",
    "." * 300,
)


def seeds(folder: Path) -> list[bytes]:
    """Answers as hubs give them, and names of files and repositories that lead elsewhere."""
    listings = [_LISTING, {**_LISTING, "siblings": []}, {**_LISTING, "siblings": _LISTING["siblings"] * 2000}]
    for name in _EVIL:
        evil = {"rfilename": name, "size": 10, "blobId": "f" * 40}
        listings += [{**_LISTING, "siblings": [*_LISTING["siblings"], evil]}, {**_LISTING, "sha": name}]
    searches = [
        _FOUND,
        _FOUND * 500,
        *([{**_FOUND[0], "id": f"{name}/x", "tags": [f"license:{name}"]}] for name in _EVIL),
    ]
    searches += [[{**_FOUND[0], "safetensors": {"parameters": {"BF" + "9" * 5000: 5}}}]]
    raw = [
        b"",
        b"null",
        b"{}",
        b"[" * 100_000,
        b'{"siblings":' * 20_000,
        b"<html>",
        b"\xff" * 50,
        b"9" * 50_000,
    ]
    whole = [(b"info", each) for each in listings] + [(b"search", each) for each in searches]
    made = [(kind, json.dumps(each).encode()) for kind, each in whole]
    return [
        kind + b"\n" + data
        for kind, data in [*made, *((kind, each) for each in raw for kind in (b"info", b"search"))]
    ]


def check(data: bytes, folder: Path) -> None:
    """Let the hub answer so."""
    os.environ["HF_TOKEN"] = "hf_none"  # else a file is looked for
    kind, _, body = data.partition(b"\n")
    try:
        if kind == b"search":
            _search(body)
        else:
            _info(body, folder)
    except DecdecError:
        return


def mutate(data: bytes, random: Random) -> bytes:
    """Values of the document replaced."""
    kind, _, body = data.partition(b"\n")
    return kind + b"\n" + mutate_json_bytes(body, random)


def _document(body: bytes) -> Document:
    return Document(body, {"content-type": "application/json"}, "https://hub.example/api/models")


def _info(body: bytes, folder: Path) -> None:
    with mock.patch.object(hub_api, "read_document", return_value=_document(body)):
        listing = hub_api.list_files("owner/small", lambda: None)
    assert listing.bytes >= 0
    for file in listing.files:
        path = (folder / file.name).resolve()
        assert path.is_relative_to(folder.resolve()), file.name
        assert path != folder.resolve()


def _search(body: bytes) -> None:
    with mock.patch.object(hub_api, "read_document", return_value=_document(body)):
        result = hub_search.search({"words": "small"}, JobContext.silent())
    found = msgspec.convert(msgspec.json.decode(msgspec.json.encode(result)), hub_search.Found)
    shown = sections(Shelf(), (), View(words="small", found=found))
    for row in (row for section in shown for row in section.rows):
        assert all("\x1b" not in text for _, text in facts(row))
        assert "\x1b" not in hint(row, "")
