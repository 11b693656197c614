"""pip as a child process: heard while it works, ended with us, and its failures as sentences.

What it says is kept in memory only, for it may name addresses that are nobody else's business.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from runtime.errors import DecdecError
from runtime.sources import index_child
from runtime.store.oserrors import explain, translated

POLL_S = 0.1
NOT_THERE = re.compile(r"No matching distribution|satisfies the requirement")
_PATIENCE_S = 5.0
_MAX_OUTPUT_BYTES = 256 << 10
_INDEX_SETTINGS = "check the network and pip's index settings (pip config list), then start again"
_REASONS = (
    (
        re.compile(r"No module named '?pip\b"),
        "pip is not installed for this Python",
        "run python -m ensurepip",
    ),
    (
        re.compile(
            r"ConnectionError|ConnectTimeout|ReadTimeout|NameResolution|NewConnection|ProxyError|SSLError"
            r"|unreachable|Max retries|[Nn]ame resolution"
            r"|[Cc]onnection (broken|refused|reset|failed|timed out)"
        ),
        "the package index cannot be reached",
        _INDEX_SETTINGS,
    ),
    (NOT_THERE, "the package index does not have it", _INDEX_SETTINGS),
)
_SECRETS = re.compile(r"(?<=://)[^\s/@]*@|\?[^\s'\")]*")


@dataclass(frozen=True, slots=True)
class Ended:
    """How pip ended: its exit code, None where we ended it; and the last of what it said."""

    code: int | None
    text: str


class _Output:
    """The last of what a process says, read by a thread of its own."""

    def __init__(self) -> None:
        self.news = threading.Event()
        self._bytes = b""

    @property
    def text(self) -> str:
        return self._bytes.decode("utf-8", "replace")

    def read(self, stream: IO[bytes]) -> None:
        with stream:
            while piece := os.read(stream.fileno(), 1 << 16):
                self._bytes = (self._bytes + piece)[-_MAX_OUTPUT_BYTES:]
                self.news.set()
        self.news.set()


def run(arguments: list[str], temporary: Path, enough: Callable[[str], bool]) -> Ended:
    """Run pip until it ends, or until `enough` is content with what it said.

    `enough` hears the whole lines so far, at least every POLL_S. pip's temporary files go to `temporary`, a
    folder that is emptied before. It is ended too when `enough` raises, or when this process is killed.
    """
    with translated(temporary, "Starting pip"):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True, exist_ok=True)
        process = _start(_command(arguments), temporary)
    assert process.stdin is not None
    assert process.stdout is not None
    output = _Output()
    reader = threading.Thread(target=output.read, args=(process.stdout,), daemon=True, name="pip")
    reader.start()
    try:
        while process.poll() is None:
            output.news.wait(POLL_S)
            output.news.clear()
            if enough(output.text.rpartition("\n")[0]):
                return Ended(None, output.text)
        reader.join(_PATIENCE_S)
        return Ended(process.returncode, output.text)
    finally:
        _end(process)
        process.stdin.close()


def failure(requirement: str, text: str, folder: Path) -> DecdecError:
    """The sentence for what pip said when it failed to fetch a requirement into `folder`."""
    doing = f"Downloading {requirement} with pip"
    if re.search(r"No space left|Errno 28|Disk quota", text) or shutil.disk_usage(folder).free < 1 << 16:
        return explain(OSError(errno.ENOSPC, "full"), folder.parent, doing)
    for pattern, why, fix in _REASONS:
        if pattern.search(text):
            return DecdecError(f"{doing} failed", why, fix)
    errors = re.findall(r"^[ \t]*ERROR: (.+)$", text, re.MULTILINE)
    why = _SECRETS.sub("", errors[-1])[:300] if errors else "pip gave no reason"
    return DecdecError(f"{doing} failed", why, _INDEX_SETTINGS)


def largest_file(folder: Path) -> int:
    """Size of the largest file below a folder that changes while we look: what is on its way."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
            except OSError:
                continue
    return largest


def _command(arguments: list[str]) -> list[str]:
    """-P keeps a file called pip in the current folder from being run in pip's place."""
    child = [sys.executable, "-P", "-u", index_child.__file__]
    return [*child, "--disable-pip-version-check", "--no-input", *arguments]


def _start(command: list[str], temporary: Path) -> subprocess.Popen[bytes]:
    """A session of its own keeps the terminal's Ctrl+C from it: we say when it ends."""
    return subprocess.Popen(
        command,
        env={**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
