"""The server as a user starts it, and what it and its engine hold on to."""

import contextlib
import os
import subprocess
import sys
from dataclasses import asdict, dataclass

import psutil

ROOT = __file__.rsplit("/tests/", 1)[0]
COMMAND = [sys.executable, "-c", "from app.cli.main import main; main()", "serve", "--port", "0"]
MB = 1 << 20


@dataclass(frozen=True)
class Held:
    """After so many requests, while nothing is asked. Latency: seconds of one answer, the median of some."""

    requests: int
    server_mb: float
    engine_mb: float
    threads: int
    files: int
    processes: int
    latency_s: float

    def row(self):
        """One line of a table."""
        return " ".join(f"{value:>11.4g}" for value in asdict(self).values())


HEADINGS = " ".join(f"{name:>11}" for name in Held.__dataclass_fields__)


class Serving:
    """A running server: `port`, and what its processes hold."""

    def __init__(self, process, port):
        self.port = port
        self._server = psutil.Process(process.pid)

    def held(self, requests, latency_s):
        engines = self._server.children(recursive=True)
        every = [self._server, *engines]
        return Held(
            requests,
            self._server.memory_info().rss / MB,
            sum(each.memory_info().rss for each in engines) / MB,
            sum(each.num_threads() for each in every),
            sum(each.num_fds() for each in every),
            len(every),
            latency_s,
        )


@contextlib.contextmanager
def serving(*arguments):
    """Start it, and end it and its engine."""
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*COMMAND, *arguments], cwd=ROOT, env=os.environ, text=True, **pipes)
    try:
        said = ""
        for line in process.stderr:
            said += line
            if line.startswith("Serving "):
                break
        assert "Serving " in said, said
        yield Serving(process, int(said.rsplit(":", 1)[1].split("/")[0]))
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()
