"""The model's own continuations of the project's prompts: what it sees while it answers.

Prompts are what people wrote; a model that chats reads mostly what it wrote itself. Sampled once at
temperature 1 with a fixed seed, many texts at a time, and kept beside the model for a resumed run.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from runtime.calibration.batch import BatchCache, BatchDecoder
from runtime.calibration.prompts import TOKENS, joined, token_batches
from runtime.layers.base import LINEAR_KINDS
from runtime.model.source import SourceModel
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape
from runtime.progress import JobContext
from runtime.sensitivity.fisher import compute_type
from runtime.store import atomic
from runtime.text.encoder import encoder

FILE = Path("calibration") / "continuations.safetensors"
TEXTS, READ, WRITTEN = 32, 32, 128
SEED = 0
# Of all matrices that a token passes, head included: half a billion take one to two minutes on two cores.
MOST_WEIGHTS = 1 << 29


def too_large(spec: ModelSpec) -> str | None:
    """Why a model is not asked for continuations; None where it is."""
    linears = len(spec.layers) * sum(prod(linear_shape(spec, kind)) for kind in LINEAR_KINDS)
    weights = linears + spec.vocab_size * spec.hidden
    if weights <= MOST_WEIGHTS:
        return None
    return (
        f"{TEXTS * WRITTEN} tokens from {weights / 1e6:.0f} million weights would take minutes;"
        f" it is done up to {MOST_WEIGHTS / 1e6:.0f} million"
    )


def model_texts(model: SourceModel, folder: Path, source: str, ctx: JobContext) -> list[torch.Tensor]:
    """Prompts and, unless the model is too large for them, continuations, joined as texts int64 [T].

    `folder`, `source`: where continuations are kept, and the fingerprint of the weights.
    """
    encode = encoder(model.checkpoint)
    written: list[torch.Tensor] = []
    if not too_large(model.spec):
        written = continuations(model, token_batches(encode), folder, source, ctx)
    return joined([*token_batches(encode, TOKENS), *written])


def continuations(
    model: SourceModel, prompts: Sequence[torch.Tensor], folder: Path, source: str, ctx: JobContext
) -> list[torch.Tensor]:
    """TEXTS texts int64 [READ + WRITTEN], from `folder` where they are kept for these weights, else written.

    prompts: int64 [T] each; those of fewer than READ tokens are left out, and few of them give few texts.
    source: fingerprint of the weights. Progress in tokens; raises Interrupted with nothing kept. The whole
    model is in memory meanwhile, two bytes a weight where the processor multiplies bfloat16.
    """
    known = read_continuations(folder, model.spec, source)
    if known is None:
        starts = _starts(prompts)
        known = write_on(model, starts, WRITTEN, ctx) if len(starts) else torch.empty(0, READ + WRITTEN)
        write_continuations(folder, known, source)
    return list(known.long())


def write_on(model: SourceModel, starts: torch.Tensor, count: int, ctx: JobContext) -> torch.Tensor:
    """Texts int64 [n, t + count] that begin with `starts` int64 [n, t], sampled from the model."""
    texts, total = len(starts), len(starts) * count
    ctx.progress("continuations", 0, total, "tokens")
    decoder = BatchDecoder(model, compute_type())
    cache = BatchCache(model.spec, texts, starts.shape[1] + count)
    generator = torch.Generator().manual_seed(SEED)
    parts = [starts]
    with torch.inference_mode():
        for step in range(count):
            logits = decoder.next_logits(parts[-1], cache)
            parts.append(torch.multinomial(logits.softmax(-1), 1, generator=generator))
            ctx.progress("continuations", (step + 1) * texts, total, "tokens")
    return torch.cat(parts, dim=1)


def write_continuations(folder: Path, texts: torch.Tensor, source: str) -> None:
    """Keep texts [n, t] for weights with this fingerprint, whole or not at all."""
    atomic.write_bytes(folder / FILE, save({"texts": texts.int().contiguous()}, {"source": source}))


def read_continuations(folder: Path, spec: ModelSpec, source: str) -> torch.Tensor | None:
    """What was kept for these weights, int32 [n, READ + WRITTEN]; None where nothing usable is."""
    try:
        with safe_open(folder / FILE, "pt") as file:
            if (file.metadata() or {}).get("source") != source:
                return None
            texts: torch.Tensor = file.get_tensor("texts")
    except (OSError, SafetensorError, ValueError):
        return None
    fits = texts.dtype == torch.int32 and texts.dim() == 2 and texts.shape[1] == READ + WRITTEN
    known = fits and bool(((texts >= 0) & (texts < spec.vocab_size)).all())
    return texts if known else None


def _starts(prompts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Beginnings int64 [n, READ] of at most TEXTS prompts, evenly spaced over those that are long enough."""
    usable = [prompt[:READ] for prompt in prompts if len(prompt) >= READ]
    chosen = torch.linspace(0, len(usable) - 1, min(TEXTS, len(usable))).round().long().tolist()
    return torch.stack([usable[i] for i in chosen]) if chosen else torch.empty(0, READ, dtype=torch.int64)
