"""A person's own files: settings.toml, the history's database, conversations to import.

The first line of an input says which of them the rest is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

from app import settings_file
from app.conversation import Conversation
from app.history import History, document, markdown
from app.keymap import Keymap
from app.settings import Settings
from app.system_prompts import PromptDrafts
from runtime import locations
from runtime.errors import DecdecError
from tests.fuzz.mutations import mutate_bytes, mutate_json_bytes

NAME = "settings"

_TOML = '''# A comment.
model = "small"
slowdown_pct = 7.5
untuned = ["a", "b"]
hints = ["slider"]
device = "cpu"
hub_endpoint = "https://hub.example"
cache_folder = "/models"
base = "awq4"
[sampling]
temperature = 0.7
seed = 3
[system_prompts]
Brief = """Be
brief."""
[keys]
regenerate = "f11"
slower = "ctrl+left,alt+x"
'''

# Statements that somebody may have put into the database.
_SPOILT = (
    "CREATE TRIGGER t AFTER INSERT ON turns BEGIN DELETE FROM conversations; END",
    "CREATE TRIGGER t AFTER INSERT ON turns BEGIN INSERT INTO turns SELECT NULL, hex(randomblob(9)),"
    " conversation, parent, shown, state, model, created, indexed FROM turns; END",
    "ALTER TABLE conversations RENAME TO c; CREATE VIEW conversations AS WITH RECURSIVE n(x) AS"
    " (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x AS number, x AS id, '' AS title, '' AS heading,"
    " '' AS system_prompt, '' AS model, 1 AS messages, 0 AS created, x AS updated, NULL AS deleted,"
    " 1 AS indexed FROM n",
    "ALTER TABLE turns RENAME TO t; CREATE VIEW turns AS SELECT * FROM t",
    "DROP TABLE texts",
    "DROP TABLE turns; CREATE TABLE turns (a)",
    "ALTER TABLE texts RENAME TO t; CREATE VIEW texts AS SELECT turn, zeroblob(900000000) AS question,"
    " hex(zeroblob(400000000)) AS answer, finish_reason, failure, dropped_messages, stats FROM t",
    "UPDATE turns SET parent = id",
    "UPDATE turns SET state = 'x', created = 'x', shown = 9, model = x'ff'",
    "UPDATE texts SET stats = '{', question = x'ff00'",
    "UPDATE texts SET stats = '[[[[', dropped_messages = -1",
    "UPDATE conversations SET id = '', updated = 1e300, created = -1e300, messages = 'x'",
    "UPDATE conversations SET title = char(27) || ']0;x' || char(7), heading = char(27)",
    "INSERT INTO pieces SELECT number, 5, 'x' FROM turns",
    "DROP TABLE search; CREATE TABLE search (words)",
    "PRAGMA user_version = 99",
    "PRAGMA user_version = 0",
    "PRAGMA user_version = -1",
    "CREATE TABLE extra (x CHECK (x > randomblob(1000000000)))",
    "CREATE INDEX i ON turns (length(model))",
)


def seeds(folder: Path) -> list[bytes]:
    """Files as the program writes them, and such as it never would."""
    kept = _database(folder / "kept")
    spoilt = [_database(folder / f"spoilt-{at}", line) for at, line in enumerate(_SPOILT)]
    large = bytearray(kept)
    large[28:32] = (10 * 2**30 // 4096).to_bytes(4, "big")
    databases = [kept, bytes(large), kept[:5000], kept[:100], b"", b"SQLite format 3\0" + b"\xff" * 5000]
    tomls = [
        _TOML,
        "x = " + "[" * 50_000,
        "a." * 20_000 + "b = 1",
        "[" + "a." * 10_000 + "b]",
        "\ufeff" + _TOML,
    ]
    tomls += [
        "seed = " + "9" * 60_000,
        "x = 1979-05-27T07:32:00Z",
        "keys = 1\nsampling = 2",
        "a = '''" + "x" * 60_000,
    ]
    tomls += ["".join(f"k{at} = {{a = {at}}}\n" for at in range(3000)), "keys = {f1 = 'f11'}\r\n" * 2]
    exported = document.encode([_talk()])
    jsons = [exported, b'{"conversations":' * 20_000, exported.replace(b"done", b"\\u001b[31m")]
    parts = (("toml", [text.encode() for text in tomls]), ("db", [*databases, *spoilt]), ("json", jsons))
    return [kind.encode() + b"\n" + data for kind, each in parts for data in each]


def check(data: bytes, folder: Path) -> None:
    """Start with the file, look at everything in it, change something, and start again."""
    os.environ["DECDEC_HOME"] = str(folder)
    kind, _, body = data.partition(b"\n")
    _KINDS.get(kind, _toml)(body)


def mutate(data: bytes, random: Random) -> bytes:
    """The rest of the input changed in the way of its kind."""
    kind, _, body = data.partition(b"\n")
    change = mutate_json_bytes if kind == b"json" else mutate_bytes
    return kind + b"\n" + change(body, random)


def _toml(body: bytes) -> None:
    path = locations.settings_file()
    path.write_bytes(body)
    found, problem = settings_file.load()
    assert isinstance(problem, str)
    Keymap(found.keys)
    _ = PromptDrafts(found.system_prompt, found.system_prompts).names
    refused = settings_file.keep(found, _changed(found))
    again, problem = settings_file.load()
    assert refused or problem or again.slowdown_pct == 2.5, "a change was lost and nothing was said"


def _changed(found: Settings) -> Settings:
    import msgspec

    prompts = {**found.system_prompts, "New": "One\nTwo"}
    return msgspec.structs.replace(found, slowdown_pct=2.5, system_prompts=prompts, untuned=("a", "c"))


def _db(body: bytes) -> None:
    path = locations.history_file()
    path.write_bytes(body)
    for _ in range(2):
        history, _ = History.open()
        try:
            _use(history)
        finally:
            history.close()


def _use(history: History) -> None:
    """What the chat does at a start, in its list, and after an answer; each may be refused by itself."""
    for act in (_list, lambda h: h.save(_talk()), lambda h: h.index(), _find, lambda h: h.undelete(), _list):
        try:
            act(history)
        except DecdecError:
            continue


def _list(history: History) -> None:
    for entry in history.page("", 20).entries:
        if found := history.load(entry.id):
            markdown.document(found)
            document.encode([found])


def _find(history: History) -> None:
    history.page("why sky", 20)
    history.purge()


def _json(body: bytes) -> None:
    try:
        found = document.decode(body)
    except ValueError:
        return
    history = History()
    for each in found:
        history.add(each)
        markdown.document(each)
    history.close()


_KINDS: dict[bytes, Callable[[bytes], None]] = {b"toml": _toml, b"db": _db, b"json": _json}


def _talk() -> Conversation:
    conversation = Conversation("Be brief.", "The sky")
    for question in ("Why is the sky blue?", "And red?"):
        turn = conversation.ask(question, "small")
        turn.answer = "Because of **scattering**.\n\n```py\n1\n```"
    return conversation


def _database(folder: Path, spoiling: str = "") -> bytes:
    folder.mkdir()
    os.environ["DECDEC_HOME"] = str(folder)
    history = History()
    history.save(_talk())
    history.index()
    history.close()
    path = locations.history_file()
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA wal_checkpoint; PRAGMA journal_mode = DELETE; {spoiling};")
    connection.commit()
    connection.close()
    return path.read_bytes()
