"""From a prepared model in the store to an engine on the CPU."""

from __future__ import annotations

import time

from runtime import devices, lowbit
from runtime.engine.cpu import CpuEngine
from runtime.engine.memory import choose_context, require_memory
from runtime.engine.opened import LoadedEngine, OpenedModel, find_profile, open_model
from runtime.engine.slider import TunedPath
from runtime.errors import DecdecError
from runtime.layers.base import Linear, LinearKind
from runtime.layers.compensated import Compensated
from runtime.layers.correction import CorrectionStack
from runtime.layers.int8 import Int8
from runtime.layers.lowbit import LookUp, LowBit, base_layer
from runtime.lowbit import LowBitWeights
from runtime.model.quantised import Tables, assemble, int8_block, int8_tables
from runtime.model.weights import linear_shape
from runtime.progress import JobContext
from runtime.protocol.commands import LOSSLESS, Load
from runtime.protocol.events import Loaded
from runtime.tuner.profile import Machine

FULL_CACHE = "On the CPU the KV cache is kept in 32 bits; 8 bits are for a GPU."


def load_cpu_engine(command: Load, ctx: JobContext, keep_lossless: bool = True) -> LoadedEngine[CpuEngine]:
    """Read a prepared model into host memory. Raises DecdecError, Interrupted; progress "load" in blocks.

    `keep_lossless`: hold the INT8 layers beside a low-bit base where memory allows.
    """
    started = time.monotonic()
    opened = open_model(command)
    low_bit = command.base != LOSSLESS
    lossless = require_memory(opened.spec, command.base) and (keep_lossless or not low_bit)
    context = choose_context(opened.spec, command.context)
    profile, reason = find_profile(opened.record.name, command.base, Machine.here())
    path = TunedPath(profile.path if profile else [])
    engine, size = _Loader(opened, command, ctx).engine(context, path, lossless)
    loaded = Loaded(
        model=opened.record.name,
        base=command.base,
        device=devices.label(None),
        context_limit=context,
        bytes_in_memory=size,
        path=path.points,
        untuned_reason=reason,
        lossless=low_bit and lossless,
        load_s=time.monotonic() - started,
        note=_note(command),
    )
    return LoadedEngine(engine, loaded, opened.record.path)


def usable_layer(base: str, low: LowBitWeights) -> LowBit | LookUp | Int8:
    """The layer that computes with a stored base; DecdecError where the CPU has no product for its groups."""
    try:
        return base_layer(low.base, low.columns)
    except ValueError as error:
        what, fix = f"The base {base} cannot be used on the CPU", "prepare the model with another base"
        raise DecdecError(what, str(error), fix) from error


def _note(command: Load) -> str:
    why = devices.why_cpu()
    parts = [f"The GPU is not used: {why}."] if why else []
    return " ".join(parts + [FULL_CACHE] * (command.kv_bits == 8))


class _Loader:
    """Reads blocks one by one; keeps INT8 layers too when they are wanted as the lossless stop."""

    def __init__(self, opened: OpenedModel, command: Load, ctx: JobContext) -> None:
        self._reader, self._spec, self._folder = opened.reader, opened.spec, opened.record.path
        self._ctx = ctx
        self._base, self._prompt_correction = command.base, command.prompt_correction
        self._stacks: dict[LinearKind, CorrectionStack] = {}

    def engine(self, context: int, path: TunedPath, lossless: bool) -> tuple[CpuEngine, int]:
        """The engine and the bytes its weights take."""
        tables = int8_tables(self._reader, self._spec)
        base: list[dict[LinearKind, Linear]] = []
        exact: list[dict[LinearKind, Int8]] = []
        for index in range(len(self._spec.layers)):
            self._ctx.progress("load", index, len(self._spec.layers), "blocks")
            if lossless:
                exact.append(int8_block(self._reader, self._spec, index))
            base.append(self._block(index) if self._base != LOSSLESS else dict[LinearKind, Linear](exact[-1]))
        self._ctx.progress("load", len(base), len(base), "blocks")
        decoder = assemble(self._reader, self._spec, base, tables)
        engine = CpuEngine(decoder, tables.embedding, tables.head, context, path)
        if self._base != LOSSLESS and lossless:
            engine.add_lossless(exact)
        return engine, _size(base, exact, tables)

    def _stack(self, kind: LinearKind) -> CorrectionStack:
        """The residuals of a kind, all layers together."""
        if kind not in self._stacks:
            n_out, n_in = linear_shape(self._spec, kind)
            self._stacks[kind] = CorrectionStack(len(self._spec.layers), n_in, n_out)
        return self._stacks[kind]

    def _block(self, index: int) -> dict[LinearKind, Linear]:
        stored = lowbit.read_block(self._folder, self._base, index)
        return {
            kind: Compensated(
                usable_layer(self._base, low),
                self._stack(kind).add(index, low.correction, low.profile),
                self._prompt_correction,
            )
            for kind, low in stored.items()
        }


def _size(base: list[dict[LinearKind, Linear]], exact: list[dict[LinearKind, Int8]], tables: Tables) -> int:
    layers = {id(layer): layer for bank in (base, exact) for block in bank for layer in block.values()}
    return tables.bytes_in_memory() + sum(layer.bytes_in_memory() for layer in layers.values())
