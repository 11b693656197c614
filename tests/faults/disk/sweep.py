"""Every action under every fault: one sentence, nothing lost, nothing half-made, and then it goes on."""

from __future__ import annotations

import errno
import random
import re
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runtime.errors import DecdecError
from tests.faults.disk.actions import Action
from tests.faults.disk.faults import Refusals, SizeLimit, SmallDisk

CODES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES)
# The database's library does not tell a file that may not grow from a disk that fails.
FULL = re.compile(r"is full|disk space|quota|disk I/O error")
# The system hands out pages in batches, so that fewer than are free may fail already.
MARGIN = 2
SHOWN = 20


@dataclass
class Found:
    """Rounds by action and fault, how many of them failed as they should, and what must not be."""

    rounds: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


class Sweep:
    """`folder` becomes the disk that fails and a place beside it. `rounds`: at most, per action and fault."""

    def __init__(self, folder: Path, rounds: int, seed: int, mounts: bool) -> None:
        self._disk, self._beside = folder / "disk", folder / "beside"
        self.found, self._rounds, self._random = Found(), rounds, random.Random(seed)
        self._small = SmallDisk(self._disk) if mounts else None
        self._refusals, self._size = Refusals(folder), SizeLimit()

    def run(self, actions: Sequence[type[Action]]) -> Found:
        for action in actions:
            for name, arm in self._faults(action):
                self._round(action, name, arm)
        return self.found

    def _faults(self, action: type[Action]) -> Iterator[tuple[str, Callable[[], None]]]:
        """Faults that together meet every call and every page of the action, or as many as are wanted."""
        made = self._fresh(action)
        pages = self._small.used_pages() if self._small else 0
        self._refusals.arm(-1)
        made.act()
        self._refusals.lift()
        calls = self._refusals.count
        pages = self._small.used_pages() - pages + MARGIN if self._small else 0
        made.again()
        self.expected = made.seen()
        made.close()
        largest = max(
            p.stat().st_size for r in (self._disk, self._beside) for p in r.rglob("*") if p.is_file()
        )
        yield from self._some("full", range(max(1, pages)), lambda n: self._small and self._small.limit(n))
        yield from self._some("no names", range(8), lambda n: self._small and self._small.limit_names(n))
        if self._small:
            yield "read-only", self._small.read_only
        yield from self._some("size", range(0, largest + 1, 37), lambda n: self._size.limit(n))
        for code in CODES:
            name = errno.errorcode[code]
            yield from self._some(name, range(calls), lambda n, c=code: self._refusals.arm(n, c))
            yield from self._some(
                f"{name} for good", range(calls), lambda n, c=code: self._refusals.arm(n, c, for_good=True)
            )

    def _some(
        self, name: str, numbers: range, arm: Callable[[int], object]
    ) -> Iterator[tuple[str, Callable[[], object]]]:
        if name in ("full", "no names") and self._small is None:
            return
        chosen = list(numbers) if len(numbers) <= self._rounds else self._random.sample(numbers, self._rounds)
        for number in chosen:
            yield f"{name}:{number}", lambda number=number: arm(number)

    def _fresh(self, action: type[Action]) -> Action:
        for folder in (self._disk, self._beside):
            folder.mkdir(exist_ok=True)
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return action(self._disk, self._beside)

    def _round(self, action: type[Action], fault: str, arm: Callable[[], object]) -> None:
        made = self._fresh(action)
        before = made.seen()
        self.found.rounds[f"{action.__name__} {fault.partition(':')[0]}"] += 1
        try:
            arm()
            sentences = self._acted(made)
        except BaseException:
            self._lift()
            self._wrong(action, fault, traceback.format_exc())
            return
        finally:
            self._lift()
        self.found.refused += bool(sentences)
        self._check(made, action, fault, before, sentences)
        made.close()

    def _acted(self, made: Action) -> list[str]:
        try:
            made.act()
        except DecdecError as error:
            return [error.sentence]
        return list(made.told)

    def _check(self, made: Action, action: type[Action], fault: str, before: object, told: list[str]) -> None:
        for sentence in told:
            if "\n" in sentence or not sentence.endswith((".", "?")) or "Traceback" in sentence:
                self._wrong(action, fault, f"no sentence: {sentence!r}")
            if fault.startswith(("full", "no names", "size", "ENOSPC", "EDQUOT")) and not FULL.search(
                sentence
            ):
                self._wrong(action, fault, f"does not say that the disk is full: {sentence}")
        try:
            after = made.seen()
            healed = made.heals and " for good" in fault
            if (
                told
                and after not in (before, self.expected)
                and not healed
                and not self._between(before, after)
            ):
                self._wrong(action, fault, f"lost: {before} became {after}")
            if not told and after != self.expected and not made.told and action.__name__ != "Chat":
                self._wrong(action, fault, f"silent: {after}, not {self.expected}")
            made.again()
            if (after := made.seen()) != self.expected:
                self._wrong(action, fault, f"again: {after}, not {self.expected}, after {told}")
        except Exception:
            self._wrong(action, fault, f"after {told}: {traceback.format_exc()}")

    def _between(self, before: object, after: object) -> bool:
        """What grows result by result may be anywhere between both ends."""
        if isinstance(before, tuple) and isinstance(after, tuple) and isinstance(self.expected, tuple):
            return after[: len(before)] == before and self.expected[: len(after)] == after
        return False

    def _lift(self) -> None:
        self._refusals.lift()
        self._size.lift()
        if self._small:
            self._small.lift()

    def _wrong(self, action: type[Action], fault: str, words: str) -> None:
        self.found.wrong.append(f"{action.__name__} under {fault}: {words}")

    def close(self) -> None:
        if self._small:
            self._small.close()


def report(found: Found) -> int:
    """Print what was found; the exit code."""
    for name, count in sorted(found.rounds.items()):
        print(f"{count:6d}  {name}")
    for wrong in found.wrong[:SHOWN]:
        print(f"WRONG {wrong}", file=sys.stderr)
    print(f"{sum(found.rounds.values())} rounds, {found.refused} refused, {len(found.wrong)} wrong")
    return bool(found.wrong)
