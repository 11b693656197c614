"""Linears as the evaluation computes them, in float32: y = Q (x / c) + R (x / c masked)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from kernels.cpu.masks import bucket_rows, exact_rows
from kernels.dec import bucket_mask, exact_mask, random_mask, static_mask
from runtime.calibration import InputStatistics
from runtime.evaluate.request import Select

Mask = Callable[[torch.Tensor, int], torch.Tensor]
# Recall is a mean over so many inputs that every eighth token is enough.
RECALL_EVERY = 8


@dataclass(slots=True)
class Recall:
    """How many of the truly largest channels a selection found, summed over tokens and linears."""

    found: int = 0
    wanted: int = 0

    def add(self, x: torch.Tensor, mask: torch.Tensor, k_chunk: int) -> None:
        """Take in inputs [tokens, n_in] and the channels selected in them."""
        best = largest(x, k_chunk)
        self.found += int((best & mask).sum())
        self.wanted += int(best.sum())

    @property
    def share(self) -> float | None:
        """Within 0..1; None when nothing was selected."""
        return self.found / self.wanted if self.wanted else None


class Scaled:
    """A base alone: weight float32 [n_out, n_in] in the domain of its column factors [n_in]."""

    def __init__(self, weight: torch.Tensor, columns: torch.Tensor | None) -> None:
        self.weight = weight
        self.inverse_columns = None if columns is None else columns.reciprocal()
        self.n_out, self.n_in = weight.shape

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs in the base's domain."""
        return x if self.inverse_columns is None else x * self.inverse_columns

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        return self.scaled(x) @ self.weight.t()

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        return self.prefill(x)

    def bytes_in_memory(self) -> int:
        """Bytes of the base."""
        return self.weight.nbytes


class Corrected:
    """A base with residual float32 [n_out, n_in]; `mask(x / c, k_chunk)` picks the corrected inputs.

    Of a window the first `prompt` tokens get every channel corrected, or none where `prompt_correction` is
    off; `recall` counts the others.
    """

    def __init__(
        self,
        base: Scaled,
        residual: torch.Tensor,
        k_chunk: int,
        mask: Mask,
        recall: Recall,
        prompt: int = 0,
        prompt_correction: bool = True,
    ) -> None:
        self.base, self.residual, self.k_chunk, self.mask = base, residual, k_chunk, mask
        self.recall, self.prompt, self.prompt_correction = recall, prompt, prompt_correction
        self.n_out, self.n_in = base.n_out, base.n_in

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        scaled = self.base.scaled(x)
        return scaled @ self.base.weight.t() + (scaled * self._selected(scaled)) @ self.residual.t()

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        return self.prefill(x)

    def bytes_in_memory(self) -> int:
        """Bytes of base and residual."""
        return self.base.bytes_in_memory() + self.residual.nbytes

    def _selected(self, scaled: torch.Tensor) -> torch.Tensor:
        mask = self.mask(scaled, self.k_chunk)
        mask[: self.prompt] = self.prompt_correction
        sample = slice(self.prompt, None, RECALL_EVERY)
        self.recall.add(scaled[sample], mask[sample], self.k_chunk)
        return mask


def mask_rule(select: Select, statistics: InputStatistics | None, seed: int, device: torch.device) -> Mask:
    """The rule of a linear; bucket and static need statistics of its calibrated x / c."""
    if select == "exact":
        return largest
    if select == "random":
        generator = torch.Generator(device).manual_seed(seed)
        return lambda x, k: random_mask(x, k, generator)
    if statistics is None:
        raise ValueError(f"selection {select} needs calibration")
    if select == "bucket":
        return _bucketed(statistics.profile)
    importance = statistics.mean_square.to(device)
    return lambda x, k: static_mask(x, k, importance)


def largest(x: torch.Tensor, k_chunk: int) -> torch.Tensor:
    """The true largest magnitudes of every chunk."""
    if _compiled(x):
        return torch.from_numpy(exact_rows(x.numpy(), k_chunk))
    return exact_mask(x, k_chunk)


def _bucketed(profile: torch.Tensor) -> Mask:
    def mask(x: torch.Tensor, k_chunk: int) -> torch.Tensor:
        if _compiled(x):
            return torch.from_numpy(bucket_rows(x.numpy(), k_chunk, profile.numpy()))
        return bucket_mask(x, k_chunk, profile)

    return mask


def _compiled(x: torch.Tensor) -> bool:
    """Whether the compiled rules hold for these inputs: in host memory, and finite, as their sum shows."""
    return x.device.type == "cpu" and math.isfinite(float(x.sum()))


def int8_rounded(weight: torch.Tensor, scale: str) -> torch.Tensor:
    """Symmetric INT8 and back: one step absmax/127 per row or for the whole tensor."""
    largest = weight.abs().amax(dim=1, keepdim=True) if scale == "row" else weight.abs().amax()
    step = (largest / 127).clamp(min=torch.finfo(torch.float32).tiny)
    return (weight / step).round().clamp(-127, 127) * step
