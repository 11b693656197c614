"""Tokens a second of a prepared model on the CPU: lossless, and its bases at the slider's positions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from runtime import store
from runtime.bench.decode.step_rows import described
from runtime.bench.decode.stepping import driven_tokens_per_s
from runtime.bench.table import Row, Table
from runtime.engine.load import LoadedEngine, load_engine
from runtime.errors import DecdecError
from runtime.generation.engine import SliderReading
from runtime.progress import JobContext
from runtime.protocol.commands import LOSSLESS, Load

SLIDER = (0.0, 5.0, 10.0, 20.0)
CONTEXT, PROMPT, ROUNDS = 512, 64, 3
_NOTE = (
    f"Greedy answers after {PROMPT} tokens, medians of {ROUNDS}, positions in turn. slowdown: corrections"
    " over the rest of the step, as the chat shows it."
)


def cpu_table(model: str, ctx: JobContext) -> Table:
    """Every form that the model is prepared in. Raises DecdecError when it is not prepared."""
    record = store.find(model)
    notes = [_NOTE]
    rows: list[Row] = []
    for base in (LOSSLESS, *record.record.get("bases", [])):
        loaded = load_engine(Load(record.name, base, CONTEXT), ctx, keep_lossless=False)
        rows += list(_base_rows(loaded, ctx))
        if base != LOSSLESS and not loaded.loaded.path:
            notes.append(f"{base}: {loaded.loaded.untuned_reason}.")
    return Table("decode", f"Decoding, {record.name}, {loaded.loaded.device}", rows, notes)


def _base_rows(loaded: LoadedEngine, ctx: JobContext) -> Iterator[Row]:
    engine, base = loaded.engine, loaded.loaded.base
    speeds: dict[float, list[float]] = {pct: [] for pct in (SLIDER if loaded.loaded.path else SLIDER[:1])}
    readings: dict[float, SliderReading] = {}
    for number, pct in enumerate(list(speeds) * ROUNDS):
        ctx.progress("decode", number, ROUNDS * len(speeds), "answers", base)
        engine.set_slowdown(pct, False)
        speeds[pct].append(driven_tokens_per_s(engine, PROMPT))
        readings[pct] = engine.slider()
    for pct, found in speeds.items():
        yield {
            "weights": base,
            "slider": f"{pct:g} %" if base != LOSSLESS else "-",
            "k_chunk": described(readings[pct].k_chunk),
            "tokens/s": statistics.median(found),
            "slowdown %": None if base == LOSSLESS else readings[pct].measured_pct,
            "GB": loaded.loaded.bytes_in_memory / 1e9,
        }


def default_model() -> str:
    """The catalogue's default. Raises DecdecError where it is not prepared."""
    from runtime.sources import catalogue

    name = catalogue.default().name
    if name not in {record.name for record in store.models()}:
        raise DecdecError(
            "There is nothing to decode with", f"{name} is not prepared", f"run: decdec-chat pull {name}"
        )
    return name
