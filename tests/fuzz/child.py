"""The process that fuzzes: it may crash or hang, so an input stands in a file before it is checked.

`python -m tests.fuzz.child NAME ENGINE SECONDS SEED WORK OUT`: atheris (coverage guided) or the plain loop.
Faults are saved and fuzzing goes on; `tests.fuzz.run` starts this anew after a crash.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import threading
import time
from pathlib import Path
from random import Random

from tests.fuzz import harness
from tests.fuzz.mutations import mutate_bytes

MAX_BYTES = 1 << 16
SAVED_EVERY_S = 1.0
# A thread that was left behind takes processor time from the inputs that follow: the parent begins anew.
RESTART = 75


class Fuzzing:
    """Runs inputs of one target and keeps count of them in WORK/stats.json, faults as OUT/<key>.{bin,txt}."""

    def __init__(self, target: harness.Target, work: Path, out: Path) -> None:
        self.target, self.work, self.out = target, work, out
        self.executions, self.grown, self.slowest = 0, 0, 0.0
        self._saved = 0.0
        self._threads = threading.active_count()
        self._current = (work / "current").open("wb", buffering=0)

    def run(self, data: bytes) -> None:
        """Check one input."""
        self._note(data)
        outcome = harness.run(self.target, data, self.work)
        self.executions += 1
        self.grown, self.slowest = max(self.grown, outcome.grown), max(self.slowest, outcome.seconds)
        if outcome.finding:
            save(self.out, outcome.finding, data)
        if time.monotonic() - self._saved > SAVED_EVERY_S:
            self.save()
        if threading.active_count() > self._threads:
            self.save()
            os._exit(RESTART)

    def save(self) -> None:
        """Write the counts for the parent."""
        self._saved = time.monotonic()
        counts = {
            "executions": self.executions,
            "peak_mb": round(self.grown / 1e6, 1),
            "slowest_s": round(self.slowest, 3),
        }
        fresh = self.work / "stats.new"
        fresh.write_text(json.dumps(counts))
        fresh.replace(self.work / "stats.json")

    def _note(self, data: bytes) -> None:
        self._current.seek(0)
        self._current.write(data)
        self._current.truncate()


def save(out: Path, finding: harness.Finding, data: bytes) -> None:
    """Keep a fault once: of those with one key the smallest input."""
    kept = out / f"{finding.key}.bin"
    if not kept.exists() or len(data) < kept.stat().st_size:
        kept.write_bytes(data)
        (out / f"{finding.key}.txt").write_text(finding.text, errors="backslashreplace")


def mutated(target: harness.Target, data: bytes, random: Random) -> bytes:
    """A mutation that knows the target's shape, or any."""
    if target.mutate and random.random() < 0.7:
        return target.mutate(data, random)
    return mutate_bytes(data, random)


def _plain(fuzzing: Fuzzing, inputs: list[bytes], seconds: float, seed: int) -> None:
    random, end = Random(seed), time.monotonic() + seconds
    for data in inputs:
        fuzzing.run(data)
    while time.monotonic() < end:
        data = random.choice(inputs)
        for _ in range(1 + random.randrange(3)):
            data = mutated(fuzzing.target, data, random)
        fuzzing.run(data[:MAX_BYTES])


def _atheris(fuzzing: Fuzzing, inputs: list[bytes], seconds: float, seed: int) -> None:
    import atheris

    folders = [fuzzing.work / "found", fuzzing.work / "given"]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    for number, data in enumerate(inputs):
        (folders[1] / str(number)).write_bytes(data)

    def mutate(data: bytes, most: int, chosen: int) -> bytes:
        random = Random(chosen)
        if random.random() < 0.4:
            return atheris.Mutate(data, most)[:most]
        return mutated(fuzzing.target, data, random)[:most]

    longest = max(4096, 2 * max(map(len, inputs)))
    options = [
        f"-max_total_time={max(1, int(seconds))}", f"-seed={seed}", f"-max_len={min(longest, 4 * MAX_BYTES)}",
        "-rss_limit_mb=0", "-timeout=1200", "-len_control=0", f"-artifact_prefix={fuzzing.work}/",
    ]  # fmt: skip
    atheris.Setup(["fuzz", *map(str, folders), *options], fuzzing.run, custom_mutator=mutate)
    atheris.Fuzz()


def _instrumented(engine: str):
    """Inside, what is imported tells which branches it takes; compiled functions (kernels) cannot."""
    if engine == "plain":
        return contextlib.nullcontext()
    import atheris

    return atheris.instrument_imports(include=["runtime", "app", "assets"], enable_loader_override=False)


def main(name: str, engine: str, seconds: str, seed: str, work: str, out: str) -> None:
    """Fuzz until `seconds` after the start."""
    end = time.monotonic() + float(seconds)
    faulthandler.enable()
    with _instrumented(engine):
        target = harness.load(name)
        inputs = harness.start(target, Path(work))
    fuzzing = Fuzzing(target, Path(work), Path(out))
    loop = _plain if engine == "plain" else _atheris
    try:
        loop(fuzzing, inputs, end - time.monotonic(), int(seed))
    finally:
        fuzzing.save()


if __name__ == "__main__":
    main(*sys.argv[1:])
