"""The worker's INT8-X jobs: encode, verify, inspect."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from kernels.int8x import Quantised
from runtime import sources, store
from runtime.errors import DecdecError
from runtime.int8x import plot
from runtime.int8x.choice import CodecChoice
from runtime.int8x.encoding import encode_checkpoint
from runtime.int8x.reader import Int8xReader
from runtime.int8x.report import by_kind, combine, is_decoder_linear
from runtime.int8x.tally import Tally
from runtime.int8x.verifying import Compare, comparison, source_at_hand, survey
from runtime.pictures import require_suffix
from runtime.progress import JobContext
from runtime.protocol.quality import Quality
from runtime.sources import catalogue


def encode(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Code `source` (folder, .gguf, or a name) into the folder `destination`.

    `quality`: see `Quality`, balanced unless told; `codec` and `levels`: see `CodecChoice`, levels alone
    mean bitmaps.
    """
    source, folder = _text(args, "source"), Path(_text(args, "destination"))
    quality = Quality.parse(args.get("quality") or {"preset": "balanced"})
    choice = _choice(args)
    path = sources.resolve(source).fetch(ctx)
    encode_checkpoint(path, folder, quality, ctx, choice)
    reader = Int8xReader(folder)
    entries = [reader.coded_entry(name) for name in reader.coded_names()]
    weights = sum(entry.weights for entry in entries)
    return {
        "folder": str(folder),
        "quality": quality.describe(),
        **choice.describe(),
        "codecs": Counter(str(entry.__struct_config__.tag) for entry in entries),
        "tensors": len(entries),
        "weights": weights,
        "bits_per_weight": sum(entry.stored_bits for entry in entries) / max(weights, 1),
    }


def verify(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Compare every weight of `model` with its source (`source`, or the recorded one if unchanged).

    Without a source: with the hash taken before coding, and the stored streams with a fresh coding.
    """
    folder, recorded = _locate(args)
    reader = Int8xReader(folder)
    source = Path(args["source"]) if args.get("source") else source_at_hand(reader, recorded)
    reports, mismatches = survey(reader, ctx, "verify", comparison(reader, source))
    total = combine("total", reports)
    return {
        "lossless": mismatches == 0,
        "tensors": total.tensors,
        "weights": total.weights,
        "mismatches": mismatches,
        "bits_per_weight": total.bits_per_weight,
        "entropy_bits_per_weight": total.entropy_bits_per_weight,
        "huffman_bits_per_weight": total.huffman_bits_per_weight,
    }


def inspect(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """What `model` is made of: per tensor, per tensor kind, decoder linears and everything together.

    `plot`: a file ending in .svg or .png to draw it into.
    """
    picture = Path(args["plot"]) if args.get("plot") else None
    if picture:
        require_suffix(picture)
    folder, _ = _locate(args)
    reader = Int8xReader(folder)
    quantization = reader.config["quantization_config"]
    title, tally = str(args.get("model") or folder.name), Tally()
    reports, _ = survey(reader, ctx, "inspect", _counting(reader, tally) if picture else None)
    if picture:
        plot.draw(picture, Path(title).name, tally, reports)
    linears = [report for report in reports if is_decoder_linear(report)]
    return {
        "model": title,
        "format_version": quantization["format_version"],
        "quality": _described(quantization.get("quality")),
        "tensors": msgspec.to_builtins(reports),
        "kinds": msgspec.to_builtins(by_kind(reports)),
        "decoder_linears": msgspec.to_builtins(combine("decoder_linears", linears)),
        "total": msgspec.to_builtins(combine("total", reports)),
    }


def _choice(args: dict[str, Any]) -> CodecChoice:
    levels = args.get("levels")
    codec: Any = args.get("codec") or ("bitmap" if levels else "auto")
    try:
        return CodecChoice(codec, tuple(levels) if levels else None)
    except (TypeError, ValueError) as error:
        raise DecdecError(
            "The codec cannot be used", str(error), "use --codec auto, adaptive, bitmap or raw", 2
        ) from error


def _counting(reader: Int8xReader, tally: Tally) -> Compare:
    """A visitor of `survey` that finds no mismatch but counts every tensor."""

    def visit(name: str, matrix: Quantised) -> int:
        tally.add(reader.coded_entry(name), matrix.q, reader.parts(name))
        return 0

    return visit


def _locate(args: dict[str, Any]) -> tuple[Path, str | None]:
    name = args.get("model") or catalogue.default().name
    if Path(name).is_dir():
        return Path(name), None
    record = store.find(name)
    return record.path, record.record.get("source_path")


def _text(args: dict[str, Any], key: str) -> str:
    value = args.get(key)
    if not isinstance(value, str) or not value:
        raise DecdecError(f"The {key} of the INT8-X model is missing", "", f"say which {key} to use", 2)
    return value


def _described(quality: Any) -> str | None:
    """What a model was made for, in words; None where nothing was written down."""
    return Quality.parse(quality).describe() if quality else None
