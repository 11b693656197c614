"""The worker's entry for `eval ppl`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

from runtime.errors import DecdecError
from runtime.evaluate.bases import Setting, maker, needs_inputs
from runtime.evaluate.request import Request, Row
from runtime.evaluate.runner import Runner, compute_device
from runtime.evaluate.source import locate, read_text, windows
from runtime.evaluate.walk import Stream, Walk
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.text.encoder import encoder


def ppl(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Perplexity, KL and agreement of quantised weights against the source's own in float32.

    `args` are those of `runtime.evaluate.request.Request.parse`. Non-overlapping windows, no BOS, context - 1
    predictions each (less the prompt's), every position corrected. Result as in `eval ppl --json`; top1 and
    recall are fractions.
    """
    where, request = compute_device(), Request.parse(args)
    text = read_text(Path(request.text))
    with torch.no_grad(), tempfile.TemporaryDirectory(prefix="decdec-") as folder:
        path = locate(request.model, ctx)
        model = SourceModel.open(path)
        if request.context > model.spec.context:
            raise DecdecError(
                f"A window of {request.context} tokens is too long", f"the model reads {model.spec.context}"
            )
        chosen = windows(encoder(model.checkpoint)(text), request.context, request.windows)
        walk = _walk(Setting(model, path, request, Path(folder), ctx), where)
        walk.run(chosen, ctx)
    return {
        "model": request.model,
        "text": request.text,
        "tokens": sum(map(len, chosen)),
        "prompt": request.prompt,
        "prompt_correction": request.corrects_prompt,
        "device": str(where),
        "rows": [_row(row, walk) for row in request.rows()],
    }


def _walk(setting: Setting, where: torch.device) -> Walk:
    request = setting.request
    makers = {base: maker(base, setting) for base in request.bases if base.method != "bf16"}
    selected = any(request.k_chunk) and bool({"bucket", "static"} & set(request.select))
    listens = any(needs_inputs(base) or (selected and base.correctable) for base in makers)
    return Walk(Runner(setting.model, where), request, makers, setting.texts() if listens else [])


def _row(row: Row, walk: Walk) -> dict[str, Any]:
    reference = walk.streams[None]
    plain = row.base.method == "bf16"
    stream: Stream = reference if plain else walk.streams[row]
    stored = 16.0 if plain else walk.bits_per_weight(row.base)
    return {
        "base": row.base.method,
        "bits": stored if row.base.method == "int8x" else row.base.bits,
        "k_chunk": row.k_chunk,
        "select": row.select,
        **stream.score.figures(reference.score),
        "name": row.base.name,
        "bits_per_weight": stored,
        "residual_bits": row.residual if row.base.correctable else None,
        "recall": stream.recall.share,
    }
