"""The wizard's state machine: from a bare machine to a tuned model. Knows no screen."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from runtime.errors import DecdecError
from runtime.protocol.commands import Command, Job, Prepare, Stop, Tune
from runtime.protocol.events import Done, Event, Failed, Progress


class Step(IntEnum):
    """Steps in order."""

    HARDWARE = 0
    MODEL = 1
    PREPARE = 2
    TUNE = 3
    FINISHED = 4


@dataclass(slots=True)
class JobProgress:
    """The steps of one job as they become known, each with its newest figures."""

    steps: dict[str, Progress] = field(default_factory=dict)

    def push(self, event: Progress) -> None:
        """Take newer figures of a step; a step seen for the first time is the last in order."""
        self.steps[event.step] = event

    def is_finished(self, step: str) -> bool:
        """A step is over when it is complete or a later one has begun."""
        event = self.steps[step]
        return step != self.current or bool(event.total and event.done >= event.total)

    @property
    def current(self) -> str:
        """The step that was reported last in order; empty before any."""
        return next(reversed(self.steps), "")


class Setup:
    """One run of the wizard. Methods return the command to send, if any; `push` takes every event."""

    def __init__(self, step: Step = Step.HARDWARE, model: str = "") -> None:
        self.step, self.model = step, model
        self.hardware: dict[str, Any] | None = None
        self.progress = JobProgress()
        self.running = ""
        self.stopping = False
        self.tuned = False
        self.problem = ""

    def start(self) -> Command | None:
        """Begin the work of the present step, if it has any and none runs."""
        if self.running:
            return None
        self.problem, self.progress = "", JobProgress()
        command = self._command()
        self.running = _job_name(command) if command else ""
        return command

    def _command(self) -> Command | None:
        match self.step:
            case Step.HARDWARE if self.hardware is None:
                return Job("doctor")
            case Step.PREPARE:
                return Prepare(self.model)
            case Step.TUNE:
                return Tune(self.model)
        return None

    def choose(self, model: str) -> None:
        """Take a model from the list and go on to fetching it."""
        self.model, self.step = model, Step.PREPARE

    def forward(self) -> None:
        """Leave the hardware card."""
        if self.step is Step.HARDWARE:
            self.step = Step.MODEL

    def leave(self) -> Stop | None:
        """Leave the present step. A running job is stopped first and the step is left when it has ended."""
        if self.running and self.step in (Step.PREPARE, Step.TUNE):
            self.stopping = True
            return Stop()
        self._left()
        return None

    def _left(self) -> None:
        """Where each step goes when it is left: back to the choice, or on to a chat that is not tuned."""
        self.step = {
            Step.MODEL: Step.HARDWARE,
            Step.PREPARE: Step.MODEL,
            Step.TUNE: Step.FINISHED,
        }.get(self.step, self.step)

    def push(self, event: Event) -> None:
        """Apply one event of the worker."""
        match event:
            case Progress() if event.job == self.running:
                self.progress.push(event)
            case Done() if event.job == self.running:
                self._on_done(event)
            case Failed() if event.job in (self.running, "worker") and self.running:
                self._on_failed(event)

    def _on_done(self, event: Done) -> None:
        self.running, self.stopping = "", False
        match self.step:
            case Step.HARDWARE:
                self.hardware = event.result
            case Step.PREPARE:
                self.model = event.result.get("name", self.model)
                self.step = Step.TUNE
            case Step.TUNE:
                self.tuned, self.step = True, Step.FINISHED

    def _on_failed(self, event: Failed) -> None:
        stopped = self.stopping or event.code == 130
        self.running, self.stopping = "", False
        if stopped:
            self.problem = "Stopped. What is on disk is kept, and the next start continues from there."
            self._left()
        else:
            self.problem = DecdecError(event.what, event.why, event.fix).sentence


def _job_name(command: Command) -> str:
    if isinstance(command, Job):
        return command.name
    return str(type(command).__struct_config__.tag)
