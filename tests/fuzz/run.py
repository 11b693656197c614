"""`python -m tests.fuzz.run NAME… --seconds 600 [--seed S] [--out FOLDER]`: fuzzes targets for long.

Each target runs in a child of its own; a crash or a hang of the child is a finding and it starts anew.
Of each target stdout gets one line of JSON: target, seconds, executions, findings, peak_mb, slowest_s.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz import child, harness

HANG_S = 30.0
ROOT = Path(__file__).resolve().parents[2]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
# Compiled loops look at no index by themselves: here they do, and are kept apart from those that do not.
BOUNDS = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": f"{tempfile.gettempdir()}/fuzz-numba-{os.getuid()}"}


@dataclass(slots=True)
class Counts:
    """Sum over the children of one target."""

    executions: int = 0
    peak_mb: float = 0.0
    slowest_s: float = 0.0
    restarts: int = field(default=-1)

    def add(self, path: Path) -> None:
        """Add one child's counts, which may be missing when it died early."""
        self.restarts += 1
        if path.exists():
            counts = json.loads(path.read_text())
            path.unlink()
            self.executions += counts["executions"]
            self.peak_mb = max(self.peak_mb, counts["peak_mb"])
            self.slowest_s = max(self.slowest_s, counts["slowest_s"])


def fuzz(name: str, seconds: float, seed: int, engine: str, out: Path) -> dict[str, object]:
    """Fuzz one target for `seconds`; findings lie in `out`/NAME."""
    kept = out / name
    kept.mkdir(parents=True, exist_ok=True)
    work = Path(
        tempfile.mkdtemp(prefix=f"fuzz-{name}-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    )
    counts, begin = Counts(), time.monotonic()
    try:
        while (left := begin + seconds - time.monotonic()) > 1:
            arguments = [name, engine, str(left), str(seed + counts.restarts + 1), str(work), str(kept)]
            _one_child(arguments, work, kept)
            counts.add(work / "stats.json")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {
        "target": name,
        "seconds": round(time.monotonic() - begin),
        "executions": counts.executions,
        "findings": len(list(kept.glob("*.txt"))),
        "peak_mb": counts.peak_mb,
        "slowest_s": counts.slowest_s,
    }


def _one_child(arguments: list[str], work: Path, kept: Path) -> None:
    """Run a child to its end; kill it when one input takes too long; keep the input that ended it."""
    current, log = work / "current", work / "log"
    current.unlink(missing_ok=True)
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.child", *arguments],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            env={**os.environ, **ONE_THREAD, **BOUNDS},
        )  # fmt: skip
        hung = False
        while process.poll() is None:
            time.sleep(0.2)
            if current.exists() and time.time() - current.stat().st_mtime > HANG_S:
                hung = True
                process.send_signal(signal.SIGABRT)
                process.wait()
    if hung or process.returncode not in (0, child.RESTART):
        _keep_end(current, log, kept, "hang" if hung else "crash", process.returncode)


def _keep_end(current: Path, log: Path, kept: Path, kind: str, code: int) -> None:
    tail = log.read_text(errors="replace")[-6000:]
    frames = [line.strip() for line in tail.splitlines() if 'File "' in line and str(ROOT) in line]
    place = frames[0] if frames else "no frame of ours"
    data = current.read_bytes() if current.exists() else b""
    child.save(kept, harness.Finding(kind, f"exit code {code}, {place}\n{tail}"), data)


def replay(name: str, paths: list[Path]) -> None:
    """Check single inputs in this process, a fault's traceback on stdout."""
    target = harness.load(name)
    with tempfile.TemporaryDirectory() as folder:
        harness.start(target, Path(folder))
        for path in paths:
            outcome = harness.run(target, path.read_bytes(), Path(folder))
            told = outcome.finding.text if outcome.finding else "no finding"
            print(f"{path}: {outcome.seconds:.3f} s, {outcome.grown >> 20} MiB: {told}")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run")
    parser.add_argument("names", nargs="+", choices=harness.names(), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--engine", choices=("auto", "atheris", "plain"), default="auto")
    parser.add_argument("--replay", type=Path, nargs="+", help="check these inputs instead")
    asked = parser.parse_args()
    engine = asked.engine
    if engine == "auto":
        engine = "atheris" if importlib.util.find_spec("atheris") else "plain"
    for name in asked.names:
        if asked.replay:
            replay(name, asked.replay)
        else:
            print(json.dumps(fuzz(name, asked.seconds, asked.seed, engine, asked.out.resolve())), flush=True)


if __name__ == "__main__":
    main()
