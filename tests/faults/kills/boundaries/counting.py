"""Counts what a process changes on disk below a folder, and ends it by SIGKILL before change number N.

Changes are openings for writing, renames, removals, new folders, links, truncations, both sides of an fsync,
and statements of SQLite. Python tells of them before they happen, so that N = 1, 2, … leaves a disk as a kill
at every boundary does.
"""

from __future__ import annotations

import builtins
import io
import os
import signal
import sqlite3
import sys

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# How many paths an event begins with; behind them stand the descriptors of the folders they are relative to.
PATHS = {
    "os.rename": 2,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.mkdir": 1,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.chmod": 1,
}


class Counter:
    """Counts in this process. `at`: the change before which it dies, 0: never. `record`: gets every count."""

    def __init__(self, root: str, at: int, record: str = "") -> None:
        self._root, self._at, self._count = os.path.realpath(root), at, 0
        self._record = os.open(record, os.O_CREAT | os.O_WRONLY, 0o600) if record else -1

    def arm(self) -> None:
        """Begin to count; nothing can take it back in this process."""
        sys.addaudithook(self._heard)
        self._watch_open()
        self._watch_fsync()
        self._watch_sqlite()

    def _heard(self, event: str, args: tuple) -> None:
        if event == "open" and args[2] & WRITING and self._below(args[0]):
            self._tick(event, args[0])
        elif event in PATHS:
            count = PATHS[event]
            folders = [each for each in args[count:] if isinstance(each, int)]
            if any(self._below(path, *folders[:1]) for path in args[:count]):
                self._tick(event, args[count - 1])

    def _below(self, path: object, folder: int = -1) -> bool:
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str | os.PathLike):
            return False
        if folder >= 0 and not os.path.isabs(path):
            path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)
        return os.path.abspath(path).startswith(self._root)

    def _watch_open(self) -> None:
        """Behind the opening too: the file is there, and nothing of it is written."""
        real = io.open

        def opened(file: object, mode: str = "r", *args: object, **options: object) -> object:
            result = real(file, mode, *args, **options)
            if set(mode) & set("wax+") and self._below(file):
                self._tick("opened", file)
            return result

        io.open = builtins.open = opened

    def _watch_fsync(self) -> None:
        real = os.fsync

        def fsync(descriptor: object) -> None:
            self._tick("fsync", "before")
            real(descriptor)
            self._tick("fsync", "behind")

        os.fsync = fsync

    def _watch_sqlite(self) -> None:
        real = sqlite3.connect

        def connect(*args: object, **options: object) -> sqlite3.Connection:
            connection = real(*args, **options)
            connection.set_trace_callback(self._statement)
            return connection

        sqlite3.connect = connect

    def _statement(self, statement: str) -> None:
        if not statement.lstrip().upper().startswith(("SELECT", "PRAGMA", "--")):
            self._tick("sqlite", statement.split(None, 1)[0])

    def _tick(self, event: str, path: object) -> None:
        self._count += 1
        if self._record >= 0:
            line = f"{self._count} {event} {path}".encode("utf-8", "replace")
            os.pwrite(self._record, line.ljust(400)[:400], 0)
        if self._count == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
