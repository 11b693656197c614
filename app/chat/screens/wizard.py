"""From a bare machine to a chat: hardware, model, fetch and prepare, tune."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Footer, Static

from app.chat.screens.base import EngineScreen
from app.chat.widgets.hardware_card import HardwareCard
from app.chat.widgets.job_view import JobView
from app.chat.widgets.model_list import ModelList
from app.chat.widgets.step_rail import StepRail
from app.chat.widgets.tiny_notice import TinyNotice
from app.setup import Setup, Step
from runtime.protocol.events import Event

# Title and explanation of every step.
TEXTS = {
    Step.HARDWARE: ("This machine", "Enter goes on to the choice of a model."),
    Step.MODEL: (
        "Choose a model",
        "Enter takes the marked one; the first needs no hub. Memory: on the device at 4 bits.",
    ),
    Step.PREPARE: (
        "Fetch and prepare {model}",
        "The weights are fetched, stored losslessly as INT8-X, and quantised with a correction kept aside. "
        "Esc goes back; finished pieces are kept and the next start continues with them.",
    ),
    Step.TUNE: (
        "Tune {model} on this device",
        "Measures how much correction fits into which slowdown, so that the slider works. "
        "Esc leaves it for later; until then the slider stays as it was, off for a new model.",
    ),
}


class WizardScreen(EngineScreen):
    """Shows a Setup; ends by handing its model to the app."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "forward", "Continue"),
        Binding("escape", "leave", "Leave this step", priority=True),
    ]
    AUTO_FOCUS = ""

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.setup = setup
        self._shown: Step | None = None

    def compose(self) -> ComposeResult:
        """The rail, and every step's widget; one of them is displayed."""
        with Vertical(id="wizard"):
            yield StepRail(id="rail")
            yield Static(id="step-title", markup=False)
            yield Static(id="step-text", markup=False)
            with VerticalScroll(id="hardware-step", can_focus=False):
                yield HardwareCard(id="hardware")
            yield ModelList(self.chat_app.catalogue, self.chat_app.ready_models, id="model-step")
            yield JobView(id="job-step")
            yield Static(id="step-problem", markup=False)
            yield Footer(compact=True, show_command_palette=False)
        yield TinyNotice()

    def on_mount(self) -> None:
        """Begin with the present step."""
        self._enter()

    def engine_event(self, event: Event) -> None:
        """Let the setup take the event, then show what it made of it."""
        self.setup.push(event)
        if self.setup.step is not self._shown:
            self._enter()
        self._show()

    def action_forward(self) -> None:
        """Continue, or try a failed step again."""
        self.setup.forward()
        self._enter()

    def action_leave(self) -> None:
        """Leave the step; out of the first one, leave the wizard."""
        if self.setup.step is Step.HARDWARE:
            self.chat_app.close_setup()
            return
        self.chat_app.send(self.setup.leave())
        if self.setup.stopping:
            self._show()
        else:
            self._enter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter belongs to the list in the model step, and to nothing while a job runs."""
        if action == "forward":
            return self.setup.step is not Step.MODEL and not (
                self.setup.running and self.setup.step in (Step.PREPARE, Step.TUNE)
            )
        return True

    @on(ModelList.Chosen)
    def _chosen(self, event: ModelList.Chosen) -> None:
        self.setup.choose(event.name)
        self._enter()

    def _enter(self) -> None:
        """Show a step and start its work."""
        step = self._shown = self.setup.step
        if step is Step.FINISHED:
            self.chat_app.finish_setup(self.setup)
            return
        problem = self.setup.problem
        self.chat_app.send(self.setup.start())
        if step is Step.MODEL:
            self.setup.problem = problem
            self.query_one(ModelList).focus_list()
        else:
            self.set_focus(None)
        self.query_one("#hardware-step").display = step is Step.HARDWARE
        self.query_one(ModelList).display = step is Step.MODEL
        self.query_one(JobView).display = step in (Step.PREPARE, Step.TUNE)
        self.query_one(StepRail).show(step)
        self._show()

    def _show(self) -> None:
        if self.setup.step is Step.FINISHED:
            return
        title, text = TEXTS[self.setup.step]
        self.query_one("#step-title", Static).update(title.format(model=self.setup.model))
        self.query_one("#step-text", Static).update(text)
        self.query_one("#step-problem", Static).update(self._problem())
        self.query_one(JobView).show(self.setup.progress)
        if self.setup.hardware is not None:
            self.query_one(HardwareCard).show(self.setup.hardware)
        self.refresh_bindings()

    def _problem(self) -> str:
        if self.setup.stopping:
            return "Stopping at the next safe point…"
        retry = self.setup.problem and self.setup.step in (Step.HARDWARE, Step.PREPARE, Step.TUNE)
        return f"{self.setup.problem} Enter tries again." if retry else self.setup.problem
