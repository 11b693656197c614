"""Where a model's own weights are, and its tokens of a text."""

from __future__ import annotations

from pathlib import Path

import torch

from runtime import sources, store
from runtime.errors import DecdecError
from runtime.progress import JobContext


def locate(model: str, ctx: JobContext) -> Path:
    """Path of the weights: one given directly, those a prepared model was made from, or fetched."""
    if Path(model).exists():
        return Path(model)
    for record in store.models():
        origin = str(record.record.get("source_path", ""))
        if record.name == model and origin and Path(origin).exists():
            return Path(origin)
    return sources.resolve(model).fetch(ctx)


def read_text(path: Path) -> str:
    """A UTF-8 file, every kind of line end read as one newline, so that figures are the same everywhere."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DecdecError(f"The text {path} cannot be read", str(error), "give a UTF-8 text file") from error


def windows(tokens: list[int], context: int, count: int | None) -> list[torch.Tensor]:
    """Non-overlapping int64 [context] from the start; DecdecError when not even one fits."""
    whole = len(tokens) // context
    if whole == 0:
        raise DecdecError(
            "The text is too short", f"it has {len(tokens)} tokens, a window has {context}", "lower --context"
        )
    rows = min(whole, count or whole)
    return list(torch.tensor(tokens[: rows * context], dtype=torch.int64).view(rows, context))
