"""The quality slider's state and geometry, without a screen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.protocol.commands import MAX_SLOWDOWN_PCT
from runtime.protocol.events import KChunk, Loaded, SlowdownPoint, Stats

DETENTS = (0.0, 2.5, 5.0, 10.0, 20.0)
FINE_STEP = 0.5
# Where an untouched slider stands: most of the visible gain for a cost nobody notices.
DEFAULT_SLOWDOWN_PCT = 5.0
# Corrections that cost less than this are not told from none by any timer, so they count as free.
FREE_PCT = 0.05
OVERRUN_PCT = 2.0


@dataclass(frozen=True, slots=True)
class Position:
    """Where the slider stands: a slowdown of `pct` percent, or the lossless stop beyond 20."""

    pct: float = 0.0
    lossless: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.pct <= MAX_SLOWDOWN_PCT:
            raise ValueError(f"slowdown must be within 0..{MAX_SLOWDOWN_PCT:g}, not {self.pct}")


class SliderState:
    """Target position, the tuned path behind it, and what the engine last measured."""

    def __init__(self, position: Position | None = None) -> None:
        self.position = position or Position()
        self.path: tuple[SlowdownPoint, ...] = ()
        self.has_lossless = False
        self.reason = "no model is loaded"
        self.tokens_per_s: float | None = None
        self._stats: Stats | None = None

    @property
    def enabled(self) -> bool:
        """Whether moving it can change anything: a valid profile exists."""
        return bool(self.path)

    def loaded(self, event: Loaded) -> None:
        """Take over the path of a model that was just loaded."""
        self.path, self.has_lossless = event.path, event.lossless
        self.reason = "" if event.path else event.untuned_reason or "this model is not tuned on this device"
        self._stats = None
        if not self.enabled or (self.position.lossless and not self.has_lossless):
            self.position = Position(self.position.pct if self.enabled else 0.0)

    def unloaded(self, reason: str) -> None:
        """No model: nothing to slide. The target is kept for the next one."""
        self.path, self.has_lossless, self.reason = (), False, reason
        self._stats = self.tokens_per_s = None

    def measured(self, stats: Stats) -> None:
        """Remember what the engine reports; the speed stays until newer tokens were timed."""
        self._stats = stats
        if stats.completion_tokens:
            self.tokens_per_s = stats.decode_tokens_per_s

    def move_to(self, pct: float) -> bool:
        """Set the target, kept within 0..20 and rounded to 0.1; whether it changed."""
        return self._set(Position(round(min(max(pct, 0.0), MAX_SLOWDOWN_PCT), 1)))

    def move_lossless(self) -> bool:
        """Go to the stop beyond the right end where the device holds INT8-X; whether it changed."""
        return self.has_lossless and self._set(Position(MAX_SLOWDOWN_PCT, lossless=True))

    def step(self, direction: int, fine: bool = False) -> bool:
        """To the neighbouring detent, or by half a percent; right of 20 lies lossless."""
        if self.position.lossless:
            return direction < 0 and self.move_to(MAX_SLOWDOWN_PCT)
        pct = self.position.pct
        if direction > 0 and pct >= MAX_SLOWDOWN_PCT:
            return self.move_lossless()
        return self.move_to(pct + direction * FINE_STEP if fine else _neighbour(pct, direction))

    def _set(self, position: Position) -> bool:
        if not self.enabled or position == self.position:
            return False
        self.position = position
        return True

    @property
    def table(self) -> KChunk:
        """Corrected channels per 1024 that the tuned path promises at the target."""
        index = bisect_right([point.slowdown_pct for point in self.path], self.position.pct)
        return self.path[index - 1].k_chunk if index else KChunk()

    @property
    def overruns(self) -> bool:
        """Whether corrections cost clearly more than promised: the profile fits no longer."""
        stats = self.current
        if stats is None or stats.lossless or stats.slowdown_measured_pct is None:
            return False
        target = stats.slowdown_target_pct
        return stats.slowdown_measured_pct > target + max(OVERRUN_PCT, target / 2)

    @property
    def free_until(self) -> float:
        """End of the free region in percent: up to it corrections hide behind the base product; 0: none."""
        free = [point for point in self.path if point.slowdown_pct <= FREE_PCT and point.k_chunk.total]
        costly = [point.slowdown_pct for point in self.path if point.slowdown_pct > FREE_PCT]
        if not free:
            return 0.0
        return costly[0] if costly else MAX_SLOWDOWN_PCT

    @property
    def first_gain(self) -> float | None:
        """The smallest slowdown that corrects anything; None without such a point."""
        return next((point.slowdown_pct for point in self.path if point.k_chunk.total), None)

    @property
    def current(self) -> Stats | None:
        """The last measurement, if it was taken at the present target."""
        stats = self._stats
        if stats is None or stats.lossless != self.position.lossless:
            return None
        same = stats.lossless or abs(stats.slowdown_target_pct - self.position.pct) < FREE_PCT
        return stats if same else None


def _neighbour(pct: float, direction: int) -> float:
    beyond = [d for d in DETENTS if (d - pct) * direction > 1e-6]
    return (min if direction > 0 else max)(beyond, default=pct)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps percent to cells. The scale is the square root: detents lie apart, and small values get room.

    `cells`: width of the track; with `lossless` the last `GAP` cells hold that stop.
    """

    cells: int
    lossless: bool = False
    GAP = 4

    @property
    def length(self) -> int:
        """Cells of the continuous part, at least 2."""
        return max(2, self.cells - (self.GAP if self.lossless else 0))

    def cell(self, position: Position) -> int:
        """The thumb's cell."""
        if position.lossless:
            return self.cells - 1
        return round((position.pct / MAX_SLOWDOWN_PCT) ** 0.5 * (self.length - 1))

    def at(self, cell: int) -> Position:
        """The position under a cell; a cell beside a detent snaps to it."""
        if self.lossless and cell >= self.length + 1:
            return Position(MAX_SLOWDOWN_PCT, lossless=True)
        cell = min(max(cell, 0), self.length - 1)
        for detent in DETENTS:
            if abs(self.cell(Position(detent)) - cell) <= (1 if self.length >= 30 else 0):
                return Position(detent)
        return Position(round((cell / (self.length - 1)) ** 2 * MAX_SLOWDOWN_PCT, 1))

    def labels(self, texts: Sequence[str]) -> str:
        """A line with one text centred below each detent; those that would collide are left out."""
        line = [" "] * self.cells
        for detent, text in zip(DETENTS, texts, strict=True):
            start = min(max(self.cell(Position(detent)) - len(text) // 2, 0), self.cells - len(text))
            if start >= 0 and all(c == " " for c in line[max(0, start - 1) : start + len(text) + 1]):
                line[start : start + len(text)] = text
        return "".join(line)
