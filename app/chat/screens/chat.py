"""The chat: transcript, slider, prompt, status."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Footer, Static

from app.actions import ACTIONS, by_slash
from app.chat.screens.base import EngineScreen
from app.chat.screens.help import HelpScreen
from app.chat.screens.scrolling import SCROLL_BINDINGS, ScrollActions
from app.chat.screens.system_prompt import SystemPromptScreen
from app.chat.widgets.prompt import Prompt
from app.chat.widgets.slider import QualitySlider
from app.chat.widgets.status_line import StatusLine
from app.chat.widgets.tiny_notice import TinyNotice
from app.chat.widgets.transcript import Transcript
from app.greeting import greeting
from app.text import one_line
from runtime.errors import DecdecError
from runtime.protocol.commands import Command
from runtime.protocol.events import Done, Event, Failed, Loaded, Token

# Moves of a dragged thumb within this time become one command.
SLIDE_DELAY_S = 0.05
MORE_BELOW = "▼ more below — Ctrl+End follows"


class ChatScreen(ScrollActions, EngineScreen):
    """Turns keys into intents of the session and its state into what is seen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(
                a.keys, a.name, a.title, show=a.in_footer, key_display=a.key_display or None, priority=True
            )
            for a in ACTIONS
            if a.keys
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
            yield Transcript(id="transcript")
            yield Static(MORE_BELOW, id="more-below")
            yield QualitySlider(session.slider, id="slider")
            yield Prompt(id="prompt")
            yield StatusLine(session, id="status")
            yield Footer(compact=True, show_command_palette=False)
        yield TinyNotice()

    def on_mount(self) -> None:
        """Show the conversation there is."""
        self._show_conversation()
        self.app.theme_changed_signal.subscribe(self, lambda _: self._transcript.restyle())

    @property
    def _transcript(self) -> Transcript:
        return self.query_one(Transcript)

    # Events

    def engine_event(self, event: Event) -> None:
        """Bring what an event changed onto the screen; text is drawn by the transcript at its own pace."""
        if isinstance(event, Token):
            return
        if isinstance(event, Done | Failed):
            self._transcript.finish()
        if isinstance(event, Failed) and event.job in ("load", "worker"):
            self.notify(self.chat_app.session.problem, severity="error", timeout=10, markup=False)
        if isinstance(event, Loaded) and event.note and self.chat_app.session.conversation.turns:
            self.notify(one_line(event.note), timeout=10, markup=False)
        if isinstance(event, Loaded | Failed):
            self._transcript.greet(greeting(self.chat_app.session))
        self.refresh_facts()

    def refresh_session(self) -> None:
        """The session changed outside the engine's events."""
        self._transcript.greet(greeting(self.chat_app.session))
        self.refresh_facts()

    def refresh_facts(self) -> None:
        """Draw slider and status again."""
        self.query_one(QualitySlider).refresh()
        self.query_one(StatusLine).refresh()
        if self._was_busy is not self.chat_app.session.busy:
            self._was_busy = self.chat_app.session.busy
            self.refresh_bindings()

    @on(Prompt.Sent)
    def _sent(self, event: Prompt.Sent) -> None:
        text = event.text
        if action := by_slash(text):
            self.query_one(Prompt).clear()
            self.call_later(self.run_action, action.name)
        elif text.startswith("/") and " " not in text.strip() and "\n" not in text:
            known = " ".join(action.slash for action in ACTIONS if action.slash)
            self.notify(f"No command {text.strip()}. There are {known}.", severity="warning", markup=False)
        else:
            self._ask(text)

    def _ask(self, text: str) -> None:
        session = self.chat_app.session
        try:
            command = session.ask(text)
        except DecdecError as error:
            self.notify(error.sentence, severity="warning", markup=False)
            return
        self.query_one(Prompt).clear()
        assert session.conversation.last is not None
        self._transcript.add(session.conversation.last)
        self._send(command)

    @on(QualitySlider.Moved)
    def _slider_moved(self) -> None:
        self.query_one(StatusLine).refresh()
        if self._slide_timer is None:
            self._slide_timer = self.set_timer(SLIDE_DELAY_S, self._send_slowdown)

    def _send_slowdown(self) -> None:
        self._slide_timer = None
        session = self.chat_app.session
        self._send(session.slowdown())
        self.chat_app.remember(slowdown_pct=session.slider.position.pct)

    @on(QualitySlider.TuneWanted)
    def _tune_wanted(self) -> None:
        self.action_tune()

    @on(Transcript.FollowChanged)
    def _follow_changed(self, event: Transcript.FollowChanged) -> None:
        self.query_one("#more-below").display = not event.on

    # Actions, named as in app.actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`stop` is live only while there is something to stop, so that Esc keeps its other uses."""
        if action == "stop":
            return self.chat_app.session.busy
        return True

    def action_stop(self) -> None:
        """End the answer within one token."""
        self._send(self.chat_app.session.stop())
        self._transcript.finish()
        self.refresh_facts()

    def action_faster(self) -> None:
        """Slider to the next lower detent."""
        self.query_one(QualitySlider).action_move(-1)

    def action_better(self) -> None:
        """Slider to the next higher detent."""
        self.query_one(QualitySlider).action_move(1)

    def action_fine_faster(self) -> None:
        """Slider down by half a percent."""
        self.query_one(QualitySlider).action_move(-1, True)

    def action_fine_better(self) -> None:
        """Slider up by half a percent."""
        self.query_one(QualitySlider).action_move(1, True)

    def action_new_chat(self) -> None:
        """Start over."""
        self._send(self.chat_app.session.new_chat())
        self._show_conversation()
        self.query_one(Prompt).focus()

    def action_system_prompt(self) -> None:
        """Edit the system prompt; it counts from the next question on."""
        self.app.push_screen(
            SystemPromptScreen(self.chat_app.session.conversation.system_prompt), self._keep_system_prompt
        )

    def _keep_system_prompt(self, text: str | None) -> None:
        if text is not None:
            self.chat_app.session.conversation.system_prompt = text
            self.chat_app.remember(system_prompt=text)

    def action_setup(self) -> None:
        """Open the wizard."""
        if self._may_leave():
            self.chat_app.open_setup()

    def action_tune(self) -> None:
        """Open the wizard at its tuning step."""
        session = self.chat_app.session
        if not session.model:
            self.notify("No model is loaded. F2 chooses one.", severity="warning")
        elif self._may_leave():
            self.chat_app.open_tuning(session.model)

    def _may_leave(self) -> bool:
        if self.chat_app.session.busy:
            self.notify("The answer is still being written. Esc stops it.", severity="warning")
            return False
        return True

    def action_copy_answer(self) -> None:
        """Copy through the terminal (OSC 52)."""
        answer = self.chat_app.session.conversation.last_answer
        if answer:
            self.app.copy_to_clipboard(answer)
            self.notify(f"Copied {len(answer)} characters.")

    def action_restart_engine(self) -> None:
        """Start the engine's process again."""
        self.chat_app.restart_engine()

    def action_keys(self) -> None:
        """Show every key, command and word."""
        self.app.push_screen(HelpScreen())

    async def action_quit(self) -> None:
        """Leave."""
        await self.app.action_quit()

    # Help

    def _send(self, command: Command | None) -> None:
        self.chat_app.send(command)
        self.refresh_facts()

    def _show_conversation(self) -> None:
        self._transcript.show(self.chat_app.session.conversation, greeting(self.chat_app.session))
        self.query_one("#more-below").display = False
        self.refresh_facts()
