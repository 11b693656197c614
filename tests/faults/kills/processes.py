"""Real processes of the program in a home of their own: starting, killing, and seeing that none is left."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[3]
BOUNDARIES = Path(__file__).resolve().parent / "boundaries"
PROGRAM = (sys.executable, "-m", "app.cli.main")
# A worker may go on for ten seconds after its front end is gone; the machine may be busy.
GONE_S = 30.0
ENDS_S = 240.0


@dataclass(frozen=True)
class Place:
    """Folders of one job. `shared`: what every job reads, and compiled kernels."""

    root: Path
    shared: Path
    hub: str = ""

    @property
    def home(self) -> Path:
        """DECDEC_HOME."""
        return self.root / "home"

    @property
    def record(self) -> Path:
        """Where processes write down what they change, beside the watched folder."""
        return self.root.parent / f"{self.root.name}.record"

    def env(self, at: int | None = None, **more: str) -> dict[str, str]:
        """The environment of a process; `at`: before which change it dies, 0: count only."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("DECDEC", "HF_"))}
        own = {
            "DECDEC_HOME": str(self.home),
            "DECDEC_DEVICE": "cpu",
            "OMP_NUM_THREADS": "1",
            "NUMBA_NUM_THREADS": "1",
            "NUMBA_CACHE_DIR": str(self.shared / "compiled"),
            "HF_HOME": str(self.root / "hf"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "TERM": "xterm-256color",
        }
        if self.hub:
            own["HF_ENDPOINT"] = self.hub
        if at is not None:
            own |= {"PYTHONPATH": str(BOUNDARIES), "KILLS_BELOW": str(self.root), "KILLS_AT": str(at)}
            own["KILLS_RECORD"] = str(self.record)
        return kept | own | more


class Running:
    """A process with its children, in a session of its own; what it says goes to a file."""

    def __init__(self, place: Place, command: tuple[str, ...], at: int | None = None, **env: str) -> None:
        self.place, self.command = place, command
        self._said = place.root.parent / f"{place.root.name}.said"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=place.env(at, **env),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """All output so far."""
        return self._said.read_text(encoding="utf-8", errors="replace")

    def ended_within(self, seconds: float) -> bool:
        """Wait so long; whether it ended by itself."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> int:
        """Wait for its end; the exit code, negative for a signal."""
        try:
            return self._process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            kill(self._process.pid, "both")
            raise AssertionError(f"{shlex.join(self.command)} does not end:\n{self.said}") from None

    def kill(self, who: str) -> str:
        """SIGKILL to the front end, the worker, both, or the whole group; who it reached."""
        return kill(self._process.pid, who)


def kill(pid: int, who: str) -> str:
    """SIGKILL to a program, its workers (`worker`), both, or the group it leads; who it reached."""
    front = psutil.Process(pid)
    children = front.children(recursive=True)
    if who == "worker" and not children:
        who = "front"
    targets = {"front": [front], "worker": children}.get(who, [front, *children])
    for each in targets:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.send_signal(signal.SIGKILL)
    if who == "group":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    end = time.monotonic() + GONE_S
    while any(map(_dies, targets)) and time.monotonic() < end:
        time.sleep(0.005)
    return who


def _dies(process: psutil.Process) -> bool:
    """Whether it may still hold files: one that was killed within a system call ends it first."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def left(place: Place) -> list[str]:
    """Processes of this home that are still there after a while."""
    end = time.monotonic() + GONE_S
    while (found := _of(place)) and time.monotonic() < end:
        time.sleep(0.05)
    return [f"{name} is left" for name in found]


def _of(place: Place) -> list[str]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                continue
            if process.environ().get("DECDEC_HOME") == str(place.home):
                found.append(f"process {process.pid} ({' '.join(process.cmdline()[1:4])})")
    return found
