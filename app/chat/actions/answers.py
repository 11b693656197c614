"""Answers: stopping, repeating, changing, copying."""

from __future__ import annotations

from app.chat.actions.base import ChatActionsBase


class AnswerActions(ChatActionsBase):
    """Actions of the group "Answers"."""

    def action_stop(self) -> None:
        """End the answer within one token."""
        self.send(self.session.stop())
        self.transcript.finish()
        self.refresh_facts()

    def action_copy_answer(self) -> None:
        """Copy through the terminal (OSC 52)."""
        if answer := self.session.conversation.last_answer:
            self.app.copy_to_clipboard(answer)
            self.tell(f"Copied {len(answer)} characters.")
