"""Conversations, killed at every boundary: answers, imports, exports, deletions, a damaged file."""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from app.conversation import Conversation, Turn, TurnState
from app.history import History, Recorder, files
from app.session import ChatSession
from runtime import locations
from runtime.protocol.events import Done, Loaded, Token
from tests.faults.kills.points import Operation
from tests.faults.kills.store_points import nothing

WORDS = [f"word{n} " for n in range(12)]


def recorded(history, told):
    session = ChatSession("Be brief.", journal=Recorder(history, told.append))
    session.load("a-model")
    session.push(Loaded("a-model", "low4", "cpu", 2048, 1))
    return session


def say(place):
    """An answer, each piece of which is noted as shown once the journal has it."""
    with closing(History()) as history:
        told: list[str] = []
        session = recorded(history, told)
        session.ask("Say them all.")
        _show(place, "")
        for word in WORDS:
            session.push(Token(word, 1))
            session.journal.drawing(session.conversation, session.conversation.last)
            _show(place, word)
        session.push(Done("generate", {"finish_reason": "stop"}))
        _show(place, ".")
        session.journal.close()
        assert not told, told


def _show(place, text):
    """Beside the folder that is watched."""
    with open(f"{place}.shown", "a") as file:
        file.write(text or "?")


def all_that_was_shown(place):
    """Everything that was on screen is in the file."""
    path = Path(f"{place}.shown")
    shown = path.read_text() if path.exists() else ""
    path.unlink(missing_ok=True)
    if not shown:
        return sound_history()
    with closing(History()) as history:
        entries = history.page().entries
        answer = history.load(entries[0].id).last.answer if entries else None
    if answer is None or not answer.startswith(shown.lstrip("?").rstrip(".")):
        return [f"shown was {shown!r}, kept is {answer!r}"]
    return sound_history()


def sound_history():
    path = locations.history_file()
    if not path.exists():
        return []
    with closing(History()) as history:
        history.page("word1")
    with closing(sqlite3.connect(path)) as connection:
        told = connection.execute("PRAGMA integrity_check").fetchone()[0]
    return [] if told == "ok" else [told]


def said(place):
    path = Path(f"{place}.shown")
    path.unlink(missing_ok=True)
    with closing(History()) as history:
        last = history.load(history.page().entries[0].id).last
        found = history.page('"word10 word11"').total
    wrong = [] if last.answer == "".join(WORDS) and found else [f"kept is {last}, found {found}"]
    return wrong + sound_history()


def conversations(count=3):
    made = []
    for number in range(count):
        turns = [Turn(f"question {number}", "answer", TurnState.DONE, "stop", id=f"t{number}")]
        made.append(Conversation.of(turns, turns[-1].id, id=f"c{number}", title=f"Title {number}"))
    return made


def to_import(place):
    nothing(place)
    files.export_all(conversations(), str(place / "all.json"))


def import_them(place):
    from app.cli.chats import import_

    with closing(History()) as history:
        if history.page().total:
            return
    with contextlib.redirect_stdout(io.StringIO()):
        import_.callback(str(place / "all.json"))


def all_or_none(place):
    with closing(History()) as history:
        page = history.page()
        turns = [history.load(entry.id).all_turns for entry in page.entries]
    wrong = [] if page.total in (0, 3) and all(map(len, turns)) else [f"{page.total} were imported"]
    return wrong + sound_history()


def imported(place):
    with closing(History()) as history:
        total = history.page().total
        # The index is made when somebody searches.
        found = history.page('"question 2"').total
    return [] if (total, found) == (3, 1) else [f"{total} are there, {found} found"]


def to_export(place):
    nothing(place)
    with closing(History()) as history:
        for each in conversations():
            history.save(each)


def export_them(place):
    path = place / "out" / "all.json"
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        return
    with closing(History()) as history:
        files.export_all([history.load(f"c{number}") for number in range(3)], str(path))


def whole_export(place):
    path = place / "out" / "all.json"
    if not path.exists():
        return []
    return [] if len(files.read(str(path))) == 3 else ["half was exported"]


def exported(place):
    # What a kill left beside a whole file goes with the next export of that name.
    with closing(History()) as history:
        files.export_all([history.load("c0")], str(place / "out" / "all.json")).unlink()
    left = sorted(os.listdir(place / "out"))
    return whole_export(place) + ([] if left == ["all.json"] else [f"left are {left}"])


def delete_for_good(place):
    with closing(History()) as history:
        if history.load("c1"):
            history.delete("c1")
        history.purge(older_than_s=-1)


def others_stay(place):
    with closing(History()) as history:
        kept = {f"c{n}" for n in range(3) if history.load(f"c{n}")}
        whole = all(history.load(each).all_turns for each in kept)
    return ([] if {"c0", "c2"} <= kept and whole else [f"kept are {kept}"]) + sound_history()


def one_is_gone(place):
    with closing(History()) as history:
        gone = history.load("c1") is None
    return others_stay(place) + ([] if gone else ["it is not deleted"])


def damaged_history(place):
    nothing(place)
    path = locations.history_file()
    path.write_bytes(b"no database at all" * 100)


def begin_anew(place):
    history, _ = History.open()
    with closing(history):
        for each in conversations(1):
            history.save(each)


def old_file_is_kept(place):
    content = [p.read_bytes() for p in (place / "home").glob("history*") if p.suffix in (".bad", ".db")]
    kept = any(each.startswith(b"no database at all") for each in content)
    return [] if kept else ["the damaged file is lost"]


def begun_anew(place):
    with closing(History()) as history:
        begun = history.load("c0") is not None
    return old_file_is_kept(place) + ([] if begun else ["nothing is kept"])


OPERATIONS = (
    Operation("an answer", nothing, say, all_that_was_shown, said),
    Operation("import of chats", to_import, import_them, all_or_none, imported),
    Operation("export of chats", to_export, export_them, whole_export, exported),
    Operation("deleting for good", to_export, delete_for_good, others_stay, one_is_gone),
    Operation("a damaged history", damaged_history, begin_anew, old_file_is_kept, begun_anew),
)
