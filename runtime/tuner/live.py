"""What tuning finds while it goes on, and what its result means for a token: for a front end to draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime import store
from runtime.int8x import Int8xReader
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape
from runtime.progress import JobContext
from runtime.tuner.costs import BaseTimes, Curve, knee
from runtime.tuner.measurer import Launch
from runtime.tuner.tuning import Tuned


@dataclass(frozen=True, slots=True)
class WholeToken:
    """us: of a token without correction. of_us: what slowdowns are percents of, in every block of it."""

    us: float
    of_us: float
    layers: int
    inputs: Mapping[LinearKind, int]


def whole_token(model: str, block_us: float, of_us: float) -> WholeToken:
    """From microseconds per block; the model's shapes are those of its config."""
    spec = ModelSpec.from_config(Int8xReader(store.find(model).path).config)
    inputs = {kind: linear_shape(spec, kind)[1] for kind in LINEAR_KINDS}
    return WholeToken(block_us * len(spec.layers), of_us * len(spec.layers), len(spec.layers), inputs)


@dataclass(slots=True)
class Live:
    """Progress "tune" in points, then "check" in detents, with every point measured since the last report.

    Its `data`: `base_us` by kind, and `points` as [kind, programs, k_chunk, microseconds].
    """

    ctx: JobContext
    base: BaseTimes | None = None
    _unsent: list[tuple[str, int, int, float]] = field(default_factory=list)

    def point(self, kind: LinearKind, launch: Launch, k_chunk: int, us: float) -> None:
        """Hear of a point."""
        self._unsent.append((kind, launch.programs, k_chunk, round(us, 3)))

    def counted(self, done: int, total: int) -> None:
        """Report so many points."""
        data: dict[str, Any] = {"points": list(self._unsent)}
        if self.base is not None:
            data["base_us"] = _rounded(self.base.linears)
        if self.ctx.progress("tune", done, total, "points", data=data):
            self._unsent.clear()

    def checked(self, done: int, total: int) -> None:
        """Report so many detents."""
        self.ctx.progress("check", done, total, "detents")


def findings(tuned: Tuned, token: WholeToken | None) -> dict[str, Any]:
    """What is worth showing beside the tables: the chosen curves and their knees, and what a token takes."""
    base, added = tuned.costs.base.linears, tuned.costs.added
    found: dict[str, Any] = {
        "base_us": _rounded(base),
        "curves": {kind: _points(base[kind], added[kind]) for kind in base},
        "knees": {kind: knee(added[kind], base[kind]) for kind in base},
    }
    if token is not None:
        found["token"] = {
            "us": round(token.us, 1),
            "of_us": round(token.of_us, 1),
            "layers": token.layers,
            "inputs": dict(token.inputs),
        }
    return found


def _points(base_us: float, curve: Curve) -> list[tuple[int, float]]:
    return [(k, round(base_us + us, 3)) for k, us in curve.items()]


def _rounded(linears: Mapping[LinearKind, float]) -> dict[str, float]:
    return {kind: round(us, 3) for kind, us in linears.items()}
