"""Results on disk as JSON lines: one a result, appended as they come, so that a stopped run goes on later."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from runtime.errors import DecdecError
from runtime.store.oserrors import translated
from runtime.tasks.given import MAX_BYTES

T = TypeVar("T", bound=msgspec.Struct)


class Records(Generic[T]):
    """The records of one run in a file, oldest first.

    `accept` gives the reason why a record belongs to another run, or "". A last line without its newline was
    cut off by an interrupt, and is dropped; anything else that is no record is refused. Raises DecdecError.
    """

    def __init__(self, path: Path, kind: type[T], accept: Callable[[T], str]) -> None:
        self.path, self._decoder = path, msgspec.json.Decoder(kind)
        self.found: list[T] = []
        whole = self._read(accept)
        with translated(path, f"Writing {path.name}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without a buffer: what a full disk refused must not be written again when it is closed.
            self._file = path.open("ab", buffering=0)
            self._file.truncate(whole)

    def __enter__(self) -> Records[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, record: T) -> None:
        """Append a record, durably, or leave the file as it was."""
        with translated(self.path, f"Writing {self.path.name}"):
            before = os.fstat(self._file.fileno()).st_size
            try:
                self._write(msgspec.json.encode(record) + b"\n")
            except BaseException:
                with contextlib.suppress(OSError):
                    self._file.truncate(before)
                raise
        self.found.append(record)

    def _write(self, line: bytes) -> None:
        while line:
            line = line[self._file.write(line) :]
        os.fsync(self._file.fileno())

    def _read(self, accept: Callable[[T], str]) -> int:
        """Fill `found`; how many bytes of the file are whole lines."""
        if not self.path.exists():
            return 0
        with translated(self.path, f"Reading {self.path.name}"):
            if self.path.stat().st_size > MAX_BYTES:
                raise self._refused(f"it is larger than {MAX_BYTES >> 20} MB")
            data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:whole].splitlines(), 1):
            try:
                record = self._decoder.decode(line)
            except msgspec.DecodeError as error:
                raise self._refused(f"line {number}: {error}") from error
            if reason := accept(record):
                raise self._refused(f"line {number}: {reason}")
            self.found.append(record)
        return whole

    def _refused(self, why: str) -> DecdecError:
        return DecdecError(
            f"{self.path} cannot be continued", why, "name another file with --out, or remove this one"
        )
