"""The worker's loop: one command after the other, every failure an event, the process lives on."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime import device
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.protocol.commands import Command, Generate, Job, Load, Prepare, Quit, SetSlowdown, Tune
from runtime.protocol.events import Done, Failed, Ready
from runtime.shortage import release_memory
from runtime.store import in_use
from runtime.worker import environment, failures, jobs
from runtime.worker.damage import blamed_on_files
from runtime.worker.inbox import Inbox, Task
from runtime.worker.output import EventWriter

if TYPE_CHECKING:
    from runtime.generation.session import Session


def main() -> None:
    """Serve until Quit or until stdin closes, then end the process."""
    environment.prepare()
    # What an interrupt means is the front end's to say, by a Stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ValueError, OSError):
        faulthandler.enable()
    try:
        Worker(EventWriter()).run()
    except SystemExit:
        sys.stderr.flush()
        os._exit(1)
    # No orderly shutdown: a CUDA context or a busy thread pool can hold it up, and nothing is left to save.
    sys.stderr.flush()
    os._exit(0)


@dataclass(frozen=True, slots=True)
class _Control:
    """What an answer asks between two tokens."""

    task: Task
    inbox: Inbox

    def stopped(self) -> bool:
        return self.task.stop.is_set()

    def slowdown(self) -> SetSlowdown | None:
        return self.inbox.slowdown()


class Worker:
    """Runs commands; holds at most one loaded model."""

    def __init__(self, writer: EventWriter) -> None:
        self._emit = writer.write
        self._inbox = Inbox(lambda error: self._emit(failures.failed("command", error)))
        self._session: Session | None = None

    def run(self) -> None:
        """Until Quit."""
        self._emit(Ready(os.getpid()))
        self._inbox.start()
        while not isinstance((task := self._inbox.next()).command, Quit):
            self._run(task)
            self._inbox.finished(task)

    def _run(self, task: Task) -> None:
        job = _name(task.command)
        try:
            self._dispatch(task, JobContext(job, self._emit, task.stop.is_set))
            return
        except Exception as error:
            failure = failures.failed(job, error)
        # The exception is gone here, and with it the frames that held its tensors.
        release_memory()
        self._emit(failure)

    def _dispatch(self, task: Task, context: JobContext) -> None:
        if not isinstance(task.command, SetSlowdown):
            context.check()
        in_use.take_part()
        match task.command:
            case Load() as command:
                self._load(command, context)
            case Generate() as command:
                for event in self._loaded_session().answer(command, _Control(task, self._inbox)):
                    self._emit(event)
            case SetSlowdown():
                self._move_slider()
            case Prepare() | Tune() | Job() as command:
                name, arguments = jobs.call(command)
                self._emit(Done(name, jobs.find(name)(arguments, context)))

    def _load(self, command: Load, context: JobContext) -> None:
        """Replace the model in memory; the old one goes first, for both may not fit."""
        from runtime.generation.session import Session

        device.require_wanted()
        self._session = None
        release_memory()
        with blamed_on_files(command.model, context):
            found = jobs.resolve(jobs.LOADER)(command, context)
            self._session = Session(found.engine, found.loaded, found.folder)
        self._emit(found.loaded)
        if failed := self._session.set_slowdown(self._inbox.position()):
            self._emit(failed)

    def _loaded_session(self) -> Session:
        if self._session is None:
            raise DecdecError("Nothing can be answered", "no model is loaded", "load one first")
        return self._session

    def _move_slider(self) -> None:
        """Between answers; a running one, or a load, may have taken the move already."""
        if self._session is None:
            return
        move = self._inbox.slowdown()
        failed: Failed | None = self._session.set_slowdown(move) if move else None
        self._emit(failed or self._session.stats())


def _name(command: Command) -> str:
    return command.name if isinstance(command, Job) else str(type(command).__struct_config__.tag)
