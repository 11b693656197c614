"""What a block's linears see while the source's own weights read the calibration texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from runtime.calibration import SINK_TOKENS, InputStatistics
from runtime.evaluate.runner import Runner
from runtime.layers.base import LINEAR_KINDS, Linear, LinearKind
from runtime.layers.dense import Dense
from runtime.model.decoder import Block
from runtime.quantise import walk
from runtime.quantise.inputs import InputMoments

Parts = dict[LinearKind, tuple[torch.Tensor, ...]]


class BlockInputs:
    """Inputs of one block's linears by kind, text by text: float32 [T, n_in] on the CPU."""

    def __init__(self) -> None:
        self.texts: dict[LinearKind, list[torch.Tensor]] = {kind: [] for kind in LINEAR_KINDS}

    def statistics(self, kind: LinearKind, columns: torch.Tensor | None) -> InputStatistics:
        """Bucket profile and mean square of the inputs divided by a base's column factors."""
        found = InputStatistics(self.texts[kind][0].shape[1])
        for x in self.texts[kind]:
            found.add(x[SINK_TOKENS:] if columns is None else x[SINK_TOKENS:] / columns)
        return found


@dataclass(frozen=True, slots=True)
class BlockSource:
    """A block's own weights, part by part float32 [rows, n_in], and its inputs where anything needs them."""

    index: int
    parts: Parts
    inputs: BlockInputs | None
    device: torch.device

    def reference(self) -> dict[LinearKind, Linear]:
        """The weights as they are."""
        return {kind: Dense(torch.cat(self.parts[kind]).to(self.device)) for kind in LINEAR_KINDS}

    def seen(self, with_inputs: bool) -> walk.BlockInputs:
        """The block as quantisers take it; without inputs, to those that do not look at any."""
        weights = {kind: torch.cat(self.parts[kind]) for kind in LINEAR_KINDS}
        inputs = {kind: torch.empty(0, weights[kind].shape[1]) for kind in LINEAR_KINDS}
        if with_inputs and self.inputs is not None:
            inputs = {kind: torch.cat(texts) for kind, texts in self.inputs.texts.items()}
        moments = {kind: InputMoments(inputs[kind]) for kind in LINEAR_KINDS}
        return walk.BlockInputs(self.index, weights, moments)


class _Listener:
    """A linear that keeps its inputs."""

    def __init__(self, linear: Linear, kept: list[torch.Tensor]) -> None:
        self.linear, self.kept = linear, kept
        self.n_in, self.n_out = linear.n_in, linear.n_out

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        self.kept.append(x.float().cpu())
        return self.linear.prefill(x)

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        return self.prefill(x)

    def bytes_in_memory(self) -> int:
        """Bytes of the linear."""
        return self.linear.bytes_in_memory()


class Calibration:
    """Calibration texts int64 [T] on their way through the model, one block at a time."""

    def __init__(self, runner: Runner, texts: Sequence[torch.Tensor]) -> None:
        self._runner = runner
        self._states = [runner.embed(text) for text in texts]

    def __len__(self) -> int:
        return len(self._states)

    def step(self, block: Block, tick: Callable[[], None]) -> BlockInputs:
        """Go through a block that holds the source's linears; gives what they saw."""
        inputs, linears = BlockInputs(), block.linears
        block.linears = {kind: _Listener(linears[kind], inputs.texts[kind]) for kind in LINEAR_KINDS}
        for number, h in enumerate(self._states):
            self._states[number] = self._runner.step(block, h)
            tick()
        block.linears = linears
        return inputs
