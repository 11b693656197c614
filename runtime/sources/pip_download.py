"""Fetching a wheel with pip, so that the user's own index settings apply; nothing is installed or run."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.store.oserrors import explain, translated
from runtime.store.space import require_space

POLL_S = 0.1
_PATIENCE_S = 5.0
_MAX_LOG_BYTES = 256 << 10
_INDEX_SETTINGS = "check the network and pip's index settings (pip config list), then start again"
_REASONS = (
    (r"No module named pip", "pip is not installed for this Python", "run python -m ensurepip"),
    (
        r"ConnectionError|ConnectTimeout|ReadTimeout|NameResolution|NewConnection|ProxyError|SSLError"
        r"|unreachable|Max retries|[Cc]onnection (broken|refused|reset|failed|timed out)|[Nn]ame resolution",
        "the package index cannot be reached",
        _INDEX_SETTINGS,
    ),
    (
        r"No matching distribution|satisfies the requirement",
        "the package index does not have it",
        _INDEX_SETTINGS,
    ),
)


@contextmanager
def downloaded_wheel(
    requirement: str, wheel_bytes: int, work: Path, keep_free: int, ctx: JobContext
) -> Iterator[Path]:
    """The wheel of an exact requirement ("name==version") as a file that lives as long as the block.

    `work` is a folder of our own, emptied before and removed after; pip's temporary files go there too. Needs
    space for two wheels (pip copies its temporary file), and `keep_free` bytes beside one of them afterwards.
    """
    require_space(work.parent, wheel_bytes + max(wheel_bytes, keep_free))
    with translated(work, f"Downloading {requirement}"):
        shutil.rmtree(work, ignore_errors=True)
        for folder in (work / "tmp", work / "out"):
            folder.mkdir(parents=True)
    try:
        yield _download(requirement, wheel_bytes, work, ctx)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _download(requirement: str, wheel_bytes: int, work: Path, ctx: JobContext) -> Path:
    def on_poll() -> None:
        ctx.progress("download", min(_largest(work), wheel_bytes - 1), wheel_bytes, "bytes", requirement)

    on_poll()
    with translated(work, "Starting pip"), (work / "log").open("wb") as log:
        code = _run(_command(requirement, work / "out"), _environment(work / "tmp"), log.fileno(), on_poll)
    wheels = list((work / "out").glob("*.whl"))
    if code or len(wheels) != 1:
        raise _failure(requirement, work)
    return wheels[0]


def _command(requirement: str, out: Path) -> list[str]:
    """-P keeps a file called pip in the current folder from being run in pip's place."""
    options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--progress-bar", "off", "--no-input"]
    pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check"]
    return [*pip, "download", *options, "--dest", str(out), requirement]


def _environment(temporary: Path) -> dict[str, str]:
    return {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))}


def _run(command: list[str], environment: dict[str, str], log: int, on_poll: Callable[[], None]) -> int:
    """Exit code of a process that is ended with us; its own session keeps the terminal's Ctrl+C from it."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    try:
        while True:
            try:
                return process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                on_poll()
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _largest(folder: Path) -> int:
    """Size of the largest file below a folder that changes while we look: the wheel on its way."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
            except OSError:
                continue
    return largest


def _failure(requirement: str, work: Path) -> DecdecError:
    text = (work / "log").read_bytes()[-_MAX_LOG_BYTES:].decode("utf-8", "replace")
    doing = f"Downloading {requirement} with pip"
    if re.search(r"No space left|Errno 28|Disk quota", text) or shutil.disk_usage(work).free < 1 << 16:
        return explain(OSError(errno.ENOSPC, "full"), work.parent, doing)
    for pattern, why, fix in _REASONS:
        if re.search(pattern, text):
            return DecdecError(f"{doing} failed", why, fix)
    errors = re.findall(r"^ERROR: (.+)$", text, re.MULTILINE)
    return DecdecError(
        f"{doing} failed", errors[-1][:300] if errors else "pip gave no reason", _INDEX_SETTINGS
    )
