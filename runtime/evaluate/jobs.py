"""The worker's entry for `eval ppl`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from runtime import device
from runtime.calibration import token_batches
from runtime.calibration.collect import BlockStatistics
from runtime.calibration.prompts import checkpoint_texts
from runtime.errors import DecdecError
from runtime.evaluate.coder import Coder
from runtime.evaluate.request import Request
from runtime.evaluate.source import locate, read_text, windows
from runtime.evaluate.walk import Walk, calibrate
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.rate import make_rounder
from runtime.text.encoder import Encode, encoder


def ppl(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Perplexity, KL and agreement of quantised weights against the source's own in float32.

    `args` are the fields of `runtime.evaluate.request.Request`. Non-overlapping windows, no BOS, context - 1
    predictions each, every position corrected. Result as in `eval ppl --json`; top1 is a fraction.
    """
    device.require_wanted()
    request = Request.parse(args)
    text = read_text(Path(request.text))
    with torch.no_grad():
        model = SourceModel.open(locate(request.model, ctx))
        if request.context > model.spec.context:
            raise DecdecError(
                f"A window of {request.context} tokens is too long", f"the model reads {model.spec.context}"
            )
        encode = encoder(model.checkpoint)
        chosen = windows(encode(text), request.context, request.windows)
        coder = _coder(model, request, ctx)
        walk = Walk(model, request, _statistics(model, request, encode, ctx), coder)
        walk.run(chosen, ctx)
    return {
        "model": request.model,
        "text": request.text,
        "tokens": sum(map(len, chosen)),
        "rows": _rows(request, walk, request.bits if coder is None else coder.bits_per_weight),
    }


def _statistics(
    model: SourceModel, request: Request, encode: Encode, ctx: JobContext
) -> list[BlockStatistics] | None:
    if request.select not in ("bucket", "static") or not any(request.k_chunk):
        return None
    return calibrate(model, token_batches(encode), ctx)


def _coder(model: SourceModel, request: Request, ctx: JobContext) -> Coder | None:
    if request.base != "int8x":
        return None
    rounder = make_rounder(model.checkpoint, request.quality, lambda: checkpoint_texts(model.checkpoint), ctx)
    return Coder(rounder)


def _rows(request: Request, walk: Walk, bits: float | None) -> list[dict[str, Any]]:
    reference = walk.scores[None]
    rows = []
    for row in request.rows():
        score = reference if row.base == "bf16" else walk.scores[row]
        place = {"base": row.base, "bits": bits, "k_chunk": row.k_chunk, "select": row.select}
        rows.append({**place, **score.figures(reference)})
    return rows
