"""Rows and sentences about a long run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from runtime.bench.long_run.driving import Run
from runtime.bench.long_run.readings import Pieces, Reading
from runtime.bench.table import Row, Table, markdown, same_columns

BAND = 1024
_MB = 1e6


def line_through(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """(intercept, slope) of least squares; a flat line where all x are the same."""
    if len(set(x)) < 2:
        return statistics.fmean(y), 0.0
    slope, intercept = statistics.linear_regression(x, y)
    return intercept, slope


def expected_ms(runs: Sequence[Run]) -> tuple[float, float]:
    """(milliseconds of a token at position 0, more for every position): a line through the bands' medians."""
    positions, times = [], []
    for places in _by_band([run.pieces for run in runs]).values():
        positions.append(statistics.fmean(place for place, _ in places))
        times.append(statistics.median(ms for _, ms in places))
    return line_through(positions, times) if positions else (0.0, 0.0)


def _by_band(pieces: Sequence[Pieces]) -> dict[int, list[tuple[float, float]]]:
    """(position, milliseconds a token) of every piece, by band of the context."""
    bands: dict[int, list[tuple[float, float]]] = {}
    for each in pieces:
        for tokens, seconds, position in zip(each.tokens, each.seconds, each.position, strict=True):
            bands.setdefault(int(position) // BAND, []).append((position, 1e3 * seconds / tokens))
    return dict(sorted(bands.items()))


def thousand_rows(run: Run, line: tuple[float, float]) -> list[Row]:
    """A row for every thousand tokens."""
    return [
        _thousand_row(run, before, after, line)
        for before, after in pairwise(run.readings)
        if after.tokens > before.tokens
    ]


def _thousand_row(run: Run, before: Reading, after: Reading, line: tuple[float, float]) -> Row:
    tokens, seconds, ratio, mean = _between(run.pieces, before.tokens, after.tokens, line)
    return {
        "tokens": after.tokens,
        "mean position": round(mean),
        "tokens/s": tokens / seconds if seconds else None,
        "x expected": ratio,
        "processor ms a token": 1e3
        * (after.processor_s - before.processor_s)
        / (after.tokens - before.tokens),
        "RSS MB": after.resident / _MB,
        "private MB": after.private / _MB,
        "files": after.files,
        "threads": after.threads,
        **{f"{name} MB": size / _MB for name, size in after.device.items()},
    }


def _between(
    pieces: Pieces, first: int, last: int, line: tuple[float, float]
) -> tuple[float, float, float | None, float]:
    """(tokens, seconds, median of milliseconds over what the line expects, mean position) of these tokens."""
    seen = tokens = seconds = places = 0.0
    ratios = []
    for count, taken, position in zip(pieces.tokens, pieces.seconds, pieces.position, strict=True):
        seen += count
        if first < seen <= last:
            tokens, seconds, places = tokens + count, seconds + taken, places + count * position
            ratios.append(1e3 * taken / count / (line[0] + line[1] * position))
    return tokens, seconds, statistics.median(ratios) if ratios else None, places / max(tokens, 1.0)


def band_rows(runs: Sequence[Run]) -> list[Row]:
    """Milliseconds a token at the same places, when they were first written and at the end."""
    rows: list[Row] = []
    for band, places in _by_band([run.pieces for run in runs]).items():
        third = max(len(places) // 3, 1)
        first, last = (statistics.median(ms for _, ms in part) for part in (places[:third], places[-third:]))
        row = {"positions": f"{band * BAND} to {(band + 1) * BAND - 1}", "pieces": len(places)}
        rows.append({**row, "first third ms": first, "last third ms": last, "last / first": last / first})
    return rows


def slopes(run: Run) -> dict[str, float]:
    """Growth a thousand tokens from the first reading behind the start on: MB, files, threads."""
    readings = run.readings[1:] if len(run.readings) > 2 else run.readings
    thousands = [reading.tokens / 1000 for reading in readings]
    series: dict[str, list[float]] = {
        "RSS MB": [reading.resident / _MB for reading in readings],
        "private MB": [reading.private / _MB for reading in readings],
        "files": [float(reading.files) for reading in readings],
        "threads": [float(reading.threads) for reading in readings],
    }
    for name in readings[0].device:
        series[f"{name} MB"] = [reading.device[name] / _MB for reading in readings]
    return {name: line_through(thousands, values)[1] for name, values in series.items()}


def tables(about: dict[str, Any], runs: Sequence[Run]) -> list[Table]:
    """A table for each run, the same places compared, and what grew."""
    line = expected_ms(runs)
    found = [
        Table(run.name, f"{about['name']}: {run.name}", same_columns(thousand_rows(run, line)), [_said(run)])
        for run in runs
    ]
    fit = f"Expected: {line[0]:.3g} ms and {1e3 * line[1]:.3g} ms for every 1000 positions."
    found.append(Table("bands", f"{about['name']}: the same places", same_columns(band_rows(runs)), [fit]))
    grown = [{"run": run.name, **slopes(run)} for run in runs]
    found.append(Table("growth", f"{about['name']}: growth a thousand tokens", same_columns(grown)))
    return found


def _said(run: Run) -> str:
    return (
        f"{run.tokens} tokens in {run.answers} answers, the longest context {run.longest_context}, "
        f"{run.dropped} messages dropped at its end, {run.moves} moves of the slider."
    )


def document(about: dict[str, Any], found: Sequence[Table]) -> str:
    """One part of the page."""
    facts = ", ".join(f"{key} {value}" for key, value in about.items() if key != "name")
    return "\n".join([f"# {about['name']}\n\n{facts}.\n", *map(markdown, found)])
