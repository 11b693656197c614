"""What the history's screen needs of whoever opened it."""

from __future__ import annotations

from typing import Protocol


class Desk(Protocol):
    """What happens to a conversation that was chosen. Nothing here raises; failures are told."""

    def open_chat(self, id: str) -> bool:
        """Go on with it; whether it was there."""

    def rename_chat(self, id: str, title: str) -> None:
        """Give it a title."""

    def delete_chat(self, id: str, title: str) -> None:
        """Take it out of the list."""

    def undelete_chat(self) -> str:
        """Bring back what was deleted last; its id, empty where there was nothing."""

    def export_chat(self, id: str) -> None:
        """Ask for a file and write it there."""

    def action_new_chat(self) -> None:
        """Begin another one."""
