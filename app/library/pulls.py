"""Models being fetched beside the chat, one at a time: a queue that can be paused, resumed and cancelled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from app.job_progress import JobProgress
from app.library.typed import looks_like_path
from runtime.errors import DecdecError
from runtime.protocol.commands import Prepare
from runtime.protocol.events import Done, Failed, Progress

STOPPED = 130


class PullState(Enum):
    """Where a model stands on its way here."""

    WAITING = "waiting"
    RUNNING = "fetching"
    STOPPING = "stopping"
    PAUSED = "paused"
    FAILED = "failed"
    READY = "ready"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class Pull:
    """One model. `source`: what it is prepared from, as a person types it; `name`: its name in the store.

    `after`: what becomes of it once its work has stopped. `here`: bytes of it on disk while it rests.
    """

    name: str
    source: str
    state: PullState = PullState.WAITING
    progress: JobProgress = field(default_factory=JobProgress)
    problem: str = ""
    after: PullState = PullState.PAUSED
    here: int = 0
    # It failed before it had begun with anything.
    refused: bool = False

    @property
    def imported(self) -> bool:
        """Whether it comes from a folder or file of this machine."""
        return looks_like_path(self.source)

    @property
    def stage(self) -> str:
        """Its state in a word."""
        running = self.imported and self.state is PullState.RUNNING
        return "importing" if running else self.state.value

    @property
    def newest(self) -> Progress | None:
        """The newest figures of the present step; None before any."""
        return self.progress.steps.get(self.progress.current)

    @property
    def active(self) -> bool:
        """Whether work is done for it now."""
        return self.state in (PullState.RUNNING, PullState.STOPPING)


class Pulls:
    """The queue. An intent tells whether the work that runs must be stopped; `start` gives work to begin."""

    def __init__(self, unfinished: Iterable[Pull] = ()) -> None:
        self._pulls = {pull.name.lower(): pull for pull in unfinished}

    def __iter__(self) -> Iterator[Pull]:
        return iter(tuple(self._pulls.values()))

    def find(self, name: str) -> Pull | None:
        """The pull of a model; case is forgiven."""
        return self._pulls.get(name.lower())

    @property
    def running(self) -> Pull | None:
        """What is being worked on."""
        return next((pull for pull in self if pull.active), None)

    @property
    def waiting(self) -> list[Pull]:
        """What comes next, in order."""
        return [pull for pull in self if pull.state is PullState.WAITING]

    # Intents

    def add(self, name: str, source: str) -> Pull:
        """Queue a model, or let it go on where it is known already."""
        pull = self.find(name)
        if pull is None:
            pull = self._pulls[name.lower()] = Pull(name, source)
        self.resume(name)
        return pull

    def resume(self, name: str) -> None:
        """Let a paused or failed one go on, behind those that wait."""
        pull = self.find(name)
        if pull is None:
            return
        if pull.state is PullState.STOPPING:
            pull.after = PullState.WAITING
        elif pull.state in (PullState.PAUSED, PullState.FAILED):
            self._pulls[name.lower()] = self._pulls.pop(name.lower())
            pull.state, pull.problem = PullState.WAITING, ""

    def pause(self, name: str) -> bool:
        """Let one rest; what is on disk is kept."""
        return self._leave(name, PullState.PAUSED)

    def cancel(self, name: str) -> bool:
        """Forget one."""
        must_stop = self._leave(name, PullState.CANCELLED)
        if not must_stop and (pull := self.find(name)) and not pull.active:
            self._forget(pull)
        return must_stop

    def drop(self, names: Collection[str]) -> list[Pull]:
        """Forget pulls of models that became ready in another way; gives them. What is worked on stays."""
        ready = {name.lower() for name in names}
        dropped = [pull for pull in self if pull.name.lower() in ready and not pull.active]
        for pull in dropped:
            self._forget(pull)
        return dropped

    def _leave(self, name: str, after: PullState) -> bool:
        pull = self.find(name)
        if pull is None:
            return False
        if pull.active:
            must_stop = pull.state is PullState.RUNNING
            pull.state, pull.after = PullState.STOPPING, after
            return must_stop
        pull.state = after
        return False

    # Work

    def start(self) -> Prepare | None:
        """The next work to begin, if none runs."""
        if self.running is not None or not self.waiting:
            return None
        pull = self.waiting[0]
        pull.state, pull.progress, pull.refused = PullState.RUNNING, JobProgress(), False
        return Prepare(pull.source, pull.name)

    def push(self, event: Progress) -> None:
        """Newer figures of the running work."""
        if pull := self.running:
            pull.progress.push(event)

    def end(self, event: Done | Failed) -> Pull | None:
        """The running work has ended; gives the pull in its new state."""
        pull = self.running
        if pull is None:
            return None
        if isinstance(event, Done):
            pull.state = PullState.READY
        elif pull.state is PullState.STOPPING:
            pull.state = pull.after
        elif event.code == STOPPED:
            pull.state = PullState.PAUSED
        else:
            pull.state = PullState.FAILED
            pull.problem = DecdecError(event.what, event.why, event.fix).sentence
            # A process that died has refused nothing.
            pull.refused = pull.newest is None and event.job != "worker"
        if pull.state in (PullState.READY, PullState.CANCELLED):
            self._forget(pull)
        return pull

    def _forget(self, pull: Pull) -> None:
        self._pulls.pop(pull.name.lower(), None)
