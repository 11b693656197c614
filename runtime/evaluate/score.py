"""Scores of next-token predictions against a text and against the reference's own predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference's predictions, made once for all rows: p [T, vocab], its logarithm, first choices [T]."""

    log_p: torch.Tensor
    p: torch.Tensor
    first: torch.Tensor

    @classmethod
    def of(cls, logits: torch.Tensor) -> Reference:
        """From float32 logits [T, vocab]."""
        log_p = logits.log_softmax(-1)
        return cls(log_p, log_p.exp(), log_p.argmax(-1))


@dataclass(slots=True)
class Score:
    """Sums over predictions: negative log likelihood, KL(reference || model) in nats, equal first choices."""

    predictions: int = 0
    nll: float = 0.0
    kl: float = 0.0
    agreeing: int = 0

    def add(self, logits: torch.Tensor, reference: Reference, targets: torch.Tensor) -> None:
        """Take in float32 logits [T, vocab] of the model, and the true tokens int64 [T]."""
        ours = logits.log_softmax(-1)
        self.predictions += len(targets)
        self.nll -= float(ours.gather(1, targets[:, None]).double().sum())
        self.kl += float((reference.p * (reference.log_p - ours)).sum(-1).double().sum())
        self.agreeing += int((ours.argmax(-1) == reference.first).sum())

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
