"""The sensitivity of one linear, and the layer that gathers it."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The Fisher information F[o, i] of a linear's weights, kept as its sums over rows and over columns.

    A disturbance of weight (o, i) with variance v raises KL(original || disturbed) by F[o, i] * v / 2 nats
    per token. F is taken as outputs[o] * inputs[i] / total, which reproduces both sums.

    outputs: float32 [n_out], inputs: float32 [n_in]; both sum to `total`.
    """

    outputs: torch.Tensor
    inputs: torch.Tensor

    def __post_init__(self) -> None:
        for part in (self.outputs, self.inputs):
            if part.dtype != torch.float32 or part.dim() != 1 or not part.numel():
                raise ValueError("a sensitivity is made of two flat float32 tensors")
            if not bool((torch.isfinite(part) & (part >= 0)).all()):
                raise ValueError("a sensitivity holds values that are negative or not finite")

    @property
    def total(self) -> float:
        """Sum over all weights."""
        return float(self.outputs.double().sum())

    @property
    def weights(self) -> int:
        """Number of weights."""
        return self.outputs.numel() * self.inputs.numel()


class Tap:
    """A dense linear that notes, as gradients flow back, what its weights contribute.

    With g the gradient of a token's sampled log likelihood by the output and x the input, F[o, i] is the
    mean of g[o]^2 x[i]^2 over tokens. Source: Fisher information with labels drawn from the model itself,
    as in K-FAC (Martens & Grosse 2015), here in its diagonal.
    """

    def __init__(self, weight: torch.Tensor, each: bool = False) -> None:
        """`each`: keep F of every weight too, float32 [n_out, n_in]."""
        self.weight = weight
        self.n_out, self.n_in = weight.shape
        self._each = torch.zeros(weight.shape) if each else None
        self._outputs = torch.zeros(self.n_out, dtype=torch.float64)
        self._inputs = torch.zeros(self.n_in, dtype=torch.float64)
        self._tokens = 0

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """float32 [tokens, n_in] -> [tokens, n_out], multiplied in the weight's own type."""
        y = torch.nn.functional.linear(x.to(self.weight.dtype), self.weight).float()
        if y.requires_grad:
            seen = x.detach()
            y.register_hook(lambda gradient: self._add(seen, gradient))
        return y

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        return self.prefill(x)

    def bytes_in_memory(self) -> int:
        """Bytes of the weight."""
        return self.weight.nbytes

    def sensitivity(self) -> Sensitivity:
        """What was noted, per token."""
        count = max(self._tokens, 1)
        return Sensitivity((self._outputs / count).float(), (self._inputs / count).float())

    def every_weight(self) -> torch.Tensor | None:
        """F of every weight, float32 [n_out, n_in]; None where only its sums were asked for."""
        return None if self._each is None else self._each / max(self._tokens, 1)

    def _add(self, x: torch.Tensor, gradient: torch.Tensor) -> None:
        g2, x2 = gradient.square(), x.square()
        if self._each is not None:
            narrow = self.weight.dtype
            self._each += g2.t().contiguous().to(narrow) @ x2.to(narrow)
        self._outputs += (x2.sum(1) @ g2).double()
        self._inputs += (g2.sum(1) @ x2).double()
        self._tokens += len(x)
