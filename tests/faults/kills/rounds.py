"""Killing a job at random moments and boundaries until it has ended whole, again and again."""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.kills import checks
from tests.faults.kills.processes import PROGRAM, Place, Running

WHO = ("front", "worker", "both", "group")
# A job that was killed so often is let to its end.
MOST_IN_A_ROW = 3
PARTS = 5


def fine(place: Place) -> list[str]:
    """Nothing more to look at."""
    return []


@dataclass(frozen=True)
class Job:
    """What is killed. `check` and `finished` give sentences; those that begin with "lost" are losses.

    before: makes what is there. arguments: of the command, or a whole command that begins with "-". result:
    what two runs must agree on. ended: whether the command has nothing more to do.
    """

    name: str
    before: Callable[[Place], None]
    arguments: Callable[[Place], tuple[str, ...]]
    check: Callable[[Place], list[str]] = fine
    finished: Callable[[Place], list[str]] = fine
    result: Callable[[Place], object] = lambda place: None
    ended: Callable[[Place], bool] = lambda place: False


@dataclass
class Tally:
    """What came of it. `spread`: kills by fifths of the job's time; `boundaries`: kills by kind of change."""

    name: str
    kills: int = 0
    jobs: int = 0
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    spread: Counter[int] = field(default_factory=Counter)
    boundaries: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)

    def note(self, where: str, found: list[str]) -> None:
        """What a look found."""
        for each in found:
            (self.lost if each.startswith("lost") else self.wrong).append(f"{where}: {each}")
            print(f"  {self.name}, {where}: {each}", file=sys.stderr, flush=True)


@dataclass
class Killing:
    """Rounds of one job in folders below `root`."""

    job: Job
    root: Path
    shared: Path
    hub: str
    random: random.Random
    number: int = 0
    span: float = 0.0
    changes: int = 0
    wanted: object = None

    def run(self, rounds: int) -> Tally:
        """Kill so many times."""
        tally, began = Tally(self.job.name), time.monotonic()
        self._measure(tally)
        while tally.kills < rounds:
            self._series(tally, rounds)
        tally.seconds = time.monotonic() - began
        return tally

    def _fresh(self) -> Place:
        self.number += 1
        root = self.root / f"{self.job.name.replace(' ', '-')}-{self.number}"
        place = Place(root, self.shared, self.hub)
        root.mkdir(parents=True)
        place.home.mkdir()
        self.job.before(place)
        return place

    def _command(self, place: Place) -> tuple[str, ...]:
        arguments = self.job.arguments(place)
        return (sys.executable, *arguments) if arguments[0].startswith("-") else (*PROGRAM, *arguments)

    def _measure(self, tally: Tally) -> None:
        """Once without a kill: how long it takes, how much it changes, what comes of it."""
        place, began = self._fresh(), time.monotonic()
        running = Running(place, self._command(place), at=0)
        code = running.end()
        assert code == 0, running.said
        self.span = time.monotonic() - began
        records = place.root.parent.glob(f"{place.record.name}.*")
        self.changes = max((_count(path) for path in records), default=0)
        self.wanted = self.job.result(place)
        tally.note("without a kill", self._whole(place))
        self._clear(place)

    def _series(self, tally: Tally, rounds: int) -> None:
        """Kill, look, start again, until it has ended whole."""
        place = self._fresh()
        for _ in range(min(MOST_IN_A_ROW, rounds - tally.kills)):
            where = self._kill(place, tally)
            if not where:
                break
            tally.kills += 1
            tally.note(where, checks.always(place) + self.job.check(place))
        if not self.job.ended(place):
            running = Running(place, self._command(place))
            if code := running.end():
                tally.note("at the end", [f"it goes on with {code}: {running.said[-300:]}"])
        tally.jobs += 1
        found = self._whole(place)
        tally.note(f"job {self.number}, at the end", found)
        if not found:
            self._clear(place)

    def _whole(self, place: Place) -> list[str]:
        found = checks.always(place) + self.job.finished(place)
        return found + _differences(self.job.result(place), self.wanted)

    def _kill(self, place: Place, tally: Tally) -> str:
        """Start it and end it; where that was, empty when it was over before."""
        if self.changes and self.random.random() < 0.5:
            return self._at_a_change(place, tally)
        moment = self.random.uniform(0.0, self.span)
        running = Running(place, self._command(place))
        if running.ended_within(moment):
            self._ended(running, tally)
            return ""
        who = running.kill(self.random.choice(WHO))
        tally.spread[min(PARTS - 1, int(PARTS * moment / self.span))] += 1
        tally.reached[who] += 1
        if who == "worker":
            self._told(running, tally)
        return f"job {self.number}, {who} at {moment:.2f} of {self.span:.2f} s"

    def _at_a_change(self, place: Place, tally: Tally) -> str:
        at = self.random.randint(1, self.changes)
        running = Running(place, self._command(place), at=at)
        code = running.end()
        died = [path for path in place.root.parent.glob(f"{place.record.name}.*") if _count(path) == at]
        where = _last(died[0]) if died else ""
        for path in place.root.parent.glob(f"{place.record.name}.*"):
            path.unlink()
        if not where:
            self._ended(running, tally)
            return ""
        if code > 0:
            self._told(running, tally)
        tally.boundaries[where.split()[1]] += 1
        tally.reached["worker" if code > 0 else "front"] += 1
        return f"job {self.number}, before change {where[:120]}"

    def _ended(self, running: Running, tally: Tally) -> None:
        code = running.end()
        if code and not self.job.ended(running.place):
            tally.note("ended by itself", [f"with {code}: {running.said[-300:]}"])

    def _told(self, running: Running, tally: Tally) -> None:
        """The end of a worker is a sentence."""
        code = running.end()
        if code != 1 or "Traceback" in running.said:
            tally.note("a killed worker", [f"{code}: {running.said[-300:]}"])

    def _clear(self, place: Place) -> None:
        shutil.rmtree(place.root)
        for path in place.root.parent.glob(f"{place.root.name}.*"):
            path.unlink()


def _differences(found: object, wanted: object) -> list[str]:
    """What two runs do not agree on, file by file."""
    if not isinstance(found, dict) or not isinstance(wanted, dict):
        return [] if found == wanted else [f"the result is {found}, without a kill it is {wanted}"]
    names = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
    return [f"without a kill these are other files: {', '.join(names)}"] if names else []


def _count(path: Path) -> int:
    return int(path.read_text(errors="replace").split(None, 1)[0] or 0) if path.stat().st_size else 0


def _last(path: Path) -> str:
    return path.read_text(errors="replace").strip()
