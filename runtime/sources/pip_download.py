"""Fetching a wheel with pip itself, where only pip can; nothing is installed or run."""

from __future__ import annotations

from pathlib import Path

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import index_pip
from runtime.store.space import require_space

_OPTIONS = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--progress-bar", "off"]
# An index may have packed its wheel anew: what counts is inside. More would fill the disk.
_SLACK_BYTES = 1 << 20


def download(requirement: str, wheel_bytes: int, work: Path, keep_free: int, ctx: JobContext) -> Path:
    """The wheel of an exact requirement ("name==version"), below `work`, a folder of our own.

    Needs space for two wheels (pip copies its temporary file), and `keep_free` bytes beside one of them
    afterwards. A download that was cut begins anew; one that is far longer than recorded is ended.
    """
    require_space(work, wheel_bytes + max(wheel_bytes, keep_free))

    def enough(text: str) -> bool:
        there = index_pip.largest_file(work)
        if there > wheel_bytes + wheel_bytes // 10 + _SLACK_BYTES:
            raise _too_long(requirement, wheel_bytes)
        ctx.progress("download", min(there, wheel_bytes - 1), wheel_bytes, "bytes", requirement)
        return False

    out = work / "out"
    ended = index_pip.run(["download", *_OPTIONS, "--dest", str(out), requirement], work / "tmp", enough)
    wheels = list(out.glob("*.whl"))
    if ended.code or len(wheels) != 1:
        raise index_pip.failure(requirement, ended.text, work)
    return wheels[0]


def _too_long(requirement: str, wheel_bytes: int) -> DecdecError:
    return DecdecError(
        f"Downloading {requirement} with pip was ended",
        f"the package index sends far more than the recorded {wheel_bytes} bytes",
        "check which package index pip uses (pip config list), then start again",
    )
