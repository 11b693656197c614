"""The wizard's state machine: from a bare machine to a tuned model. Knows no screen and no disk."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from app.job_progress import PREPARING, TUNING, JobProgress
from app.tune_findings import TuneFindings
from runtime.errors import DecdecError
from runtime.protocol.bases import DEFAULT
from runtime.protocol.commands import Command, Job, Prepare, Stop, Tune
from runtime.protocol.events import Done, Event, Failed, Progress

STOPPED = 130
KEPT = "Stopped. What is on disk is kept, and the next start continues from there."


class Step(IntEnum):
    """Steps in order."""

    HARDWARE = 0
    MODEL = 1
    PREPARE = 2
    TUNE = 3
    READY = 4
    FINISHED = 5


class Setup:
    """One run of the wizard. Methods return the command to send, if any; `push` takes every event.

    `reason`: why tuning is offered; it then waits for `start`, as a paused job does. `hardware` may be known
    in part before `measured`.
    """

    def __init__(self, step: Step = Step.HARDWARE, model: str = "", reason: str = "") -> None:
        self.step, self.model, self.source, self.base = step, model, model, DEFAULT.name
        # In the store, where the source alone does not say it.
        self.name = ""
        self.hardware: dict[str, Any] | None = None
        self.measured = False
        self.progress, self.findings = JobProgress(), TuneFindings()
        self.running = ""
        self.stopping = self.pausing = False
        self.paused = bool(reason)
        self.reason = reason
        self.prepared = self.tuned = False
        self.problem = ""
        # Whether the last preparing failed before it had begun with anything.
        self.refused = False

    # Intents

    def start(self) -> Command | None:
        """Begin the work of the present step, if it has any and none runs."""
        if self.running not in ("", "doctor"):
            return None
        self.problem, self.paused, self.progress = "", False, JobProgress(self._plan())
        self.refused = False
        command = self._command()
        self.running = _job_name(command) if command else self.running
        return command

    def _plan(self) -> dict[str, float]:
        return dict({Step.PREPARE: PREPARING, Step.TUNE: TUNING}.get(self.step, {}))

    def _command(self) -> Command | None:
        match self.step:
            case Step.HARDWARE | Step.MODEL | Step.READY if not self.measured and not self.running:
                return Job("doctor")
            case Step.PREPARE:
                return Prepare(self.source, self.name or None, bases=(self.base,))
            case Step.TUNE:
                self.findings = TuneFindings()
                return Tune(self.model, self.base)
        return None

    def offers(self, action: str) -> bool:
        """Whether forward, pause or again would do anything. Enter is the list's while a model is chosen."""
        match action:
            case "forward":
                return self.step is not Step.MODEL and not self.working
            case "pause":
                return self.step is Step.PREPARE and (self.waiting or bool(self.running))
            case "again":
                return self.step is Step.READY or (self.step is Step.HARDWARE and not self.running)
        return True

    @property
    def waiting(self) -> bool:
        """Whether the present step has work that waits to be begun."""
        return self.paused and self.step in (Step.PREPARE, Step.TUNE)

    @property
    def working(self) -> bool:
        """Whether a job runs that can be left."""
        return bool(self.running) and self.step in (Step.PREPARE, Step.TUNE)

    def choose(self, source: str, base: str = DEFAULT.name) -> None:
        """Take a model from the list and go on to fetching it."""
        self.model, self.source, self.name = source, source, ""
        self.base, self.step, self.paused, self.prepared = base, Step.PREPARE, False, False

    def resume(self, name: str, source: str) -> None:
        """Stand before what an earlier run began; `start` goes on with it under its name."""
        self.choose(source)
        self.model, self.name, self.paused = name, name, True

    def forward(self) -> None:
        """Leave a card."""
        self.step = {Step.HARDWARE: Step.MODEL, Step.READY: Step.FINISHED}.get(self.step, self.step)

    def measure_again(self) -> None:
        """Forget what was measured of the machine, or of the model; `start` measures."""
        if self.step is Step.HARDWARE:
            self.measured = False
        elif self.step is Step.READY:
            self.step = Step.TUNE

    def pause(self) -> Stop | None:
        """Let preparing rest at its next safe point; what is there stays."""
        if self.running and self.step is Step.PREPARE and not self.stopping:
            self.stopping = self.pausing = True
            return Stop()
        return None

    def leave(self) -> Stop | None:
        """Leave the present step. A running job is stopped first and the step is left when it has ended."""
        if self.working:
            asked, self.stopping, self.pausing = self.stopping, True, False
            return None if asked else Stop()
        self._left()
        return None

    def _left(self) -> None:
        """Where each step goes when it is left: back to the choice, or on to a chat that is not tuned."""
        self.paused = False
        self.step = {
            Step.MODEL: Step.HARDWARE,
            Step.PREPARE: Step.MODEL,
            Step.TUNE: Step.FINISHED,
            Step.READY: Step.FINISHED,
        }.get(self.step, self.step)

    # Events

    def push(self, event: Event) -> None:
        """Apply one event of the worker."""
        match event:
            case Progress(job="doctor") if event.data and "report" in event.data:
                self.hardware = event.data["report"]
            case Progress() if event.job == self.running:
                self.progress.push(event)
                self.findings.push(event)
            case Done(job="doctor"):
                self._on_measured(event.result)
            case Done() if event.job == self.running:
                self._on_done(event)
            case Failed() if event.job in (self.running, "worker") and self.running:
                self._on_failed(event)

    def _on_measured(self, report: dict[str, Any]) -> None:
        self.hardware, self.measured = report or self.hardware or {}, True
        if self.running == "doctor":
            self.running = ""

    def _on_done(self, event: Done) -> None:
        self.running, self.stopping, self.pausing = "", False, False
        if self.step is Step.PREPARE:
            self.model, self.prepared = event.result.get("name", self.model), True
            self.step = Step.TUNE
        elif self.step is Step.TUNE:
            self.tuned, self.step = True, Step.READY
            self.findings.end(event.result)

    def _on_failed(self, event: Failed) -> None:
        stopped = event.code == STOPPED or (self.stopping and event.job != "worker")
        pausing, self.running, self.stopping, self.pausing = self.pausing, "", False, False
        if stopped and pausing:
            self.paused = True
        elif stopped:
            self.problem = KEPT
            self._left()
        else:
            self.problem = DecdecError(event.what, event.why, event.fix).sentence
            self.refused = self.step is Step.PREPARE and event.job != "worker" and not self.progress.steps


def _job_name(command: Command) -> str:
    if isinstance(command, Job):
        return command.name
    return str(type(command).__struct_config__.tag)
