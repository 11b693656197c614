"""Everything a chat needs, from any source, in one resumable pass over the source's own weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from runtime import lowbit, sources, store
from runtime.calibration.prompts import checkpoint_texts
from runtime.checkpoint import open_checkpoint
from runtime.errors import DecdecError, Interrupted
from runtime.int8x import fingerprint
from runtime.int8x.config import FORMAT_VERSION
from runtime.int8x.encoding import open_writer
from runtime.int8x.writer import AUTO
from runtime.model.spec import ModelSpec
from runtime.prepare.calibrate import calibrate
from runtime.prepare.encode import Encoder
from runtime.prepare.sizes import staging_bytes, tree_bytes
from runtime.prepare.text import write_text
from runtime.progress import JobContext
from runtime.protocol.commands import Prepare
from runtime.protocol.quality import BALANCED, Quality
from runtime.rate import Kept, make_rounder
from runtime.store import ModelRecord, atomic

# A model whose files have other formats is made again.
FORMATS = {"int8x": FORMAT_VERSION, "lowbit": int(lowbit.VERSION)}


def prepare_job(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """The worker's entry: `args` are the fields of a Prepare command; result as in `models --json`."""
    return summary(prepare(msgspec.convert(args, Prepare, strict=False), ctx))


def prepare(command: Prepare, ctx: JobContext) -> ModelRecord:
    """Fetch, encode, quantise and calibrate a model unless a whole one is there; continues what was begun.

    A model that is there is compared with its hashes first, and what is damaged is made again.

    Raises DecdecError, or Interrupted with everything finished so far kept.
    """
    ready = existing(command)
    if ready is not None and _is_whole(ready, ctx):
        return ready
    source = sources.resolve(command.model)
    name = command.name or source.name
    path = source.fetch(ctx)
    quality = quality_of(command)
    recipe = {"quality": msgspec.to_builtins(quality), "formats": FORMATS}
    identity = {"source": source.record, "fingerprint": fingerprint(path), **recipe}
    with store.building(name, identity, ctx) as staging:
        _check_room(path, staging, command)
        bits_per_weight = _fill(path, staging, command.bits, quality, ctx)
        record = {
            **source.record,
            "bits_per_weight": bits_per_weight,
            **recipe,
            "bases": [f"rtn{bits}" for bits in command.bits],
            "source_path": str(path),
        }
        return store.publish(name, staging, record, ctx)


def existing(command: Prepare) -> ModelRecord | None:
    """The whole local model that satisfies the command, found without any network."""
    for record in store.models():
        if record.name == _store_name(command):
            return record if _satisfies(record.record, command) else None
    return None


def _satisfies(made: dict[str, Any], command: Prepare) -> bool:
    wanted = {f"rtn{bits}" for bits in command.bits}
    same = command.quality is None or msgspec.to_builtins(command.quality) == made.get("quality")
    return wanted <= set(made.get("bases", [])) and same and made.get("formats") == FORMATS


def quality_of(command: Prepare) -> Quality:
    """The quality to make a model with: asked for, else what the model there has, else the default."""
    if command.quality is not None:
        return command.quality
    try:
        return msgspec.convert(_recorded(_store_name(command)).get("quality"), Quality)
    except msgspec.ValidationError:
        return BALANCED


def _recorded(name: str) -> dict[str, Any]:
    """What the maker of a model wrote down, also where files of it are damaged or missing."""
    try:
        return store.recorded(name)
    except DecdecError:
        return {}


def _is_whole(record: ModelRecord, ctx: JobContext) -> bool:
    try:
        store.verify_files(record, quick=False, ctx=ctx)
    except Interrupted:
        raise
    except DecdecError:
        return False
    return True


def summary(record: ModelRecord) -> dict[str, Any]:
    """A model as `models --json` shows it."""
    return {
        "name": record.name,
        "state": record.state,
        "bytes": record.bytes,
        "source": record.source,
        "bits_per_weight": record.bits_per_weight,
    }


def _store_name(command: Prepare) -> str:
    if command.name:
        return command.name
    try:
        return sources.resolve(command.model).name
    except DecdecError:
        return command.model


def _check_room(path: Path, staging: Path, command: Prepare) -> None:
    """What an interrupted run has made needs no room a second time."""
    checkpoint = open_checkpoint(path)
    needed = staging_bytes(checkpoint, ModelSpec.from_config(checkpoint.config), command)
    store.require_space(staging, max(0, needed - tree_bytes(staging)))


def _fill(path: Path, staging: Path, bits: tuple[int, ...], quality: Quality, ctx: JobContext) -> float:
    """Make every file of the model in `staging`; gives the bits per weight of the INT8-X form."""
    checkpoint = open_checkpoint(path)
    write_text(checkpoint, staging)
    origin = fingerprint(path)
    writer = open_writer(staging, quality, AUTO, origin)
    rounder = make_rounder(
        checkpoint, quality, lambda: checkpoint_texts(checkpoint), ctx, Kept(staging, origin)
    )
    encoder = Encoder(checkpoint, writer, rounder, staging, bits)
    encoder.run(ctx)
    quantization = writer.finish()
    atomic.write_json(staging / "config.json", {**checkpoint.config, "quantization_config": quantization})
    calibrate(staging, ctx)
    return encoder.bits_per_weight(staging)
