"""What every group of actions may use of the chat screen."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.notifications import SeverityLevel

from app.chat.screens.base import EngineScreen
from app.chat.widgets.prompt import Prompt
from app.chat.widgets.transcript import Transcript
from app.session import ChatSession
from runtime.errors import DecdecError
from runtime.protocol.commands import Command

# How long notes stay.
TOLD_S, WARNED_S = 4.0, 5.0


class ChatActionsBase(EngineScreen):
    """The session, the transcript, and ways to tell the user something."""

    # Notes on screen, and until when.
    _noted: dict[str, float] | None = None

    @property
    def session(self) -> ChatSession:
        """The conversation's state."""
        return self.chat_app.session

    @property
    def transcript(self) -> Transcript:
        """The conversation on screen."""
        return self.query_one(Transcript)

    @property
    def prompt(self) -> Prompt:
        """Where the user types."""
        return self.query_one(Prompt)

    def send(self, command: Command | None) -> None:
        """Queue a command for the engine, if there is one, and show what changed."""
        self.chat_app.send(command)
        self.refresh_facts()

    def attempt(self, intent: Callable[[], Command | None]) -> bool:
        """Send what an intent of the session gives, or tell why it was refused; whether it was accepted."""
        try:
            command = intent()
        except DecdecError as error:
            self.warn(error.sentence)
            return False
        self.send(command)
        return True

    def tell(self, text: str) -> None:
        """A short note."""
        self._note(text, "information", TOLD_S)

    def warn(self, text: str) -> None:
        """A note about something that was not done."""
        self._note(text, "warning", WARNED_S)

    def _note(self, text: str, severity: SeverityLevel, seconds: float) -> None:
        """One that is still on screen is not shown a second time."""
        now = time.monotonic()
        self._noted = {told: end for told, end in (self._noted or {}).items() if end > now}
        if text not in self._noted:
            self._noted[text] = now + seconds
            self.notify(text, severity=severity, timeout=seconds, markup=False)

    def refresh_facts(self) -> None:
        """Draw slider and status again."""
        raise NotImplementedError

    def show_conversation(self) -> None:
        """Draw the session's conversation from its beginning."""
        raise NotImplementedError
