"""Fetching a wheel with pip itself, where only pip can; nothing is installed or run."""

from __future__ import annotations

from pathlib import Path

from runtime.progress import JobContext
from runtime.sources import index_pip
from runtime.store.space import require_space

_OPTIONS = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--progress-bar", "off"]


def download(requirement: str, wheel_bytes: int, work: Path, keep_free: int, ctx: JobContext) -> Path:
    """The wheel of an exact requirement ("name==version"), below `work`, a folder of our own.

    Needs space for two wheels (pip copies its temporary file), and `keep_free` bytes beside one of them
    afterwards. A download that was cut begins anew.
    """
    require_space(work, wheel_bytes + max(wheel_bytes, keep_free))

    def enough(text: str) -> bool:
        have = min(index_pip.largest_file(work), wheel_bytes - 1)
        ctx.progress("download", have, wheel_bytes, "bytes", requirement)
        return False

    out = work / "out"
    ended = index_pip.run(["download", *_OPTIONS, "--dest", str(out), requirement], work / "tmp", enough)
    wheels = list(out.glob("*.whl"))
    if ended.code or len(wheels) != 1:
        raise index_pip.failure(requirement, ended.text, work)
    return wheels[0]
