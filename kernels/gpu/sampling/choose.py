"""The next token chosen on the device, with all that a decode step has to write about it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from kernels.gpu.chaining import launch_chained
from kernels.gpu.sampling.draw_kernel import draw_kernel
from kernels.gpu.sampling.state import SamplerState
from kernels.gpu.sampling.tile_kernel import SUMMARY_ROWS, tile_kernel
from kernels.gpu.step_state import StepState

# More tiles than this make the lists longer than one program searches quickly.
_MOST_TILES = 128
_SMALLEST_TILE = 512
_LISTED = 32
_BLOCK = 8192
_TILE_WARPS = 4
_DRAW_WARPS = 16


@dataclass(frozen=True, slots=True)
class SamplerScratch:
    """What the two kernels hand on: `tile` tokens a program, of which it lists up to `listed`.

    keys: int32 [vocab], scores as `primitives.key_of` has them. lists: int32 [2, tiles * listed], keys and
    ids. summary: int32 [SUMMARY_ROWS, tiles].
    """

    tile: int
    listed: int
    keys: Tensor
    lists: Tensor
    summary: Tensor

    def __post_init__(self) -> None:
        if self.lists.shape != (2, self.tiles * self.listed) or not 0 < self.listed <= self.tile:
            raise ValueError(f"lists {list(self.lists.shape)} do not fit {self.tiles} tiles of {self.tile}")
        if self.tiles * self.tile < len(self.keys) or self.summary.shape[0] != SUMMARY_ROWS:
            raise ValueError(f"{self.tiles} tiles of {self.tile} do not hold {len(self.keys)} tokens")

    @property
    def tiles(self) -> int:
        """Programs of the first kernel."""
        return self.summary.shape[1]


def new_sampler_scratch(
    vocab: int, device: torch.device, *, tile: int | None = None, listed: int = _LISTED
) -> SamplerScratch:
    """Scratch for `vocab` tokens; `tile` and `listed`, powers of two, change what it costs and nothing else.

    Lists long enough for a nucleus of some thousand tokens are the default; a wider one takes many times
    longer.
    """
    if vocab < 1:
        raise ValueError(f"nothing can be chosen from {vocab} tokens")
    tile = tile or max(_SMALLEST_TILE, triton.next_power_of_2(-(-vocab // _MOST_TILES)))
    tiles = -(-vocab // tile)

    def words(*shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.int32, device=device)

    return SamplerScratch(tile, listed, words(vocab), words(2, tiles * listed), words(SUMMARY_ROWS, tiles))


def choose_token(
    logits: Tensor,
    state: StepState,
    sampler: SamplerState,
    scratch: SamplerScratch,
    *,
    asm: bool | None = None,
) -> None:
    """Choose the token after `state.position` from float32 logits [1, vocab]; the state moves on to it.

    Writes state.token, answers[position + 1] and position + 1; at the context's end neither of the last two.
    Filters are those of transformers in its order: penalty, temperature, top-k, top-p, min-p; of equal scores
    the lower id comes first. Temperature 0, and logits that are not finite, give the largest; where there is
    none above -infinity the answer is NO_ANSWER and the token 0. The draw
    depends on seed and position alone, so that a step can be run again. ValueError for shapes that differ.
    """
    vocab = len(scratch.keys)
    if logits.dtype != torch.float32 or logits.numel() != vocab or sampler.vocab != vocab:
        raise ValueError(f"{list(logits.shape)} logits, {sampler.vocab} tokens seen and {vocab} in scratch")
    launch_chained(
        tile_kernel,
        (scratch.tiles,),
        logits,
        sampler.seen,
        sampler.settings,
        state.position,
        scratch.keys,
        scratch.lists,
        scratch.summary,
        vocab,
        TILE=scratch.tile,
        MOST=scratch.listed,
        asm=asm,
        num_warps=_TILE_WARPS,
    )
    launch_chained(
        draw_kernel,
        (1,),
        sampler.settings,
        state.position,
        state.token,
        state.answers,
        scratch.keys,
        scratch.lists,
        scratch.summary,
        vocab,
        state.context,
        scratch.tiles,
        TILES=triton.next_power_of_2(scratch.tiles),
        MOST=scratch.listed,
        BLOCK=min(_BLOCK, triton.next_power_of_2(vocab)),
        asm=asm,
        num_warps=_DRAW_WARPS,
    )
