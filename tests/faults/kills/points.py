"""Every boundary of an operation in turn: a fork does it and dies before its change number 1, 2, 3, …"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "boundaries"
MOST = 5000


def _counter():
    spec = importlib.util.spec_from_file_location("counting", FOLDER / "counting.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Counter


ChangeCounter = _counter()


@dataclass(frozen=True)
class Operation:
    """What is killed. `root` is an empty folder whose `home` is DECDEC_HOME.

    before: makes what is there before. work: what dies. check: sentences about what is wrong after a kill.
    finished: the same after `work` was done again to its end; every kill is followed by that.
    """

    name: str
    before: Callable[[Path], None]
    work: Callable[[Path], None]
    check: Callable[[Path], list[str]]
    finished: Callable[[Path], list[str]]


@dataclass
class Outcome:
    """How many kills, and what was wrong after them, by boundary."""

    name: str
    kills: int = 0
    wrong: list[str] = field(default_factory=list)
    boundaries: Counter[str] = field(default_factory=Counter)


def at_every_boundary(operation: Operation, root: Path, step: int = 1) -> Outcome:
    """Kill before every `step`-th change until the work ends by itself."""
    outcome = Outcome(operation.name)
    for at in range(1, MOST, step):
        place = root / f"{at}"
        _begin(operation, place)
        last = place / "last"
        if not _dies(operation, place, at, last):
            shutil.rmtree(place)
            return outcome
        outcome.kills += 1
        outcome.boundaries[last.read_text().split()[1]] += 1
        found = _wrong(operation.check, place)
        if not _ends(operation, place):
            found.append("the next start does not end")
        found += _wrong(operation.finished, place)
        if found:
            outcome.wrong += [f"{last.read_text().strip()}: {each}" for each in found]
        shutil.rmtree(place)
    raise AssertionError(f"{operation.name} does not end within {MOST} changes")


def _begin(operation: Operation, place: Path) -> None:
    place.mkdir(parents=True)
    os.environ["DECDEC_HOME"] = str(place / "home")
    operation.before(place)


def _dies(operation: Operation, place: Path, at: int, last: Path) -> bool:
    code = _forked(operation.work, place, lambda: ChangeCounter(str(place), at, str(last)).arm())
    if code not in (0, -signal.SIGKILL):
        raise AssertionError(f"{operation.name} at {at} ended with {code}")
    return code != 0


def _ends(operation: Operation, place: Path) -> bool:
    return _forked(operation.work, place, lambda: None) == 0


def _forked(work: Callable[[Path], None], place: Path, arm: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            arm()
            work(place)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _wrong(look: Callable[[Path], list[str]], place: Path) -> list[str]:
    """What a look says, in a process of its own as the next start is one."""
    told = place.parent / f"{place.name}.told"

    def write(place: Path) -> None:
        try:
            found = look(place)
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        told.write_text("\n".join(found))

    _forked(write, place, lambda: None)
    found = told.read_text().splitlines()
    told.unlink()
    return found
