"""Which parts of a model fit a GPU, in which form: decided by arithmetic, before anything is loaded.

Of what is left to choose, what an answer gains most by comes first: some context, the head without loss, fast
planes, prompts in large chunks, the lossless linears beside the base; the rest is context.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kernels.gpu.attention.cache import BF16_BITS, INT8_BITS
from runtime import device
from runtime.engine.gpu.contents import Contents, expected_contents
from runtime.engine.gpu.footprint import PACKINGS, SMALLEST
from runtime.engine.gpu.head import HEAD_BITS
from runtime.engine.gpu.memory_plan import MemoryPlan, Setting, lay_out
from runtime.engine.gpu.prefill import CHUNK
from runtime.errors import MachineLimit
from runtime.model.spec import ModelSpec
from runtime.store.units import in_words

SMALLEST_CONTEXT = 512
# What a conversation should have before memory goes into anything else.
COMFORTABLE_CONTEXT = 4096
CONTEXT_STEP = 64
CHUNKS = (128, 256, CHUNK)
# Bases to offer instead of one that does not fit, the best first.
OFFERED = ("awq4", "int8x3.4", "int8x3")
_FAST_FIRST = tuple(sorted(PACKINGS, reverse=True))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is asked for; None chooses: the context up to the model's limit, the bits of the head.

    lossless: hold the INT8-X linears beside a low-bit base where they fit. corrected_prompt: prompts are
    corrected, which takes buffers.
    """

    context: int | None = None
    kv_bits: int = BF16_BITS
    head_bits: int | None = None
    lossless: bool = True
    corrected_prompt: bool = True


def make_plan(contents: Contents, free: int, wishes: Wishes = Wishes()) -> MemoryPlan:
    """The plan for `free` bytes of device memory.

    Raises MachineLimit, with numbers and with what would help, where the model does not fit.
    """
    planner = _Planner(contents, free, wishes)
    plan = planner.smallest()
    if not plan.fits:
        raise planner.refused(plan)
    for better in planner.improvements():
        plan = next(
            (found for setting in better(plan.setting) if (found := planner.plan(setting)).fits), plan
        )
    return plan


def fitting_base(spec: ModelSpec, free: int, wishes: Wishes = Wishes()) -> str | None:
    """The best base of `OFFERED` that fits `free` bytes, or None; the model need not be prepared."""
    planners = (_Planner(expected_contents(spec, base), free, wishes) for base in OFFERED)
    return next((planner.contents.base for planner in planners if planner.smallest().fits), None)


# Settings to try in the place of one, the best first.
_Better = Callable[[Setting], Iterator[Setting]]


@dataclass(frozen=True, slots=True)
class _Planner:
    contents: Contents
    free: int
    wishes: Wishes

    def __post_init__(self) -> None:
        limit, asked = self.contents.spec.context, self.wishes.context
        if asked is not None and not 1 < asked <= limit:
            why = f"the model allows {limit}"
            raise MachineLimit(
                f"A context of {asked} tokens is not possible", why, f"ask for at most {limit}"
            )

    def plan(self, setting: Setting) -> MemoryPlan:
        """What a setting takes."""
        return lay_out(self.contents, setting, self.free, self.wishes.corrected_prompt)

    def smallest(self) -> MemoryPlan:
        """What the model takes at the least."""
        wishes = self.wishes
        context = wishes.context or min(SMALLEST_CONTEXT, self.contents.spec.context)
        head = min(HEAD_BITS) if wishes.head_bits is None else wishes.head_bits
        return self.plan(Setting(context, wishes.kv_bits, head, SMALLEST, CHUNKS[0]))

    def improvements(self) -> list[_Better]:
        """In the order in which memory is given to them."""
        found: list[_Better] = [self._packings, self._chunks]
        if self.wishes.head_bits is None:
            found.insert(0, self._heads)
        if self.wishes.lossless and self.contents.corrected:
            found.append(self._lossless)
        if self.wishes.context is None:
            limit = self.contents.spec.context
            found.insert(0, lambda setting: self._contexts(setting, min(limit, COMFORTABLE_CONTEXT)))
            found.append(lambda setting: self._contexts(setting, limit))
        return found

    def _heads(self, setting: Setting) -> Iterator[Setting]:
        return (replace(setting, head_bits=bits) for bits in HEAD_BITS)

    def _packings(self, setting: Setting) -> Iterator[Setting]:
        return (replace(setting, packing=packing) for packing in _FAST_FIRST)

    def _chunks(self, setting: Setting) -> Iterator[Setting]:
        return (replace(setting, chunk=chunk) for chunk in reversed(CHUNKS))

    def _lossless(self, setting: Setting) -> Iterator[Setting]:
        return (replace(setting, lossless=packing) for packing in _FAST_FIRST)

    def _contexts(self, setting: Setting, limit: int) -> Iterator[Setting]:
        """The longest up to `limit` that fits."""
        if (longest := self.longest(setting, limit)) > setting.context:
            yield replace(setting, context=longest)

    def longest(self, setting: Setting, limit: int) -> int:
        """The longest context up to `limit` that fits, in whole steps; 0 where none does."""
        lengths = [*range(CONTEXT_STEP, limit, CONTEXT_STEP), limit]
        fitting = bisect_right(
            lengths, self.free, key=lambda length: self.plan(replace(setting, context=length)).needed
        )
        return lengths[fitting - 1] if fitting else 0

    def refused(self, plan: MemoryPlan) -> MachineLimit:
        """Why not even the smallest plan fits, and what would."""
        helping = [*self._remedies(plan.setting), f"set {device.VARIABLE}={device.CPU}"]
        return MachineLimit(
            "The model does not fit on the GPU",
            f"with {self.contents.base} and a context of {plan.setting.context} tokens it needs"
            f" {in_words(plan.needed)}, and {in_words(self.free)} are free",
            f"close what else uses the GPU, or {', or '.join(helping)}",
        )

    def _remedies(self, setting: Setting) -> Iterator[str]:
        """Changes that make it fit, each by itself."""
        spec, wishes = self.contents.spec, self.wishes
        longest = self.longest(setting, setting.context)
        if longest >= min(SMALLEST_CONTEXT, spec.context):
            yield f"ask for a context of at most {longest}"
        narrow = replace(setting, kv_bits=INT8_BITS)
        if setting.kv_bits != INT8_BITS and self.plan(narrow).fits:
            yield "keep the KV cache in 8 bits (--kv-bits 8)"
        base = fitting_base(spec, self.free, wishes)
        if base is not None and base != self.contents.base:
            yield f"take the base {base}"
