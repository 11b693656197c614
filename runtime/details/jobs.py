"""The worker's jobs about a prepared model: its details, and a look at all its files."""

from __future__ import annotations

from math import prod
from typing import Any

from runtime import store
from runtime.checkpoint.safetensors_header import read_header
from runtime.details.parts import base_part, parts
from runtime.details.tuning import profiles_of
from runtime.errors import DecdecError
from runtime.int8x import Int8xReader
from runtime.model.spec import ModelSpec
from runtime.progress import JobContext
from runtime.store import ModelRecord, manifest

# What of a block's file comes after a linear's name and is kept aside for its correction.
_RESIDUAL = (".residual", ".residual_scale", ".profile")


def details(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """What the files of `model` tell: architecture, context limit, bytes by part, and its tuning."""
    record = store.find(_model(args))
    reader = Int8xReader(record.path)
    spec = ModelSpec.from_config(reader.config)
    return {
        "model": record.name,
        "family": spec.family,
        "layers": len(spec.layers),
        "hidden": spec.hidden,
        "vocabulary": spec.vocab_size,
        "parameters": sum(prod(reader.shape(name)) for name in reader.names()),
        "context": spec.context,
        "parts": _split_parts(record, ctx),
        "profiles": profiles_of(record.name, record.record.get("bases", [])),
    }


def check_files(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Compare every file of `model` with its recorded size and SHA-256; a bad one goes to quarantine.

    Raises DecdecError that names it.
    """
    record = store.find(_model(args))
    store.verify_files(record, quick=False, ctx=ctx)
    return {"model": record.name, "files": len(manifest.read(record.path).files), "bytes": record.bytes}


def _split_parts(record: ModelRecord, ctx: JobContext) -> dict[str, int]:
    """Bytes by part, with those of residuals taken out of their bases."""
    sums = parts(record)
    for base in record.record.get("bases", []):
        residual = 0
        for path in sorted(record.path.glob(f"base-{base}/*.safetensors")):
            ctx.check()
            entries = read_header(path).values()
            residual += sum(entry.end - entry.begin for entry in entries if entry.name.endswith(_RESIDUAL))
        if residual:
            sums[base_part(base)] -= residual
            sums[f"residuals of {base}"] = residual
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _model(args: dict[str, Any]) -> str:
    model = args.get("model")
    if not isinstance(model, str) or not model:
        raise DecdecError("There is no model to look at", "", "say which", 2)
    return model
