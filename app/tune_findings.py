"""What tuning has found: curves as they grow, then what every position of the slider brings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.slider import DETENTS, Path
from runtime.protocol.events import KChunk, Progress, SlowdownPoint

KINDS = ("qkv", "o", "gate_up", "down")
# Up to the knee a correction costs so much of the linear at most beyond what the smallest one costs.
KNEE_SHARE = 0.025

Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A linear's microseconds by k_chunk, ascending, the cheapest way of every k; base_us: without any."""

    base_us: float
    points: Points
    knee: int


class Token(msgspec.Struct, frozen=True):
    """us: of a token without correction. of_us: what slowdowns are percents of. inputs: of every kind."""

    us: float
    of_us: float
    layers: int
    inputs: dict[str, int]


class _Report(msgspec.Struct, frozen=True):
    curves: dict[str, list[tuple[int, float]]] = {}
    base_us: dict[str, float] = {}
    knees: dict[str, int] = {}
    token: Token | None = None


class _Result(msgspec.Struct, frozen=True):
    path: tuple[SlowdownPoint, ...] = ()
    report: _Report = _Report()


@dataclass(frozen=True, slots=True)
class DetentRow:
    """A position of the slider. tokens_per_s, channels, share: None where nobody knows.

    channels: corrected of a token's input channels over all layers; share: of all of them.
    """

    pct: float
    k_chunk: KChunk
    tokens_per_s: float | None = None
    channels: int | None = None
    share: float | None = None


@dataclass(slots=True)
class TuneFindings:
    """Takes the reports of a tuning, then its result."""

    base_us: dict[str, float] = field(default_factory=dict)
    points: dict[str, dict[int, float]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    _result: _Result | None = None

    def push(self, event: Progress) -> None:
        """Take the points that a report brings; others bring none."""
        data = event.data or {}
        with contextlib.suppress(msgspec.ValidationError):
            self.base_us |= msgspec.convert(data.get("base_us", {}), dict[str, float])
            for kind, _, k, us in msgspec.convert(data.get("points", ()), list[tuple[str, int, int, float]]):
                if kind in self.points:
                    self.points[kind][k] = min(us, self.points[kind].get(k, us))

    def end(self, result: Mapping[str, Any]) -> None:
        """Take the result; what cannot be understood of it is left out."""
        self._result = _Result()
        with contextlib.suppress(msgspec.ValidationError):
            self._result = msgspec.convert(result, _Result)

    @property
    def has_points(self) -> bool:
        """Whether there is a point to show."""
        return any(self.points.values())

    def curve(self, kind: str) -> Curve | None:
        """A linear's curve: the chosen one when tuning has ended, the points so far before."""
        if self._result and kind in self._result.report.curves:
            report = self._result.report
            measured = [(k, us) for k, us in report.curves[kind] if k]
            base = report.base_us.get(kind, self.base_us.get(kind, 0.0))
            return Curve(base, tuple(measured), report.knees.get(kind, 0))
        points, us = tuple(sorted(self.points[kind].items())), self.base_us.get(kind)
        return Curve(us, points, knee(points, us)) if points and us else None

    @property
    def path(self) -> tuple[SlowdownPoint, ...]:
        """The slider's tables, once tuning has ended."""
        return self._result.path if self._result else ()

    @property
    def token(self) -> Token | None:
        """What a whole token takes, where the engine says it."""
        return self._result.report.token if self._result else None

    def rows(self) -> list[DetentRow]:
        """What every detent brings."""
        return [_row(pct, Path(self.path), self.token) for pct in DETENTS] if self.path else []


def knee(points: Iterable[tuple[int, float]], base_us: float) -> int:
    """The largest k that costs hardly more than the smallest; 0 without points."""
    known = sorted(points)
    return max((k for k, us in known if us - known[0][1] <= KNEE_SHARE * base_us), default=0)


def _row(pct: float, path: Path, token: Token | None) -> DetentRow:
    point = path.at(pct)
    table = point.k_chunk
    if token is None:
        return DetentRow(pct, table)
    us = token.us + point.slowdown_pct / 100 * token.of_us
    every = sum(token.inputs.values())
    corrected = sum(getattr(table, kind) * token.inputs.get(kind, 0) for kind in KINDS) / 1024
    return DetentRow(
        pct, table, 1e6 / us, round(corrected * token.layers), corrected / every if every else None
    )
