"""From a bare machine to a chat: hardware, model, fetch and prepare, tune, what the slider brings."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Footer, Static

from app import format, unfinished
from app.background import MACHINE
from app.chat.screens.base import EngineScreen
from app.chat.screens.help import HelpScreen
from app.chat.widgets.closing_card import ClosingCard
from app.chat.widgets.curve_plots import CurvePlots
from app.chat.widgets.hardware_card import HardwareCard
from app.chat.widgets.job_view import STARTING, JobView
from app.chat.widgets.model_list import ModelList
from app.chat.widgets.step_rail import StepRail
from app.chat.widgets.tiny_notice import TinyNotice
from app.closing import Lossless, foretold
from app.helping import SETTING_UP
from app.models import base_of
from app.ranking import Known, ranked
from app.setup import Setup, Step
from app.surroundings import Surroundings, surroundings
from app.wizard_texts import Words, words
from runtime import machine
from runtime.protocol.commands import Prepare
from runtime.protocol.events import Event
from runtime.sources import catalogue

# Where each step is shown.
SHOWN = {
    "#hardware-step": (Step.HARDWARE,),
    "#model-step": (Step.MODEL,),
    "#job-step": (Step.PREPARE, Step.TUNE),
    "#curves-step": (Step.TUNE,),
    "#closing-step": (Step.READY,),
}


class WizardScreen(EngineScreen):
    """Shows a Setup; ends by handing its model to the app."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "forward", "Continue"),
        Binding("p", "pause", "Pause / go on"),
        Binding("r", "again", "Measure again"),
        Binding("escape", "leave", "Leave this step", priority=True),
        Binding("f1", "keys", "Keys"),
    ]
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [  # noqa: RUF012
        (0, "-tiny-height"),
        (8, "-low"),
        (14, "-short"),
        (24, "-tall"),
    ]
    AUTO_FOCUS = ""

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.setup = setup
        self._known = Known()
        self._shown: Step | None = None
        self._said = Words("", "")
        self._keys_of: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """The rail, and every step's widgets; those of one step are displayed."""
        with Vertical(id="wizard"):
            yield StepRail(id="rail")
            yield Static(id="step-title", markup=False)
            yield Static(id="step-text", markup=False)
            with VerticalScroll(id="hardware-step"):
                yield HardwareCard(id="hardware")
            yield ModelList(id="model-step")
            yield JobView(id="job-step")
            yield CurvePlots(id="curves-step")
            with VerticalScroll(id="closing-step"):
                yield ClosingCard(id="closing")
            yield Static(id="step-problem", markup=False)
            yield Footer(compact=True, show_command_palette=False)
        yield TinyNotice()

    def on_mount(self) -> None:
        """Begin with the present step, or with what an earlier run has begun where no model is ready."""
        self.setup.hardware = machine.glance()
        self._look_at_models()
        if self.setup.step is Step.TUNE:
            self.setup.base = base_of(self.setup.model)
        if self.setup.step is Step.HARDWARE and self._known.begun and not self._known.ready:
            self.setup.resume(*self._known.begun[0])
        self._enter()

    def engine_event(self, event: Event) -> None:
        """Let the setup take the event, then show what it made of it."""
        self.setup.push(event)
        if self.setup.measured and self.setup.hardware:
            self.chat_app.background.known[MACHINE] = self.setup.hardware
        if self.setup.refused:
            unfinished.refused(self.chat_app.background.pulls, self.setup.source, self.setup.name)
        if self.setup.step is not self._shown:
            self._keep_account()
            self._enter()
        self._show()

    def _keep_account(self) -> None:
        """Preparing has ended, or was left before its end."""
        if self._shown is Step.PREPARE and not self.setup.refused:
            end = unfinished.settle if self.setup.prepared else unfinished.rest
            end(self.chat_app.background.pulls, self.setup.source, self.setup.name)

    # Actions

    def action_forward(self) -> None:
        """Continue, begin what waits, or try a failed step again."""
        self.setup.forward()
        self._enter()

    def action_pause(self) -> None:
        """Let preparing rest, or go on with it."""
        if self.setup.waiting:
            self._enter()
        else:
            self.chat_app.send(self.setup.pause())
            self._show()

    def action_again(self) -> None:
        """Measure the machine again, or the model."""
        self.setup.measure_again()
        self._enter()

    def action_keys(self) -> None:
        """This screen's keys, then those of the chat."""
        self.app.push_screen(HelpScreen(self.chat_app.keymap, (SETTING_UP,)))

    def action_leave(self) -> None:
        """Leave the step; out of the first one, leave the wizard."""
        if self.setup.step is Step.HARDWARE:
            self.chat_app.close_setup()
            return
        self.chat_app.send(self.setup.leave())
        if self.setup.stopping:
            self._show()
        else:
            self._keep_account()
            self._enter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that would do nothing now are not shown."""
        return self.setup.offers(action)

    @on(ModelList.Chosen)
    def _chosen(self, event: ModelList.Chosen) -> None:
        self.setup.choose(event.source, event.base)
        self._enter()

    @on(ModelList.Doubtful)
    def _doubtful(self, event: ModelList.Doubtful) -> None:
        self.setup.problem = event.warning
        self._show()

    # Showing

    def _enter(self) -> None:
        """Show a step and start its work, unless that waits."""
        step = self.setup.step
        came, self._shown = step is not self._shown, step
        if step is Step.FINISHED:
            self.chat_app.finish_setup(self.setup)
            return
        problem = self.setup.problem
        if not (self.setup.waiting and came):
            self._start()
        if step is Step.MODEL:
            self.setup.problem = problem
            self._look_at_models()
            if came:
                self.query_one(ModelList).sort_anew()
        for selector, steps in SHOWN.items():
            self.query_one(selector).display = step in steps
        self.query_one("#job-step").set_class(step is Step.TUNE, "-brief")
        self.query_one(StepRail).show(step)
        self._show()
        if came:
            self._focus(step)

    def _start(self) -> None:
        command = self.setup.start()
        if isinstance(command, Prepare):
            unfinished.note(command.model, command.name or "")
        self.chat_app.send(command)

    def _focus(self, step: Step) -> None:
        if step is Step.MODEL:
            self.query_one(ModelList).focus_list()
        elif step in (Step.HARDWARE, Step.READY):
            self.query_one("#hardware-step" if step is Step.HARDWARE else "#closing-step").focus()
        else:
            self.set_focus(None)

    def _look_at_models(self) -> None:
        self._known = Known(tuple(self.chat_app.ready_models), unfinished.begun())

    def _show(self) -> None:
        setup = self.setup
        self._say(words(setup))
        match setup.step:
            case Step.HARDWARE:
                self.query_one(HardwareCard).show(setup.hardware or {}, setup.measured)
            case Step.MODEL:
                self._show_models()
            case Step.PREPARE | Step.TUNE:
                self.query_one(JobView).show(setup.progress, "" if setup.waiting else STARTING)
                self.query_one(CurvePlots).show(setup.findings)
            case Step.READY:
                here = format.percent(self.chat_app.settings.slowdown_pct)
                self.query_one(ClosingCard).show(setup.findings, self._lossless(), here)
        state = (setup.step, setup.running, setup.waiting)
        if state != self._keys_of:
            self._keys_of = state
            self.refresh_bindings()

    def _say(self, said: Words) -> None:
        """Texts are laid out anew only when they change: reports come many times a second."""
        for name in ("title", "text", "problem"):
            if getattr(said, name) != getattr(self._said, name):
                self.query_one(f"#step-{name}", Static).update(getattr(said, name))
        self._said = said

    def _show_models(self) -> None:
        default = catalogue.default().name
        self.query_one(ModelList).show(ranked(self.chat_app.catalogue, default, self._known, self._around))

    @property
    def _around(self) -> Surroundings | None:
        """What the report says about room and speed, once all is measured."""
        return surroundings(self.setup.hardware or {}) if self.setup.measured else None

    def _lossless(self) -> Lossless:
        """What is known of the slider's last stop for this model."""
        setup, loaded = self.setup, self.chat_app.session.loaded
        known = foretold(setup.model, setup.base, self._around)
        same = loaded is not None and loaded.model == setup.model
        return replace(known, fits=loaded.lossless) if same and loaded else known
