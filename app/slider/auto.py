"""Auto: the best quality that keeps a speed. Moves by what is measured, and calms down when it erred."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from statistics import fmean

from app.slider.path import Path
from app.slider.position import LOSSLESS, Position
from app.slider.speeds import MIN_TOKENS, Speeds, excess
from runtime.protocol.events import Stats

# The engine tells the speed of the last 1.5 s: until then a report still knows the position before.
FLUSH_S = 1.5
FLUSH_TOKENS = 3
# How long a speed clearly below the floor is borne, or one that may be a hiccup, and how long one above it
# must last before a move up.
DOWN_S, HICCUP_S, UP_S = 1.5, 4.0, 4.0
CLEARLY = 0.95
MIN_REPORTS = 3
_REMEMBERED_S = 25.0
# Time without tokens does not count: of a pause between two reports, only so much.
MAX_PAUSE_S = 2.0
# A position is taken when it promises this much more than the floor. A move up that had to be taken back
# was an error: each adds as much again, and patience.
MARGIN = 0.04
# Moves up for less than this are not worth the unrest; small ones must be worth it for longer.
MIN_GAIN_PCT, SMALL_GAIN_PCT, SMALL_GAIN_PATIENCE = 0.75, 3.0, 3
# Errors are forgotten after this time without another, or when the machine itself became so much quicker.
FORGET_S = 300.0
NEW_SPEED = 1.15
MAX_ERRORS = 4
# Nobody knows what lossless costs before it ran: it is tried where there is this much speed to spare.
TRIAL = 2.0


@dataclass(slots=True)
class _Dwell:
    """What was reported since the last move."""

    at: float | None = None
    tokens: int = 0
    reports: deque[tuple[float, float, float]] = field(default_factory=deque)

    def add(self, now: float, new_tokens: int, speed: float, cost_pct: float) -> None:
        if self.at is None:
            self.at = now
        self.tokens += new_tokens
        if now - self.at < FLUSH_S or self.tokens < FLUSH_TOKENS:
            return
        self.reports.append((now, speed, cost_pct))
        while now - self.reports[0][0] > _REMEMBERED_S:
            self.reports.popleft()

    def lasted(self) -> float:
        """Seconds of reports that know this position alone."""
        return self.reports[-1][0] - self.reports[0][0] if self.reports else 0.0

    def speed(self, seconds: float) -> float:
        """Mean of the last so many seconds, tokens/s."""
        return fmean(speed for _, speed, _ in self._last(seconds))

    def cost(self) -> float:
        """Measured slowdown, in percent."""
        return fmean(cost for _, _, cost in self._last(_REMEMBERED_S))

    def _last(self, seconds: float) -> list[tuple[float, float, float]]:
        newest = self.reports[-1][0]
        return list(takewhile(lambda report: newest - report[0] <= seconds, reversed(self.reports)))


class Auto:
    """Decides where the slider goes so that at least `floor` tokens/s are kept; `floor` outlives `on`."""

    def __init__(self) -> None:
        self.floor, self.on, self.too_slow = 0.0, False, False
        self._path, self._has_lossless = Path(), False
        self._lossless_share: float | None = None
        self._base = self._written_s = 0.0
        self._heard_at: float | None = None
        self._forget()

    def _forget(self) -> None:
        self._dwell, self._went_up, self.too_slow = _Dwell(), True, False
        self._errors, self._erred_at, self._erred_base = 0, 0.0, 0.0

    def model(self, path: Path, has_lossless: bool) -> None:
        """Another model, about whose speed nothing is known."""
        self._path, self._has_lossless, self._lossless_share, self._base = path, has_lossless, None, 0.0
        self._forget()

    def start(self, floor: float, position: Position, speeds: Speeds) -> Position:
        """Hold a floor of so many tokens/s from now on; where to begin."""
        self.floor, self.on = floor, True
        self._forget()
        if not self._path.points:
            return position
        if speeds.base is None:
            return self.at_least_free(position)
        self._base = speeds.base
        if speeds.lossless is not None:
            self._lossless_share = speeds.lossless / speeds.base
        if position.lossless and self._lossless_share is None:
            return position
        return self._best(speeds.base, speeds.excess or 1.0)

    def stop(self) -> None:
        """The user moves the slider again."""
        self.on = self.too_slow = False

    def at_least_free(self, position: Position) -> Position:
        """What costs nothing is always given."""
        return position if position.pct >= self._path.last_free else Position(self._path.last_free)

    def reported(self, stats: Stats, position: Position, new_tokens: int, now: float) -> Position:
        """Where to go after a report of `new_tokens` that were written at this position; `now` in seconds."""
        if not self.on or not self._path.points or stats.completion_tokens < MIN_TOKENS:
            return position
        self._pass_time(now)
        promised = self._path.at(position.pct).slowdown_pct
        cost = promised if stats.slowdown_measured_pct is None else stats.slowdown_measured_pct
        self._dwell.add(self._written_s, new_tokens, stats.decode_tokens_per_s, cost)
        if not self._dwell.reports:
            return position
        self._learn(position)
        wanted = self._down(position) if self._below() else self._up(position)
        if wanted != position:
            self._dwell, self._went_up = _Dwell(), wanted.lossless or wanted.pct > position.pct
        return wanted

    def _pass_time(self, now: float) -> None:
        if self._heard_at is not None:
            self._written_s += min(now - self._heard_at, MAX_PAUSE_S)
        self._heard_at = now

    def _learn(self, position: Position) -> None:
        """Speed without corrections, or what lossless is of it."""
        speed = self._dwell.speed(DOWN_S)
        if not position.lossless:
            self._base = speed * (1 + self._dwell.cost() / 100)
        elif self._base and self._dwell.lasted() >= DOWN_S and self._lossless_share is None:
            self._lossless_share = speed / self._base

    def _below(self) -> bool:
        """Whether the floor is broken, for long enough that it is no hiccup."""
        lasted, speed = self._dwell.lasted(), self._dwell.speed
        clearly = lasted >= DOWN_S and speed(DOWN_S) < CLEARLY * self.floor
        return clearly or (lasted >= HICCUP_S and speed(HICCUP_S) < self.floor)

    def _down(self, position: Position) -> Position:
        speed = self._dwell.speed(2 * DOWN_S)
        base = speed * (1 + self._dwell.cost() / 100)
        if position.lossless and self._lossless_share:
            base = speed / self._lossless_share
        below = [stop for stop in self._path.stops if position.lossless or stop < position.pct - 1e-6]
        self.too_slow = not below
        if not below:
            return position
        if self._went_up:
            self._errors = min(self._errors + 1, MAX_ERRORS)
            self._erred_at, self._erred_base = self._written_s, base
        best = self._best(base, self._excess(position), lossless=False)
        return Position(min(best.pct, below[-1]))

    def _up(self, position: Position) -> Position:
        self.too_slow = self.too_slow and self._dwell.speed(DOWN_S) < self.floor
        self._calm()
        if position.lossless or len(self._dwell.reports) < MIN_REPORTS:
            return position
        base = self._dwell.speed(_REMEMBERED_S) * (1 + self._dwell.cost() / 100)
        best = self._best(base, self._excess(position))
        return best if self._dwell.lasted() >= self._patience(best, best.pct - position.pct) else position

    def _patience(self, best: Position, gain_pct: float) -> float:
        """Seconds that a position must promise the floor before it is taken."""
        at_the_end = best.pct == self._path.stops[-1] and gain_pct > 0
        if not best.lossless and not at_the_end and gain_pct < MIN_GAIN_PCT:
            return math.inf
        small = not best.lossless and gain_pct < SMALL_GAIN_PCT
        return min(UP_S * (1 + self._errors) * (SMALL_GAIN_PATIENCE if small else 1), _REMEMBERED_S - 1)

    def _calm(self) -> None:
        """Forget errors one by one, or all when what was too slow then is no more."""
        if self._errors and self._base > NEW_SPEED * self._erred_base:
            self._errors = 0
        elif self._errors and self._written_s - self._erred_at > FORGET_S:
            self._errors, self._erred_at = self._errors - 1, self._written_s

    def _excess(self, position: Position) -> float:
        """How many times what was promised the corrections cost here."""
        promised = 0.0 if position.lossless else self._path.at(position.pct).slowdown_pct
        return excess(self._dwell.cost(), promised) or 1.0

    def _best(self, base: float, excess: float, lossless: bool = True) -> Position:
        """The best position that promises the floor and the margin; the free end if none does."""
        needed = self.floor * (1 + MARGIN * (1 + self._errors))
        stops = self._path.stops
        kept = [
            stop for stop in stops if base / (1 + excess * self._path.at(stop).slowdown_pct / 100) >= needed
        ]
        pct = max(kept, default=stops[0])
        if lossless and self._has_lossless and self._lossless_kept(base, needed, pct == stops[-1]):
            return LOSSLESS
        return Position(pct)

    def _lossless_kept(self, base: float, needed: float, at_the_end: bool) -> bool:
        if self._lossless_share is None:
            return at_the_end and base >= TRIAL * self.floor
        return base * self._lossless_share >= needed
