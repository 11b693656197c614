"""The tables of the history, and how an older file becomes a newer one."""

from __future__ import annotations

import contextlib
import sqlite3

from runtime.errors import DecdecError

# One tuple of statements a version, in order; one that was released is never changed. `turns` holds what a
# search walks over, `texts` the long rest. `pieces` holds what an answer is since its row was written whole,
# by the character from which on. Rows with `indexed` 0 are not in the full-text index as they are now.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE conversations (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            title TEXT NOT NULL,
            heading TEXT NOT NULL,
            system_prompt TEXT NOT NULL,
            model TEXT NOT NULL,
            messages INTEGER NOT NULL,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            deleted REAL,
            indexed INTEGER NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX conversations_by_time ON conversations (deleted, updated)",
        """CREATE TABLE turns (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
            parent TEXT NOT NULL,
            shown INTEGER NOT NULL,
            state TEXT NOT NULL,
            model TEXT NOT NULL,
            created REAL NOT NULL,
            indexed INTEGER NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX turns_by_conversation ON turns (conversation)",
        "CREATE INDEX turns_to_index ON turns (indexed) WHERE indexed = 0",
        """CREATE TABLE texts (
            turn INTEGER PRIMARY KEY REFERENCES turns ON DELETE CASCADE,
            question TEXT NOT NULL,
            answer TEXT NOT NULL,
            finish_reason TEXT NOT NULL,
            failure TEXT NOT NULL,
            dropped_messages INTEGER NOT NULL,
            stats TEXT
        )""",
        """CREATE TABLE pieces (
            turn INTEGER NOT NULL REFERENCES turns ON DELETE CASCADE,
            position INTEGER NOT NULL,
            text TEXT NOT NULL,
            PRIMARY KEY (turn, position)
        ) WITHOUT ROWID""",
    ),
)
# Its rows are numbered as turns are; a conversation's title stands under its number with a minus sign.
_INDEX = "CREATE VIRTUAL TABLE search USING fts5(words, tokenize = 'ascii', prefix = '1 2')"
_INDEX_PARTS = frozenset(f"search_{part}" for part in ("data", "idx", "content", "docsize", "config"))
_OWN = ("table", _INDEX)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a file to this program's version. DecdecError when it was made by a newer one.

    Whole or not at all; two programs that start at once do it one after the other.
    """
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number in range(_version(connection), len(MIGRATIONS)):
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


class ForeignError(sqlite3.DatabaseError):
    """The file holds something that this program never puts there, or lacks a part: a table, a trigger."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def check(connection: sqlite3.Connection) -> None:
    """Refuse a file whose tables, indexes, views and triggers are not exactly those of this version.

    Triggers and views are programs, which would run at the next change or list. Raises ForeignError.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as clean:
        for statement in (each for migration in MIGRATIONS for each in migration):
            clean.execute(statement)
        wanted = _parts(clean)
    found = _parts(connection)
    index = {name: found.pop(name) for name in [*found] if name == "search" or name in _INDEX_PARTS}
    odd = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if odd or not {each[0] for each in index.values()} <= {"table"} or index.get("search", _OWN) != _OWN:
        raise ForeignError(f"{(odd or ['search'])[0][:40]!r} in it is not as this program makes it")


def _parts(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Kind and text of everything in a file by its name, but for what SQLite adds by itself."""
    rows = connection.execute("SELECT name, type, sql FROM sqlite_master")
    return {name: (kind, sql) for name, kind, sql in rows if not name.startswith("sqlite_")}


def _version(connection: sqlite3.Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise DecdecError(
            "Conversations are not kept",
            f"their file has format {version}, and this program knows {len(MIGRATIONS)}",
            "a newer decdec-chat opens it",
        )
    return version


def full_text(connection: sqlite3.Connection) -> bool:
    """Whether this SQLite has the full-text module and the file its index, which is made here."""
    if not connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone():
        return False
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'search'").fetchone():
        connection.execute("BEGIN IMMEDIATE")
        try:
            forget_index(connection)
            connection.execute(_INDEX)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    return True


def forget_index(connection: sqlite3.Connection) -> None:
    """Drop the index, however damaged it is, so that every row is indexed again."""
    try:
        connection.execute("DROP TABLE IF EXISTS search")
    except sqlite3.DatabaseError:
        _drop_by_force(connection)
    connection.execute("UPDATE turns SET indexed = 0 WHERE indexed <> 0")
    connection.execute("UPDATE conversations SET indexed = 0 WHERE indexed <> 0")


def _drop_by_force(connection: sqlite3.Connection) -> None:
    """SQLite reads an index before it drops it, and refuses if that fails."""
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("DELETE FROM sqlite_master WHERE name = 'search'")
    connection.execute("PRAGMA writable_schema = RESET")
    for part in _INDEX_PARTS:
        connection.execute(f"DROP TABLE IF EXISTS {part}")
