"""System prompt, settings, themes, help, the end."""

from __future__ import annotations

from app.chat.actions.base import ChatActionsBase
from app.chat.screens.help import HelpScreen
from app.chat.screens.system_prompt import SystemPromptScreen


class ProgramActions(ChatActionsBase):
    """Actions of the group "Program"."""

    def action_system_prompt(self, text: str = "") -> None:
        """Edit the system prompt, or set it; it counts from the next question on."""
        if text:
            self._keep_system_prompt(text)
            return
        screen = SystemPromptScreen(self.session.conversation.system_prompt)
        self.app.push_screen(screen, self._keep_system_prompt)

    def _keep_system_prompt(self, text: str | None) -> None:
        if text is not None:
            self.session.tell_first(text)
            self.chat_app.remember(system_prompt=text)

    def action_keys(self) -> None:
        """Show every key, command and word."""
        self.app.push_screen(HelpScreen())

    async def action_quit(self) -> None:
        """Leave."""
        await self.app.action_quit()
