"""System prompt, settings, themes, help, the end."""

from __future__ import annotations

from app.chat import themes
from app.chat.actions.base import ChatActionsBase
from app.chat.screens.help import HelpScreen
from app.chat.screens.settings import SettingsScreen
from app.chat.screens.system_prompt import SystemPromptScreen
from app.system_prompts import PromptDrafts


class ProgramActions(ChatActionsBase):
    """Actions of the group "Program"."""

    def action_system_prompt(self, text: str = "") -> None:
        """Edit the system prompt, or set it; it counts from the next question on."""
        if text:
            self._tell_first(text)
            self.tell("The model is told this first, from the next question on.")
            return
        drafts = PromptDrafts(self.session.conversation.system_prompt, self.chat_app.settings.system_prompts)

        def left(chosen: str | None) -> None:
            self.chat_app.remember(system_prompts=drafts.library)
            if chosen is not None:
                self._tell_first(chosen)

        self.app.push_screen(SystemPromptScreen(drafts), left)

    def _tell_first(self, text: str) -> None:
        self.session.tell_first(text)
        self.chat_app.remember(system_prompt=text)

    def action_settings(self) -> None:
        """Everything that can be set."""
        self.app.push_screen(SettingsScreen())

    def action_theme(self, name: str = "") -> None:
        """The next theme, or the one that is named."""
        available = self.app.available_themes
        theme = themes.meant(name, available) if name else themes.following(self.app.theme, available)
        if not theme:
            self.warn(f"No one theme is meant by {name}. There are {', '.join(themes.ordered(available))}.")
            return
        self.app.theme = theme
        colours = " NO_COLOR is set, so it shows no colours." if self.app.no_color else ""
        self.tell(f"Theme {theme}.{colours}")

    def action_keys(self) -> None:
        """Show every key, command and word."""
        self.app.push_screen(HelpScreen(self.chat_app.keymap))

    async def action_quit(self) -> None:
        """Leave."""
        await self.app.action_quit()
