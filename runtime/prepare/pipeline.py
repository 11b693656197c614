"""Everything a chat needs, from any source, in one resumable pass over the source's own weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch

from runtime import lowbit, sources, store
from runtime.calibration.continuations import model_texts
from runtime.calibration.prompts import checkpoint_texts
from runtime.checkpoint import Checkpoint, open_checkpoint
from runtime.checkpoint.packed import PackedCheckpoint
from runtime.errors import DecdecError, Interrupted
from runtime.int8x import fingerprint
from runtime.int8x.config import FORMAT_VERSION
from runtime.int8x.encoding import TensorCoder, encode_tensors, open_writer
from runtime.int8x.writer import AUTO
from runtime.model.source import SourceModel
from runtime.model.spec import ModelSpec
from runtime.prepare.bases import BaseMaker, forget_other_packed, missing_blocks
from runtime.prepare.sizes import bits_per_weight, head_bytes, staging_bytes, tree_bytes
from runtime.prepare.text import write_text
from runtime.progress import JobContext
from runtime.protocol.bases import BaseSpec
from runtime.protocol.commands import Prepare
from runtime.protocol.quality import BALANCED, Quality
from runtime.quantise.allocation import base_that_fits
from runtime.quantise.makers import Setting
from runtime.rate import Kept, make_rounder
from runtime.sources.recorded import source_again
from runtime.store import ModelRecord, atomic, manifest
from runtime.store.building import removed_meanwhile

Texts = Literal["prompts", "continuations"]
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
    source = source_again(command.name, command.model)
    name = command.name or source.name
    path = source.fetch(ctx)
    checkpoint, origin = open_checkpoint(path), fingerprint(path)
    quality = quality_of(command)
    recipe = {"quality": msgspec.to_builtins(quality), "formats": FORMATS, "texts": texts_of(command)}
    identity = {"source": source.record, "fingerprint": origin, **recipe}
    with store.building(name, identity, ctx) as staging:
        bases, packed = wanted_bases(command, checkpoint), packed_base(command, staging)
        bases += _damaged_bases(name, {**source.record, **recipe}, bases)
        filling = _Filling(checkpoint, origin, staging, quality, bases, packed, recipe["texts"])
        bits = filling.run(ctx)
        record = {
            **source.record,
            "bits_per_weight": bits,
            **recipe,
            "bases": _bases_in(staging, filling.blocks),
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
    if command.fit is not None or command.base_from is not None:
        return False
    if command.continuations and made.get("texts") != "continuations":
        return False
    wanted = set(command.bases)
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


def texts_of(command: Prepare) -> Texts:
    """What a model is calibrated on: continuations where they are asked for or the model there had them."""
    had = _recorded(_store_name(command)).get("texts") == "continuations"
    return "continuations" if command.continuations or had else "prompts"


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
        "bases": record.record.get("bases", []),
    }


def _store_name(command: Prepare) -> str:
    if command.name:
        return command.name
    try:
        return sources.resolve(command.model).name
    except DecdecError:
        return command.model


def _bases_in(folder: Path, blocks: int) -> list[str]:
    """The bases that are whole, those of earlier runs too."""
    names = [path.name.removeprefix("base-") for path in sorted(folder.glob("base-*"))]
    return [n for n in names if all(lowbit.has_block(folder, n, index) for index in range(blocks))]


def wanted_bases(command: Prepare, checkpoint: Checkpoint) -> list[BaseSpec]:
    """The bases asked for, with the bits that fit where a size was given. Raises DecdecError."""
    if command.fit is None:
        return [BaseSpec.parse(base) for base in command.bases]
    spec = ModelSpec.from_config(checkpoint.config)
    other = head_bytes(spec)
    return [base_that_fits(spec, method, command.fit, other) for method in command.bases]  # type: ignore[arg-type]


def _damaged_bases(name: str, made_from: dict[str, Any], wanted: Sequence[BaseSpec]) -> list[BaseSpec]:
    """Bases that the same model had, and that nobody asks for: whatever is bad of them is made again.

    One that was read from a packed checkpoint is left out; that is not at hand.
    """
    had = _recorded(name)
    if any(had.get(key) != value for key, value in made_from.items()):
        return []
    bases = [BaseSpec.parse(base) for base in had.get("bases", [])]
    return [base for base in bases if base not in wanted and base.method != "packed"]


def packed_base(command: Prepare, staging: Path) -> PackedCheckpoint | None:
    """The checkpoint that the base "packed4" is read from; blocks made from another one are dropped."""
    if command.base_from is None:
        return None
    packed = PackedCheckpoint(Path(command.base_from))
    forget_other_packed(staging, fingerprint(Path(command.base_from)))
    return packed


@dataclass(frozen=True, slots=True)
class _Filling:
    """Making every file of a model in its staging folder, as far as an earlier run has not."""

    checkpoint: Checkpoint
    origin: str
    staging: Path
    quality: Quality
    bases: Sequence[BaseSpec]
    packed: PackedCheckpoint | None
    texts: Texts

    def run(self, ctx: JobContext) -> float:
        """Gives the bits per weight of the INT8-X form."""
        self._check_room()
        write_text(self.checkpoint, self.staging)
        self._encode(ctx)
        encoded = manifest.contents(self.staging)
        self._quantise(ctx)
        self._require_all(encoded)
        return bits_per_weight(self.staging, self.checkpoint)

    @property
    def blocks(self) -> int:
        """Decoder blocks of the model."""
        return len(ModelSpec.from_config(self.checkpoint.config).layers)

    def _quantise(self, ctx: JobContext) -> None:
        missing = missing_blocks(self.staging, self.bases, self.blocks)
        if not missing:
            return
        kept = Kept(self.staging, self.origin)
        setting = Setting(SourceModel(self.checkpoint), lambda: self._texts(ctx), ctx, kept, self.packed)
        BaseMaker(setting, missing, self.staging).run()

    def _require_all(self, encoded: Sequence[str]) -> None:
        """Refuse to go on without a file that was there: what is published counts as whole from then on."""
        lost = not all((self.staging / file).is_file() for file in encoded)
        if lost or missing_blocks(self.staging, self.bases, self.blocks):
            raise removed_meanwhile(self.staging)

    def _check_room(self) -> None:
        """What an interrupted run has made needs no room a second time."""
        spec = ModelSpec.from_config(self.checkpoint.config)
        needed = staging_bytes(self.checkpoint, spec, self.bases)
        store.require_space(self.staging, max(0, needed - tree_bytes(self.staging)))

    def _encode(self, ctx: JobContext) -> None:
        writer = open_writer(self.staging, self.quality, AUTO, self.origin)
        kept = Kept(self.staging, self.origin)
        rounder = make_rounder(self.checkpoint, self.quality, lambda: self._texts(ctx), ctx, kept)
        encode_tensors(TensorCoder(writer, self.checkpoint, rounder), self.checkpoint, ctx)
        config = {**self.checkpoint.config, "quantization_config": writer.finish()}
        atomic.write_json(self.staging / "config.json", config)

    def _texts(self, ctx: JobContext) -> list[torch.Tensor]:
        if self.texts == "prompts":
            return checkpoint_texts(self.checkpoint)
        return model_texts(SourceModel(self.checkpoint), self.staging, self.origin, ctx)
