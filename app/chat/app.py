"""The application: owns session, settings and the link to the engine, and decides which screen is up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import TextArea

from app import collector
from app.actions import ACTIONS
from app.chat.beside import BesideApp
from app.chat.pausing import PausingApp
from app.chat.screens.base import EngineScreen
from app.chat.screens.chat import ChatScreen
from app.chat.screens.comparison import ComparisonScreen
from app.chat.screens.wizard import WizardScreen
from app.clipboard import copied
from app.history import History, Recorder
from app.link import EngineClient, EngineLink
from app.models import first_ready
from app.session import Phase
from app.setup import Setup, Step
from runtime import store
from runtime.errors import DecdecError
from runtime.protocol.events import Event, Loaded, Ready
from runtime.sources import catalogue

STYLES = Path(__file__).parent / "styles"
# A second Ctrl+C within this time quits.
QUIT_WINDOW_S = 2.0


class ChatApp(BesideApp, PausingApp):
    """`decdec-chat` in a terminal."""

    TITLE = "decdec-chat"
    CSS_PATH = sorted(STYLES.glob("*.tcss"))
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "Stop, twice: quit", show=False, priority=True),
        Binding("ctrl+d", "end_of_input", "Quit", show=False, priority=True),
        Binding("ctrl+q", "quit", "Quit", key_display="^q", priority=True, id="quit"),
    ]

    def __init__(
        self,
        given_loading: Mapping[str, Any] | None = None,
        client: EngineClient | None = None,
        model: str = "",
    ) -> None:
        """`given_loading`: fields of a `Loading` that go before the settings, for this run alone.

        `client`: a server that answers in the local engine's place, with its `model` of this name; an empty
        name leaves the choice to it.
        """
        super().__init__()
        self.session = self.begin_session(given_loading or {})
        self.history, _ = History.open()
        self.session.journal = self._recorder = Recorder(self.history, self._not_kept)
        self.link = EngineLink(self._on_engine, client)
        self.local = client is None
        self._first_model = model
        self.catalogue = catalogue.load()
        self._interrupted_at = float("-inf")

    # Start and end

    def on_mount(self) -> None:
        """Straight to the chat when a model is there, else to the wizard."""
        self.settle()
        self.push_screen(ChatScreen())
        model = first_ready(self.settings.model, self.ready_models) if self.local else self._first_model
        if model or not self.local:
            self._load(model)
        else:
            self.open_setup()
        self.run_worker(self.link.run(), name="engine", group="engine")
        if self.history.problem:
            self._not_kept(self.history.problem)
        self.tell_unfinished()
        if not self.is_headless:
            self.call_after_refresh(collector.spare_the_program)

    async def on_unmount(self) -> None:
        """No worker outlives the app, and no change is lost."""
        self.keep_settings()
        await asyncio.gather(self.link.close(), self.background.close())
        self._recorder.close()

    def _not_kept(self, sentence: str) -> None:
        self.notify(sentence, severity="warning", timeout=10, markup=False)

    @property
    def ready_models(self) -> list[str]:
        """Names of the prepared models; empty where the store cannot be read, which is told."""
        try:
            return [record.name for record in store.models()]
        except DecdecError as error:
            self.notify(error.sentence, severity="error", timeout=10, markup=False)
            return []

    # Engine

    def restart_engine(self) -> None:
        """Start the engine's process again if it is not running."""
        if self.session.phase is not Phase.BROKEN:
            return
        if self.link.alive:
            self._load(self.session.model)
        else:
            self.run_worker(self.link.restart(), group="restart")

    def _on_engine(self, event: Event) -> None:
        if not self.is_running:
            return
        self.session.push(event)
        if isinstance(event, Ready) and self.session.phase is Phase.BROKEN and self.session.model:
            self._load(self.session.model)
        if isinstance(event, Loaded):
            self.send(self.session.slowdown() if self.session.slider.enabled else None)
            self.send(self.session.waiting())
        for screen in self.screen_stack:
            if isinstance(screen, EngineScreen) and screen.is_mounted:
                screen.engine_event(event)
        if isinstance(event, Loaded):
            self._offer_tuning(event)
        if isinstance(self.screen, ChatScreen):
            self.hint(event)

    def load_model(self, name: str) -> None:
        """Chat with a prepared model, at the next start too; an engine that was given up starts again."""
        self.remember(model=name)
        if self.session.phase is Phase.BROKEN and not self.link.alive:
            self.session.model = name
            self.restart_engine()
        else:
            self._load(name)

    def _load(self, model: str) -> None:
        self.send(self.load_command(model))

    # Wizard

    def open_setup(self) -> None:
        """The wizard from its first step, or at the choice of a model where one is there already."""
        if self._needs_local_engine():
            return
        self.push_screen(WizardScreen(Setup(Step.MODEL if self.ready_models else Step.HARDWARE)))

    def open_tuning(self, model: str, reason: str = "") -> None:
        """The wizard at its tuning step, which waits where a reason says why it is offered."""
        if self._needs_local_engine():
            return
        self.push_screen(WizardScreen(Setup(Step.TUNE, model, reason)))

    def _needs_local_engine(self) -> bool:
        """Whether a server answers, so that there is nothing to set up; told then."""
        if not self.local:
            words = "A server answers. Start decdec-chat without --server for this."
            self.notify(words, severity="warning", markup=False)
        return not self.local

    def close_setup(self) -> None:
        """Leave the wizard; the chat keeps the model it has."""
        if isinstance(self.screen, WizardScreen):
            self.pop_screen()
            self._refresh_chat()

    def finish_setup(self, setup: Setup) -> None:
        """A model is prepared: chat with it, tuned or not."""
        declined = set(self.settings.untuned) - {setup.model}
        if not setup.tuned:
            declined.add(setup.model)
        self.remember(model=setup.model, untuned=tuple(sorted(declined)))
        if setup.tuned or self.session.loaded is None or self.session.model != setup.model:
            self._load(setup.model)
        self.close_setup()

    def _offer_tuning(self, event: Loaded) -> None:
        """An interrupted set-up goes on at its tuning, unless that was declined."""
        untuned = self.local and event.untuned_reason and event.model not in self.settings.untuned
        free = isinstance(self.screen, ChatScreen) and not self.session.busy and not self.screen.prompt.text
        if untuned and free:
            self.open_tuning(event.model, event.untuned_reason)

    def _refresh_chat(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, ChatScreen):
                screen.refresh_session()

    # Keys that hold everywhere

    async def action_interrupt(self) -> None:
        """Ctrl+C: copy a selection, else stop an answer, else hint, and quit the second time."""
        if self._copy_selection():
            return
        if self.session.busy and (writing := self._writing_screen()):
            writing.action_stop()
            return
        now = time.monotonic()
        if now - self._interrupted_at < QUIT_WINDOW_S:
            await self.action_quit()
        self._interrupted_at = now
        self.notify("Ctrl+C again quits.", timeout=QUIT_WINDOW_S)

    def _writing_screen(self) -> ChatScreen | ComparisonScreen | None:
        """What shows the running answer, also behind a dialog."""
        shown = (
            each for each in reversed(self.screen_stack) if isinstance(each, ChatScreen | ComparisonScreen)
        )
        return next(shown, None)

    def _copy_selection(self) -> bool:
        focused = self.focused
        text = focused.selected_text if isinstance(focused, TextArea) else ""
        text = text or self.screen.get_selected_text() or ""
        if text:
            self.copy_to_clipboard(text)
            self.notify(copied(text), markup=False)
            self.screen.clear_selection()
        return bool(text)

    async def action_end_of_input(self) -> None:
        """Ctrl+D: quit, or delete to the right while something is typed."""
        focused = self.focused
        if isinstance(focused, TextArea) and focused.text:
            focused.action_delete_right()
        else:
            await self.action_quit()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: our actions, then Textual's own (themes, keys, screenshot)."""
        if isinstance(screen, ChatScreen):
            for action in ACTIONS:
                yield SystemCommand(action.title, action.help, getattr(screen, f"action_{action.name}"))
        yield from (
            c for c in super().get_system_commands(screen) if c.title not in ("Quit", "Keys", "Theme")
        )
