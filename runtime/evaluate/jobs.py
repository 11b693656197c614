"""The worker's entry for `eval ppl`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from runtime.errors import DecdecError
from runtime.evaluate.bases import Setting, maker, needs_inputs
from runtime.evaluate.request import BaseWish, Request, Row
from runtime.evaluate.runner import Runner, compute_device
from runtime.evaluate.source import locate, read_text, windows
from runtime.evaluate.walk import Stream, Walk
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.store.temporary import temporary_folder
from runtime.text.encoder import encoder


def ppl(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Perplexity, KL and agreement of quantised weights against the source's own in float32.

    `args` are those of `runtime.evaluate.request.Request.parse`. Non-overlapping windows, no BOS, context - 1
    predictions each (less the prompt's), every position corrected. Result as in `eval ppl --json`; top1 and
    recall are fractions.
    """
    request = Request.parse(args)
    with temporary_folder() as folder:
        tokens, rows = score(request, request.rows(), folder, ctx)
    return {
        "model": request.model,
        "text": request.text,
        "tokens": tokens,
        "prompt": request.prompt,
        "prompt_correction": request.corrects_prompt,
        "device": str(compute_device()),
        "rows": rows,
    }


def score(
    request: Request, rows: Sequence[Row], folder: Path, ctx: JobContext
) -> tuple[int, list[dict[str, Any]]]:
    """(tokens read, one result a row). Rows of one base and one residual width must follow each other.

    `folder` keeps sensitivities, for further calls with the same model.
    """
    where, text = compute_device(), read_text(Path(request.text))
    with torch.no_grad():
        path = locate(request.model, ctx)
        model = SourceModel.open(path)
        if request.context > model.spec.context:
            raise DecdecError(
                f"A window of {request.context} tokens is too long", f"the model reads {model.spec.context}"
            )
        chosen = windows(encoder(model.checkpoint)(text), request.context, request.windows)
        walk = _walk(Setting(model, path, request, folder, ctx), rows, where)
        walk.run(chosen, ctx)
    return sum(map(len, chosen)), [_row(row, walk) for row in rows]


def _walk(setting: Setting, rows: Sequence[Row], where: torch.device) -> Walk:
    bases = dict.fromkeys(row.base for row in rows if row.base.method != "bf16")
    makers = {base: maker(base, setting) for base in bases}
    selected = any(row.k_chunk and row.select in ("bucket", "static") for row in rows)
    texts = setting.texts() if selected or any(map(needs_inputs, bases)) else []
    return Walk(Runner(setting.model, where), setting.request, rows, makers, texts)


def _row(row: Row, walk: Walk) -> dict[str, Any]:
    reference, plain = walk.streams[None], row.base.method == "bf16"
    stream: Stream = reference if plain else walk.streams[row]
    stored = 16.0 if plain else walk.bits_per_weight(row.base)
    return {
        "base": row.base.method,
        "bits": _bits(row.base, stored),
        "k_chunk": row.k_chunk,
        "select": row.select,
        **stream.score.figures(reference.score),
        "name": row.base.name,
        "bits_per_weight": stored,
        "residual_bits": row.residual if row.base.correctable else None,
        "recall": stream.recall.share,
    }


def _bits(base: BaseWish, stored: float) -> float | None:
    """As asked for, or what a coded base came to."""
    return stored if base.method == "int8x" else base.bits
