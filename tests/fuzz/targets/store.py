"""The store's own files: manifest, a build's identity, and what a resumed run keeps beside the weights."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from pathlib import Path
from random import Random

import torch
from safetensors.torch import save

from runtime import locations, store
from runtime.calibration.continuations import READ, WRITTEN, read_continuations
from runtime.layers.base import LINEAR_KINDS
from runtime.model.spec import ModelSpec
from runtime.prepare.pipeline import existing, quality_of, summary, texts_of
from runtime.protocol.commands import Prepare
from runtime.sensitivity.stored import read_sensitivities
from runtime.store.leftovers import leftovers
from tests.fuzz import bundle
from tests.fuzz.mutations import VERY_DEEP, dumped
from tests.fuzz.refusal import refusals

NAME = "store"
MODEL = "m"
CONTINUED, SENSITIVE = "calibration/continuations.safetensors", "calibration/sensitivity.safetensors"
NAMES = ("manifest.json", ".identity.json", "config.json", CONTINUED, SENSITIVE)
CONFIG = {
    "model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
    "num_attention_heads": 2, "vocab_size": 40, "max_position_embeddings": 32,
}  # fmt: skip
SPEC = ModelSpec.from_config(CONFIG)
RECORD = {
    "kind": "folder", "source": "folder /somewhere", "path": "/somewhere", "bits_per_weight": 5.2,
    "bases": ["awq4"], "quality": {"preset": "balanced"}, "formats": {"int8x": 2, "lowbit": 2},
    "texts": "prompts",
}  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """A whole model of one small file, and one whose file is missing."""
    config = json.dumps(CONFIG).encode()
    entry = {"bytes": len(config), "sha256": hashlib.sha256(config).hexdigest()}
    manifest = {"format": 1, "record": RECORD, "files": {"config.json": entry}}
    texts = torch.zeros(3, READ + WRITTEN, dtype=torch.int32)
    parts = {f"0.{kind}.{side}": torch.ones(8) for kind in LINEAR_KINDS for side in ("outputs", "inputs")}
    files = {
        "manifest.json": json.dumps(manifest).encode(),
        ".identity.json": json.dumps({"source": RECORD, "fingerprint": "x", "quality": {}}).encode(),
        "config.json": config,
        CONTINUED: save({"texts": texts}, {"source": "x"}),
        SENSITIVE: save(parts, {"source": "x"}),
    }
    absent = {name: data for name, data in files.items() if name != "config.json"}
    odd = [dict(manifest, record={**RECORD, "bases": bases}) for bases in ([{}], "awq4", ["../x"], {"a": 1})]
    others = [{**files, "manifest.json": json.dumps(each).encode()} for each in odd]
    deep = [{**files, name: dumped({"record": VERY_DEEP})} for name in ("manifest.json", ".identity.json")]
    return [bundle.pack(NAMES, each) for each in (files, absent, *others, *deep)]


def check(data: bytes, folder: Path) -> None:
    """List, find, verify and take up a model; then what a resumed preparation reads."""
    with _home(folder):
        place = locations.models() / MODEL
        place.mkdir(parents=True)
        bundle.write(NAMES, data, place)
        _take_up(place)
        for record in store.models():
            json.dumps(summary(record))
            with refusals():
                store.verify_files(record, quick=True)
        leftovers()
        with refusals():
            store.find(MODEL)
        staging = locations.models() / f".staging-{MODEL}"
        os.rename(place, staging)
        leftovers()
        with refusals(), store.building(MODEL, {"source": RECORD}) as building:
            assert building == staging
        with refusals():
            store.remove(MODEL)


def mutate(data: bytes, random: Random) -> bytes:
    """One file in the way of its kind."""
    return bundle.mutate(NAMES, data, random)


def _take_up(place: Path) -> None:
    """What preparing a model again asks of the one that is there."""
    command = Prepare(model=MODEL)
    existing(command)
    quality_of(command)
    texts_of(command)
    read_continuations(place, SPEC, "x")
    read_sensitivities(place, 1, "x")


@contextmanager
def _home(folder: Path):
    before = os.environ.get("DECDEC_HOME")
    os.environ["DECDEC_HOME"] = str(folder)
    try:
        yield
    finally:
        del os.environ["DECDEC_HOME"]
        if before is not None:
            os.environ["DECDEC_HOME"] = before
