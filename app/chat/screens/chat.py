"""The chat: transcript, slider, prompt, status."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Static

from app.actions import ACTIONS, Command, by_slash
from app.chat.actions import AnswerActions, ChatActions, ProgramActions, SetupActions, SlideActions
from app.chat.screens.scrolling import SCROLL_BINDINGS, ScrollActions
from app.chat.widgets.key_line import KeyLine
from app.chat.widgets.prompt import Prompt
from app.chat.widgets.slider import QualitySlider
from app.chat.widgets.status_line import StatusLine
from app.chat.widgets.tiny_notice import TinyNotice
from app.chat.widgets.transcript import Transcript
from app.conversation import Turn
from app.greeting import greeting
from app.text import one_line
from runtime.errors import DecdecError
from runtime.protocol.events import Done, Event, Failed, Loaded, Token

# Moves of a dragged thumb within this time become one command.
SLIDE_DELAY_S = 0.05
MORE_BELOW = "▼ more below — Ctrl+End follows"


class ChatScreen(AnswerActions, ChatActions, SlideActions, SetupActions, ProgramActions, ScrollActions):
    """Puts the parts together, routes events to them and commands to their actions."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(a.keys, a.name, a.title, show=a.in_footer, priority=True, id=a.name)
            for a in ACTIONS
            if a.name != "quit"
        ),
        *SCROLL_BINDINGS,
    ]
    AUTO_FOCUS = "#prompt"

    def __init__(self) -> None:
        super().__init__()
        self._slide_timer: Timer | None = None
        self._was_busy = False

    def compose(self) -> ComposeResult:
        """From the conversation down to the keys."""
        session = self.chat_app.session
        with Vertical(id="main"):
            yield Transcript(self._keep, id="transcript")
            yield Static(MORE_BELOW, id="more-below")
            yield QualitySlider(session.slider, id="slider")
            yield Prompt(id="prompt")
            yield StatusLine(session, id="status")
            yield KeyLine(self.chat_app.keymap, id="keys")
        yield TinyNotice()

    def on_mount(self) -> None:
        """Show the conversation there is."""
        self.show_conversation()
        self.app.theme_changed_signal.subscribe(self, lambda _: self.transcript.restyle())

    def on_screen_resume(self) -> None:
        """Settings may have changed behind another screen."""
        self.refresh_facts()

    # Events

    def engine_event(self, event: Event) -> None:
        """Bring what an event changed onto the screen; text is drawn by the transcript at its own pace."""
        if isinstance(event, Token):
            return
        if isinstance(event, Done | Failed):
            self.transcript.finish()
        if isinstance(event, Failed) and event.job in ("load", "worker"):
            self.notify(self.chat_app.session.problem, severity="error", timeout=10, markup=False)
        if isinstance(event, Failed) and event.job == "set_slowdown" and not self.session.slider.lent:
            self.warn(DecdecError(event.what, event.why, event.fix).sentence)
        if isinstance(event, Loaded) and event.note and self.chat_app.session.conversation.turns:
            self.notify(one_line(event.note), timeout=10, markup=False)
        if isinstance(event, Loaded | Failed):
            self.transcript.greet(greeting(self.chat_app.session))
        self.refresh_facts()

    def _keep(self, turn: Turn) -> None:
        """What comes on screen is in the history first."""
        self.session.journal.drawing(self.session.conversation, turn)

    def refresh_session(self) -> None:
        """The session changed outside the engine's events."""
        self.transcript.greet(greeting(self.chat_app.session))
        self.refresh_facts()

    def refresh_facts(self) -> None:
        """Draw slider and status again."""
        self.query_one(QualitySlider).refresh()
        self.query_one(StatusLine).refresh()
        self.query_one(KeyLine).show(self.chat_app.keymap, self.session.busy)
        if self._was_busy is not self.chat_app.session.busy:
            self._was_busy = self.chat_app.session.busy
            self.refresh_bindings()

    @on(Prompt.Sent)
    def _sent(self, event: Prompt.Sent) -> None:
        text = event.text
        if command := by_slash(text):
            self.prompt.clear()
            self.call_later(self._obey, command)
        elif text.startswith("/") and " " not in text.strip() and "\n" not in text:
            self.warn(f"No command {text.strip()}. F1 shows all.")
        elif self.ask(text):
            self.prompt.end_edit()
            self.prompt.clear()

    @on(Prompt.WentUp)
    def _went_up(self) -> None:
        self.transcript.select()

    @on(Transcript.Left)
    def _left(self) -> None:
        self.prompt.focus()

    async def _obey(self, command: Command) -> None:
        """Do what a slash command says."""
        if command.argument:
            getattr(self, f"action_{command.action.name}")(command.argument)
        else:
            await self.run_action(command.action.name)

    @on(QualitySlider.Moved)
    def _slider_moved(self) -> None:
        self.query_one(StatusLine).refresh()
        if self._slide_timer is None:
            self._slide_timer = self.set_timer(SLIDE_DELAY_S, self._send_slowdown)

    def _send_slowdown(self) -> None:
        self._slide_timer = None
        session = self.chat_app.session
        self.send(session.slowdown())
        self.chat_app.remember(slowdown_pct=session.slider.position.pct)

    @on(QualitySlider.TuneWanted)
    def _tune_wanted(self) -> None:
        self.action_tune()

    @on(Transcript.FollowChanged)
    def _follow_changed(self, event: Transcript.FollowChanged) -> None:
        self.query_one("#more-below").display = not event.on

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`stop` is live only while there is something to stop, so that Esc keeps its other uses."""
        if action == "stop":
            return self.session.busy
        return True

    def show_conversation(self) -> None:
        """Draw the conversation from its beginning."""
        self.transcript.show(self.session.conversation, greeting(self.session))
        self.query_one("#more-below").display = False
        self.refresh_facts()
