"""The worker's job `export`: a prepared model as a folder that vLLM and transformers load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime import store
from runtime.errors import DecdecError
from runtime.export import config
from runtime.export.destination import appearing, require_new
from runtime.export.folding import Folds, find_folds
from runtime.export.notes import notes_of
from runtime.export.pieces import Contents, contents_of, module_of
from runtime.export.shards import SHARD_BYTES, write_shards
from runtime.int8x import Int8xReader
from runtime.model.spec import ModelSpec
from runtime.model.weights import EMBEDDING, HEAD
from runtime.progress import JobContext
from runtime.sources import catalogue
from runtime.store import atomic, require_space
from runtime.store.integrity import counting

FORMATS = (config.QUANT_METHOD,)
# Headers, index, configuration and tokenizer beside the tensors' own bytes.
OTHER_BYTES = 64 << 20


def export(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Write `model` (a name in the store or an INT8-X folder; left out: the default) to `destination`.

    `format`: one of FORMATS. Progress "export" in bytes. DecdecError for a destination that is not new, a
    full disk or a damaged model; nothing of an export that did not finish stays.
    """
    name, folder = args.get("model") or catalogue.default().name, _destination(args)
    require_new(folder)
    reader = Int8xReader(_source(name))
    spec = ModelSpec.from_config(reader.config)
    folds = find_folds(reader, spec)
    contents = contents_of(reader, spec, folds)
    require_space(folder, contents.nbytes + OTHER_BYTES)
    with appearing(folder) as temporary:
        files = _fill(temporary, reader, contents, ctx)
    return {"model": Path(name).name, "folder": str(folder), "files": files} | _described(
        reader, contents, folds
    )


def _fill(folder: Path, reader: Int8xReader, contents: Contents, ctx: JobContext) -> list[str]:
    ctx.progress("export", 0, contents.nbytes, "bytes")
    files = write_shards(folder, contents, counting(ctx, "export", contents.nbytes), SHARD_BYTES)
    with store.translated(folder, "Copying the tokenizer"):
        reader.write_tokenizer(folder)
    linears = [module_of(name) for name in contents.bfloat16 if name not in (EMBEDDING, HEAD)]
    ignore = [module_of(HEAD), *linears]
    atomic.write_json(folder / "config.json", config.exported_config(reader.config, ignore))
    return files


def _described(reader: Int8xReader, contents: Contents, folds: Folds) -> dict[str, Any]:
    """What went out in which form."""
    return {
        "format": f"{config.QUANT_METHOD}, {config.FORMAT}",
        "bytes": contents.nbytes,
        "int8_matrices": len(contents.int8),
        "int8_weights": _weights(reader, contents.int8),
        "bf16_weights": _weights(reader, contents.bfloat16),
        "bf16_modules": [module_of(name) for name in contents.bfloat16],
        "folded_norms": len(folds.norms),
        "folded_matrices": len(folds.rows),
        "notes": notes_of(contents, folds),
    }


def _weights(reader: Int8xReader, names: tuple[str, ...]) -> int:
    return sum(reader.coded_entry(name).weights for name in names)


def _destination(args: dict[str, Any]) -> Path:
    wanted = args.get("format") or FORMATS[0]
    if wanted not in FORMATS:
        raise DecdecError(f"There is no export format {wanted!r}", f"known is {', '.join(FORMATS)}", code=2)
    destination = args.get("destination")
    if not isinstance(destination, str) or not destination:
        raise DecdecError("The destination of the export is missing", "", "name a new folder", 2)
    return Path(destination)


def _source(name: str) -> Path:
    return Path(name) if Path(name).is_dir() else store.find(name).path
