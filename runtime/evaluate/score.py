"""Scores of next-token predictions against a text and against the reference's own predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass(slots=True)
class Score:
    """Sums over predictions: negative log likelihood, KL(reference || model) in nats, equal first choices."""

    predictions: int = 0
    nll: float = 0.0
    kl: float = 0.0
    agreeing: int = 0

    def add(self, logits: torch.Tensor, reference: torch.Tensor, targets: torch.Tensor) -> None:
        """Take in float32 logits [T, vocab] of model and reference, and the true tokens int64 [T]."""
        ours, theirs = logits.log_softmax(-1), reference.log_softmax(-1)
        self.predictions += len(targets)
        self.nll -= float(ours.gather(1, targets[:, None]).double().sum())
        self.kl += float((theirs.exp() * (theirs - ours)).sum(-1).double().sum())
        self.agreeing += int((ours.argmax(-1) == theirs.argmax(-1)).sum())

    @property
    def mean_nll(self) -> float:
        """Nats per prediction."""
        return self.nll / self.predictions

    def figures(self, reference: Score) -> dict[str, float]:
        """The result's columns; top1 is a fraction, ppl infinite when it exceeds a float."""
        ppl = math.exp(self.mean_nll) if self.mean_nll < 700 else math.inf
        return {
            "ppl": ppl,
            "nll_delta": self.mean_nll - reference.mean_nll,
            "kl": self.kl / self.predictions,
            "top1": self.agreeing / self.predictions,
        }
