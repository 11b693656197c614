"""One input through one target, under limits: processor time, memory, files outside the scratch folder."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import pkgutil
import resource
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz import guard, targets

LIMIT_S = 2.0
LIMIT_BYTES = 1 << 30
WARMING = 8
PAGE = resource.getpagesize()
CORPUS = Path(__file__).parent / "corpus"
OUR_FOLDERS = ("/app/", "/runtime/", "/kernels/", "/tests/fuzz/targets/")


class TooSlow(BaseException):
    """An input took more processor time than the limit; no `except Exception` of the product hides it."""


@dataclass(frozen=True, slots=True)
class Target:
    """`seeds` makes small inputs, `check` feeds one to the product, `mutate` may know their shape.

    `mutations`: how many the test takes, fewer where each costs much.
    """

    name: str
    seeds: Callable[[Path], list[bytes]]
    check: Callable[[bytes, Path], None]
    mutate: Callable[[bytes, Random], bytes] | None
    mutations: int = 150


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken promise; equal faults have equal keys."""

    kind: str
    text: str

    @property
    def key(self) -> str:
        """Stable short name of this fault, for one file a fault."""
        return f"{self.kind}-{hashlib.sha256(self.text.splitlines()[0].encode()).hexdigest()[:10]}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an input did: processor seconds, bytes above the start, the broken promise if there is one."""

    seconds: float
    grown: int
    finding: Finding | None


def names() -> list[str]:
    """Every target there is."""
    return sorted(module.name for module in pkgutil.iter_modules(targets.__path__))


def load(name: str) -> Target:
    """A target by the name of its module."""
    module = importlib.import_module(f"tests.fuzz.targets.{name}")
    assert name == module.NAME
    return Target(
        name, module.seeds, module.check, getattr(module, "mutate", None), getattr(module, "MUTATIONS", 150)
    )


def corpus(name: str) -> list[bytes]:
    """Inputs that once were findings."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def start(target: Target, folder: Path) -> list[bytes]:
    """Seeds and kept inputs; the first have run without limits, so libraries are loaded and compiled."""
    guard.install()
    with _empty(folder / "seeds") as made:
        inputs = target.seeds(made) + corpus(target.name)
    for data in inputs[:WARMING]:
        with _empty(folder / "case") as case, contextlib.suppress(Exception):
            target.check(data, case)
    return inputs


def run(target: Target, data: bytes, folder: Path) -> Outcome:
    """Feed one input to the target in an empty folder below `folder`; what is slow must be so twice."""
    outcome = _run(target, data, folder)
    slow = outcome.finding is not None and outcome.finding.kind == "slow"
    return _run(target, data, folder) if slow else outcome


def _run(target: Target, data: bytes, folder: Path) -> Outcome:
    with _empty(folder / "case") as case, _limits():
        begin, before = time.process_time(), _reset_peak()
        with guard.watch(case) as touched:
            raised = _call(target, data, case)
        seconds, grown = time.process_time() - begin, _peak() - before
    return Outcome(seconds, grown, _judge(raised, touched, seconds, grown))


def _call(target: Target, data: bytes, case: Path) -> BaseException | None:
    try:
        target.check(data, case)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None


def _judge(raised: BaseException | None, touched: list[str], seconds: float, grown: int) -> Finding | None:
    if touched:
        return Finding("outside", "\n".join(touched))
    if raised is not None:
        kind = "slow" if isinstance(raised, TooSlow) else "memory" if _of_memory(raised) else "raised"
        return Finding(kind, _told(raised))
    if grown > LIMIT_BYTES:
        return Finding("memory", f"grew by more than {LIMIT_BYTES} bytes\n{grown}")
    return Finding("slow", f"took more than {LIMIT_S} s\n{seconds:.1f}") if seconds > LIMIT_S else None


def _of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "allocate" in str(error)


def _told(error: BaseException) -> str:
    """First line: the type and our innermost frame, the key of a fault; then the whole traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if any(part in f.filename for part in OUR_FOLDERS)] or list(frames)
    where = f"{Path(ours[-1].filename).name}:{ours[-1].name}:{ours[-1].lineno}"
    return f"{type(error).__name__} in {where}\n{''.join(traceback.format_exception(error))}"


@contextlib.contextmanager
def _empty(folder: Path):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _limits():
    """At most LIMIT_S of processor time, which other load does not change, and LIMIT_BYTES more memory."""
    space = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGPROF, _slow)
    resource.setrlimit(resource.RLIMIT_AS, (_statm(0) + LIMIT_BYTES, space[1]))
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        resource.setrlimit(resource.RLIMIT_AS, space)


def _slow(*_) -> None:
    raise TooSlow(f"more than {LIMIT_S} s of processor time")


def _statm(field: int) -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[field]) * PAGE


def _reset_peak() -> int:
    """Resident bytes now, from which the kernel counts the peak again, where it can."""
    with contextlib.suppress(OSError):
        fd = os.open("/proc/self/clear_refs", os.O_WRONLY)
        try:
            os.write(fd, b"5")
        finally:
            os.close(fd)
        return _statm(1)
    return _peak()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
