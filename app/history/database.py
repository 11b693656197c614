"""One SQLite file: opened when it is first needed, checked, and set aside when it is damaged."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from app.history import rows, schema
from runtime.errors import DecdecError
from runtime.store.oserrors import FULL, full_words, looks_full

# As long as the screen may stand still when another program writes at this very moment.
BUSY_S = 0.25
# Of a text in the file; an answer has a few megabytes at the most.
MAX_VALUE_BYTES = 64 << 20
# Steps of SQLite's machine in one use, about a second: a damaged tree of pages can be endless.
MAX_STEPS, _STEPS_AT_ONCE = 40_000_000, 100_000
_LATER = "the chat goes on, and it is tried again at the next change"
_REASONS = {
    sqlite3.SQLITE_BUSY: "another program is writing to them",
    sqlite3.SQLITE_LOCKED: "another program is writing to them",
    sqlite3.SQLITE_READONLY: "their file or folder is read-only",
    sqlite3.SQLITE_PERM: "their file may not be used",
    sqlite3.SQLITE_CANTOPEN: "their file cannot be opened",
    sqlite3.SQLITE_INTERRUPT: "it takes too long, so their file is damaged or far too large",
    sqlite3.SQLITE_TOOBIG: "a text in their file is too large",
    sqlite3.SQLITE_IOERR: "their disk could not be used (disk I/O error)",
}
# What SQLite says when the disk has no room, in the middle of a write, and for its own small files.
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Database:
    """Connections for reading and changing. Everything that fails becomes a DecdecError.

    Nothing is made before the first change. For one thread; programs may share the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.full_text = False
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._steps = 0

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection, or None while there is no file."""
        with self._telling("Conversations could not be read"):
            if not self._in_place():
                self.close()
            yield self._connection or (self._open() if self.path.exists() else None)

    @contextlib.contextmanager
    def changing(self, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection within a transaction, which is kept whole or not at all.

        Kept means that a kill takes nothing back; `durable`: nor does a power cut, which costs a wait for the
        disk. What was kept before is durable then too.
        """
        with self._telling("Conversations are not kept", _LATER):
            connection = self._to_change()
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # Some failures have ended the transaction already.
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _to_change(self) -> sqlite3.Connection:
        if not self._in_place():
            self.close()
            raise DecdecError("Conversations are not kept", f"{self.path} was removed", _LATER)
        return self._connection or self._open()

    def _in_place(self) -> bool:
        """Whether the open file is still the one of that name: SQLite would write on into a removed one."""
        return self._connection is None or _identity(self.path) == self._file

    def _open(self) -> sqlite3.Connection:
        self._make()
        connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        self._file = _identity(self.path)
        connection.set_progress_handler(self._step, _STEPS_AT_ONCE)
        try:
            self.full_text = _prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _make(self) -> None:
        if self.path.exists():
            return
        # A journal without its file would be played into the new one.
        self._set_aside()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def _step(self) -> bool:
        """Called now and then; whether it is enough."""
        self._steps += _STEPS_AT_ONCE
        return self._steps > MAX_STEPS

    @contextlib.contextmanager
    def _telling(self, what: str, fix: str = "") -> Iterator[None]:
        self._steps = 0
        try:
            yield
        except sqlite3.Error as error:
            raise self._told(what, fix, error) from error
        except UnicodeDecodeError as error:
            # SQLite's own words quote a damaged name.
            raise self._replaced(error) from error
        except OSError as error:
            why = full_words(self.path, error.errno) if error.errno in FULL else _plainly(self.path, error)
            raise DecdecError(what, why, fix) from error

    def _told(self, what: str, fix: str, error: sqlite3.Error) -> DecdecError:
        code = getattr(error, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_CORRUPT_VTAB:
            return self._without_index()
        if code & 0xFF in _DAMAGED:
            return self._replaced(error)
        if code & 0xFF == sqlite3.SQLITE_FULL or (code & 0xFF in _FULL and looks_full(self.path)):
            return DecdecError(what, full_words(self.path), fix)
        return DecdecError(what, _REASONS.get(code & 0xFF, str(error)), fix)

    def _without_index(self) -> DecdecError:
        with contextlib.suppress(sqlite3.Error):
            if self._connection is not None:
                schema.forget_index(self._connection)
        self.close()
        return DecdecError("The search index was damaged", "", "it is built again at the next search")

    def _replaced(self, error: Exception) -> DecdecError:
        """Set the damaged file aside, unless another program has done that."""
        self.close()
        if _identity(self.path) != self._file:
            return DecdecError("Conversations were damaged", str(error), "their file was replaced")
        try:
            bad = self._set_aside()
        except OSError as refusal:
            return DecdecError("Conversations are damaged", str(error), f"move {self.path} away: {refusal}")
        return DecdecError(
            "Conversations were damaged", str(error), f"the old file is kept as {bad}, a new one is begun"
        )

    def _set_aside(self) -> Path:
        """Rename the file with its journals to a name that is free."""
        folder, stem = self.path.parent, self.path.stem
        bad = next(
            bad for n in count(1) if not any(map(os.path.lexists, _parts(bad := folder / f"{stem}-{n}.bad")))
        )
        for old, new in zip(_parts(self.path), _parts(bad), strict=True):
            with contextlib.suppress(FileNotFoundError):
                old.rename(new)
        return bad


def _plainly(path: Path, error: OSError) -> str:
    return f"{path}: {error.strerror or error}"


def _parts(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("", "-journal", "-wal", "-shm")]


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _prepare(connection: sqlite3.Connection) -> bool:
    """Settings of a connection and the newest tables; whether there is a full-text index."""
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.row_factory = rows.read
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    # The file may have been changed by anything: its own functions and sizes are not believed.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    schema.migrate(connection)
    schema.check(connection)
    # Some file systems cannot have it; then every change is one write more.
    with contextlib.suppress(sqlite3.OperationalError):
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            connection.execute("PRAGMA journal_mode = WAL")
    try:
        return schema.full_text(connection)
    except sqlite3.OperationalError:
        return False
