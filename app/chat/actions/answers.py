"""Answers: stopping, repeating, changing, copying. They mean the selected turn, else the last one."""

from __future__ import annotations

from textual import on

from app.actions import by_name
from app.chat.actions.base import ChatActionsBase
from app.chat.screens.code_picker import CodePicker
from app.chat.widgets.ending import EndingView
from app.chat.widgets.prompt import Prompt
from app.clipboard import copied
from app.code_blocks import code_blocks
from app.conversation import Turn
from app.thinking import visible


class AnswerActions(ChatActionsBase):
    """Actions of the group "Answers"."""

    _pointed: Turn | None = None
    _edited: Turn | None = None

    def turn(self) -> Turn | None:
        """What an action is about."""
        return self._pointed or self.transcript.selected or self.session.conversation.last

    @on(EndingView.ToolUsed)
    def _tool_used(self, event: EndingView.ToolUsed) -> None:
        event.stop()
        self._pointed = event.turn
        try:
            getattr(self, f"action_{event.action}")()
        finally:
            self._pointed = None

    def action_stop(self) -> None:
        """End the answer within one token."""
        self.send(self.session.stop())
        self.transcript.finish()
        self.refresh_facts()

    def action_regenerate(self) -> None:
        """Answer again; the answer there is stays as a variant."""
        if turn := self.turn():
            self._rewrite(turn, turn.question)

    def action_edit(self) -> None:
        """Bring a question back into the prompt; sent, it is asked in its old place."""
        if turn := self.turn():
            self._edited = turn
            self.prompt.begin_edit(turn.question)

    @on(Prompt.EditEnded)
    def _edit_ended(self) -> None:
        self._edited = None

    def ask(self, text: str) -> bool:
        """Ask a question at the end, or in the place of the edited one; whether it was accepted."""
        if self._edited is not None:
            return self._rewrite(self._edited, text)
        if not self.attempt(lambda: self.session.ask(text)):
            return False
        assert self.session.conversation.last is not None
        self.transcript.add(self.session.conversation.last)
        return True

    def _rewrite(self, turn: Turn, question: str) -> bool:
        accepted = self.attempt(lambda: self.session.edit(turn, question))
        if accepted:
            self.show_conversation()
            self.prompt.focus()
        return accepted

    def action_go_on(self) -> None:
        """Let the last answer go on where it was cut."""
        if self.attempt(self.session.go_on):
            self.transcript.reopen()

    def action_copy_answer(self) -> None:
        """Copy an answer without its thinking."""
        turn = self.turn()
        if turn and turn.answer:
            self._copy(visible(turn.answer))

    def action_copy_code(self) -> None:
        """Copy a code block; of several one is chosen."""
        turn = self.turn()
        blocks = code_blocks(visible(turn.answer)) if turn else []
        if not blocks:
            self.warn("There is no code block in this answer.")
        elif len(blocks) == 1:
            self._copy(blocks[0].text)
        else:
            self.app.push_screen(CodePicker(blocks), self._copy)

    def _copy(self, text: str | None) -> None:
        if text is not None:
            self.app.copy_to_clipboard(text)
            self.tell(copied(text))

    def action_think(self) -> None:
        """Unfold or fold what the model thought."""
        turn = self.turn()
        if turn is None or not self.transcript.toggle_thought(turn):
            self.warn("There is no thinking in this answer.")

    def action_older(self) -> None:
        """The variant before."""
        self._step(-1)

    def action_newer(self) -> None:
        """The variant behind."""
        self._step(1)

    def _step(self, direction: int) -> None:
        turn, selected = self.turn(), self.transcript.selected
        if turn is None or not self.session.show_variant(turn, direction):
            self.warn("There is no other variant there.")
            return
        self.show_conversation()
        if selected and (shown := self.session.conversation.shown_variant(turn)):
            self.transcript.select_turn(shown)

    def action_delete(self) -> None:
        """Take out a question with its answer and all that followed."""
        if (turn := self.turn()) is None:
            return
        before = len(self.session.conversation.all_turns)
        accepted = self.attempt(lambda: self.session.delete(turn))
        if accepted:
            self.show_conversation()
            self.prompt.focus()
            self.tell(self._deleted_told(before - len(self.session.conversation.all_turns)))

    def _deleted_told(self, count: int) -> str:
        undo = by_name("undo")
        keys = " or ".join(filter(None, (self.chat_app.keymap.label(undo), undo.slash)))
        if count == 1:
            return f"Deleted 1 question with its answer. {keys} brings it back."
        return f"Deleted {count} questions with their answers. {keys} brings them back."

    def action_undo(self) -> None:
        """Bring back what was deleted last."""
        if not self.attempt(self.session.require_idle):
            return
        if self.session.undo():
            self.show_conversation()
            self.tell("Brought back.")
        else:
            self.warn("Nothing was deleted in this conversation.")
