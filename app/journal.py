"""What a conversation tells about its changes, so that they can be kept."""

from __future__ import annotations

from collections.abc import Sequence

from app.conversation import Conversation, Turn


class Journal:
    """Keeps nothing. Whoever keeps conversations overrides all of it; none of it may raise."""

    def conversation(self, conversation: Conversation) -> None:
        """Its title, system prompt or shown path changed, or it just got its first turn."""

    def turn(self, conversation: Conversation, turn: Turn) -> None:
        """A turn is new, or has more text, or ended."""

    def drawing(self, conversation: Conversation, turn: Turn) -> None:
        """All that a turn has so far is about to be on screen."""

    def removed(self, conversation: Conversation, turns: Sequence[Turn]) -> None:
        """These turns were taken out."""
