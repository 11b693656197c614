"""Lines around the list of models: what there is, and what Enter would do now."""

from __future__ import annotations

import shutil

from app import format
from app.library.pulls import Pull, PullState
from app.library.rows import LeftoverRow, PullRow, ReadyRow, Row, Shelf
from app.library.typed import looks_like_path
from app.text import one_line
from runtime import locations
from runtime.store.oserrors import nearest_existing


def heading(shelf: Shelf) -> str:
    """How many models there are, and the room they take and leave."""
    count = len(shelf.records)
    here = f"{count} here, {format.size(shelf.bytes)}" if count else "none prepared yet"
    try:
        free = shutil.disk_usage(nearest_existing(locations.models())).free
    except OSError:
        return f"Models   {here}"
    return f"Models   {here} · {format.size(free)} free on disk"


def hint(row: Row | None, words: str) -> str:
    """What Enter does with the marked row, or with `words` that filtered everything out.

    For a failed pull the whole story.
    """
    match row:
        case None if looks_like_path(words):
            return f"Enter imports {one_line(words)}."
        case None:
            return f"Nothing here is called “{one_line(words)}”. Enter searches the hub."
        case ReadyRow():
            return (
                f"{row.name} is in use, so it cannot be deleted."
                if row.loaded
                else f"Enter chats with {row.name}."
            )
        case PullRow():
            return _of_pull(row.pull)
        case LeftoverRow() if row.source:
            return f"{row.name} is {row.leftover.state}. Enter makes it whole, Del deletes it."
        case LeftoverRow():
            return f"{row.name} is {row.leftover.state}, and it is not known from what. Del deletes it."
    return f"Enter fetches {one_line(row.label)}."


def _of_pull(pull: Pull) -> str:
    if pull.problem:
        return f"{one_line(pull.problem)} Enter tries again."
    if pull.state in (PullState.RUNNING, PullState.WAITING):
        newest = pull.newest
        # What it waits for, or the files that come: nothing else tells why a download stands still.
        note = one_line(newest.note) if newest and newest.step == "download" else ""
        return f"Enter pauses {pull.name} · {note}" if note else f"Enter pauses {pull.name}."
    return f"Enter lets {pull.name} go on."
