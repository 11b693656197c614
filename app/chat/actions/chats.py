"""Conversations: a new one, finding old ones, titles, files."""

from __future__ import annotations

from app.chat.actions.base import ChatActionsBase


class ChatActions(ChatActionsBase):
    """Actions of the group "Conversations"."""

    def action_new_chat(self) -> None:
        """Start over."""
        self.send(self.session.new_chat())
        self.show_conversation()
        self.prompt.focus()
