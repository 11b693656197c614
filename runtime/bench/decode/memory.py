"""What a model takes of device and host memory."""

from __future__ import annotations

from runtime.bench.decode.built import Built
from runtime.bench.decode.step_rows import POSITION, device_gb
from runtime.bench.decode.stepping import fill, step_ms
from runtime.bench.table import Row

_GB = 1e9


def memory_row(built: Built, kv_bits: int) -> Row:
    """GB after a prompt and some steps: by purpose, in all, at the most, and in host memory."""
    fill(built.engine, POSITION)
    ms = step_ms(built.engine, POSITION)
    model, engine = built.model, built.engine
    residuals = [linear.residual for block in model.blocks for linear in block.linears.values()]
    host = model.embedding.codes.nbytes + sum(rows.words.nbytes for rows in residuals if rows is not None)
    row = {"model": built.subject.model, "weights": built.subject.weights, "context": engine.context_limit}
    by_purpose = {f"GB {name}": size / _GB for name, size in engine.memory().items()}
    heads = {"bits of cache": kv_bits, "ms": ms, "head bits": _bits(model.head.weights)}
    whole = {name.replace("GB", "GB all", 1): gb for name, gb in device_gb(built.subject.before).items()}
    return {**row, **heads, **by_purpose, **whole, "GB host": host / _GB}


def _bits(weights: object) -> float | None:
    bits: float | None = getattr(weights, "bits_per_weight", None)
    return bits
