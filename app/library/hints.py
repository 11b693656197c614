"""What Enter would do now, in one line; for a failed pull, the whole story."""

from __future__ import annotations

from app.library.pulls import Pull, PullState
from app.library.rows import LeftoverRow, PullRow, ReadyRow, Row
from app.library.typed import looks_like_path
from app.text import one_line


def hint(row: Row | None, words: str) -> str:
    """For the marked row, or for an empty list that was filtered by `words`."""
    match row:
        case None if looks_like_path(words):
            return f"Enter imports {one_line(words)}."
        case None:
            return f"Nothing here is called “{one_line(words)}”. Enter searches the hub."
        case ReadyRow():
            return f"{row.name} is in use." if row.loaded else f"Enter chats with {row.name}."
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
        return f"Enter pauses {pull.name}."
    return f"Enter lets {pull.name} go on."
