"""What a model takes of a GPU's memory in one setting, by what it is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runtime.engine.gpu import footprint
from runtime.engine.gpu.contents import Contents, Forms
from runtime.engine.gpu.head import STORED_BITS, head_form
from runtime.engine.gpu.prefill_memory import prefill_memory
from runtime.engine.gpu.step_memory import step_bytes
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape

# Compiled kernels, graphs, and holes between allocations: memory that no tensor has.
RESERVE_BYTES = 256 << 20
# cuBLAS's own workspace.
LIBRARY_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Setting:
    """What is left to choose: tokens of context, bits of cache and head (`runtime.engine.gpu.head`), the
    price of time that planes are packed with, tokens of a prompt at once, and the same price for the lossless
    linears beside the base (None: they are left out).
    """

    context: int
    kv_bits: int
    head_bits: int
    packing: float
    chunk: int
    lossless: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes of device memory by what they are for. base: weights and column factors by kind; corrections: the
    scales of residuals; norms: biases too; head: scales of the embedding too; prefill: what comes and goes
    with every chunk too; lossless: the INT8-X linears beside the base. free: what there was.
    """

    setting: Setting
    base: Mapping[LinearKind, int]
    corrections: int
    norms: int
    head: int
    ropes: int
    cache: int
    prefill: int
    step: int
    lossless: int
    free: int

    @property
    def weights(self) -> int:
        """What is there when the model is loaded."""
        rest = self.corrections + self.norms + self.head + self.ropes + self.lossless
        return sum(self.base.values()) + rest

    @property
    def total(self) -> int:
        """All tensors while an answer is written."""
        return self.weights + self.cache + self.prefill + self.step

    @property
    def needed(self) -> int:
        """What must be free before loading."""
        return self.total + RESERVE_BYTES

    @property
    def fits(self) -> bool:
        """Whether the model can be loaded so."""
        return self.needed <= self.free


def lay_out(contents: Contents, setting: Setting, free: int, corrected_prompt: bool = True) -> MemoryPlan:
    """The plan of a setting, whether it fits `free` bytes or not."""
    spec = contents.spec
    lossless = 0
    if setting.lossless is not None:
        lossless = sum(_by_kind(spec, contents.exact, setting.lossless).values())
    return MemoryPlan(
        setting=setting,
        base=_by_kind(spec, contents.blocks, setting.packing),
        corrections=_corrections(spec) if contents.corrected else 0,
        norms=footprint.norm_bytes(spec) + contents.bias_bytes,
        head=_head(contents, setting),
        ropes=footprint.rope_bytes(spec, setting.context),
        cache=footprint.cache_bytes(spec, setting.context, setting.kv_bits),
        prefill=_prefill(spec, setting, contents.corrected and corrected_prompt),
        step=step_bytes(spec),
        lossless=lossless,
        free=free,
    )


def _by_kind(spec: ModelSpec, blocks: Iterable[Forms], packing: float) -> dict[LinearKind, int]:
    totals: dict[LinearKind, int] = dict.fromkeys(LINEAR_KINDS, 0)
    for block in blocks:
        for kind, form in block.items():
            totals[kind] += footprint.weight_bytes(*linear_shape(spec, kind), form, packing)
    return totals


def _corrections(spec: ModelSpec) -> int:
    scales = (footprint.correction_bytes(linear_shape(spec, kind)[0]) for kind in LINEAR_KINDS)
    return len(spec.layers) * sum(scales)


def _head(contents: Contents, setting: Setting) -> int:
    """With the embedding's scales, which are the head's own where both are one table."""
    spec, form = contents.spec, head_form(contents.head, setting.head_bits)
    shared = spec.tied and setting.head_bits == STORED_BITS
    scales = 0 if shared else footprint.allocated(footprint.FLOAT_BYTES * spec.vocab_size)
    return footprint.weight_bytes(spec.vocab_size, spec.hidden, form, setting.packing) + scales


def _prefill(spec: ModelSpec, setting: Setting, corrected: bool) -> int:
    memory = prefill_memory(
        spec,
        setting.chunk,
        context=setting.context,
        corrected=corrected,
        cache_bits=setting.kv_bits,
    )
    return memory.total + LIBRARY_BYTES
