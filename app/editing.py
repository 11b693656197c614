"""A conversation as a person changes it, without the engine's help. Knows no screen."""

from __future__ import annotations

from app.conversation import Conversation, Turn, TurnState
from app.journal import Journal
from runtime.errors import DecdecError
from runtime.protocol.events import Stats


class Editing:
    """Holds the conversation, tells the journal of every change, and refuses changes under a running answer.

    `stats`: figures of the newest answer. `model`: the one that answers now.
    """

    def __init__(self, conversation: Conversation, journal: Journal) -> None:
        self.conversation, self.journal = conversation, journal
        self.model = ""
        self.stats: Stats | None = None
        self._deleted: list[Turn] = []
        # What the open answer had before it went on.
        self._kept = ""

    @property
    def busy(self) -> bool:
        """Whether an answer is being written or a question waits."""
        raise NotImplementedError

    def require_idle(self) -> None:
        """Raises DecdecError while an answer is being written."""
        if self.busy:
            raise DecdecError("The last answer is still being written", "", "Esc stops it")

    def take_up(self, conversation: Conversation) -> None:
        """Go on with another conversation."""
        self.conversation = conversation
        self.stats, self._deleted, self._kept = None, [], ""

    def adopt(
        self,
        question: str,
        answer: str,
        stats: Stats | None,
        reason: str = "stop",
        instead: Turn | None = None,
    ) -> Turn:
        """Take up a question with an answer that was written outside of the conversation.

        It comes at the end, or as a variant in the place of a turn. `reason`: why the answer ended. Raises
        DecdecError while another is being written.
        """
        self.require_idle()
        place = self.conversation
        turn = place.branch(instead, question, self.model) if instead else place.ask(question, self.model)
        turn.answer, turn.stats, turn.finish_reason, turn.state = answer, stats, reason, TurnState.DONE
        self.stats, self._kept = stats or self.stats, ""
        self.journal.conversation(place)
        self.journal.turn(place, turn)
        return turn

    def delete(self, turn: Turn) -> None:
        """Take out a turn with what came after it; `undo` brings it back."""
        self.require_idle()
        self._deleted = self.conversation.remove(turn)
        self.journal.removed(self.conversation, self._deleted)

    def undo(self) -> bool:
        """Bring back what was deleted last in this conversation; whether there was anything."""
        turns, self._deleted = self._deleted, []
        if turns and not self.busy:
            self.conversation.restore(turns)
            for turn in turns:
                self.journal.turn(self.conversation, turn)
        return bool(turns)

    def show_variant(self, turn: Turn, direction: int) -> bool:
        """Show the variant before or behind a turn; whether there is one."""
        if self.busy or self.conversation.step(turn, direction) is None:
            return False
        self.journal.conversation(self.conversation)
        return True

    def retitle(self, title: str) -> None:
        """Name the conversation."""
        self.conversation.title = title
        self.journal.conversation(self.conversation)

    def tell_first(self, system_prompt: str) -> None:
        """Change what the model is told first; it counts from the next question on."""
        self.conversation.system_prompt = system_prompt
        if self.conversation.turns:
            self.journal.conversation(self.conversation)
