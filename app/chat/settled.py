"""The part of the app that follows the settings: what is remembered, themes, keys, how answers are drawn."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from textual.theme import Theme
from textual.timer import Timer

from app import keymap, settings_file
from app.chat import themes
from app.chat.terminal import TerminalApp
from app.hints import Hinting
from app.keymap import Keymap
from app.session import ChatSession
from app.settings import Settings
from app.slider.position import LOSSLESS
from runtime.protocol.events import Event

# Changes that follow each other within this time are written together.
KEEP_DELAY_S = 0.3
HINT_S = 12.0


class SettledApp(TerminalApp):
    """Holds the settings. What is changed here counts at once where it can, and is written a moment later."""

    session: ChatSession

    def __init__(self) -> None:
        super().__init__()
        self.settings, problem = settings_file.load()
        self.keymap, problems = keymap.checked(self.settings.keys)
        self._problems = [*filter(None, [problem]), *problems]
        self._hinting = Hinting(self.settings.hints)
        self._kept = self.settings
        self._keeping: Timer | None = None

    def begin_session(self, given_loading: Mapping[str, Any]) -> ChatSession:
        """A session as the settings say; `given_loading` goes before them in this run."""
        loading = dataclasses.replace(self.settings.loading, **given_loading)
        session = ChatSession(self.settings.system_prompt, self.settings.slowdown_pct, loading)
        if self.settings.slowdown_lossless:
            session.slider.want(LOSSLESS)
        session.sampling, session.max_tokens = self.settings.sampling, self.settings.max_tokens
        return session

    def settle(self) -> None:
        """Take up theme and keys, once the app runs, and tell what is wrong with the settings."""
        for theme in themes.load():
            self.register_theme(theme)
        if self.settings.theme in self.available_themes:
            self.theme = self.settings.theme
        else:
            self.theme = Settings().theme
            self._problems.append(f"There is no theme {self.settings.theme!r}. F10 shows those there are.")
        self.theme_changed_signal.subscribe(self, self._theme_changed)
        self.set_keymap(self.keymap.own)
        for problem in self._problems:
            self.notify(problem, severity="warning", timeout=10, markup=False)

    def remember(self, **changes: Any) -> None:
        """Change settings, follow them, and keep them."""
        before = self.settings
        self.settings = msgspec.structs.replace(before, **changes)
        if self.settings == before:
            return
        self._follow(before)
        if self._keeping is None:
            self._keeping = self.set_timer(KEEP_DELAY_S, self.keep_settings)

    def keep_settings(self) -> None:
        """Write what changed now."""
        if self._keeping is not None:
            self._keeping.stop()
            self._keeping = None
        before, self._kept = self._kept, self.settings
        if before != self._kept and (problem := settings_file.keep(before, self._kept)):
            self.notify(problem, severity="warning", markup=False)

    def hint(self, event: Event) -> None:
        """Show what is due with an event, if hints are wanted."""
        if not self.settings.show_hints:
            return
        if hint := self._hinting.push(event, self.session, time.monotonic()):
            self.remember(hints=(*self.settings.hints, hint.name))
            self.notify(hint.words(self.keymap), title="Hint", timeout=HINT_S, markup=False)

    def forget_hints(self) -> None:
        """Let every hint come again."""
        self._hinting = Hinting()
        self.remember(hints=())

    def _follow(self, before: Settings) -> None:
        now, session = self.settings, self.session
        session.sampling, session.max_tokens = now.sampling, now.max_tokens
        were, are = dataclasses.asdict(before.loading), dataclasses.asdict(now.loading)
        changed = {name: value for name, value in are.items() if value != were[name]}
        session.how_to_load = dataclasses.replace(session.how_to_load, **changed)
        if now.keys != before.keys:
            self.keymap = Keymap(now.keys)
            self.set_keymap(now.keys)
        if now.theme != self.theme and now.theme in self.available_themes:
            self.theme = now.theme

    def _theme_changed(self, theme: Theme) -> None:
        self.remember(theme=theme.name)
