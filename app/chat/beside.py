"""The part of the app that works beside the chat: models on their way here, and notes about them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from textual.app import App
from textual.signal import Signal

from app import format
from app.background import Background
from app.library import removal
from app.library.pulls import Pull, PullState
from app.models import lost
from app.session import ChatSession, Phase
from app.settings import Settings
from app.text import one_line
from runtime.errors import DecdecError

NOTE_S = 10


class BesideApp(App[None]):
    """Holds the background work. `pulls_changed` tells of every change, with a pull that just ended."""

    session: ChatSession
    settings: Settings
    local: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.background = Background(self._on_pulls)
        self.pulls_changed: Signal[Pull | None] = Signal(self, "pulls")

    def on_mount(self) -> None:
        """Another model, or the set-up, does not silently take the place of the one of last time."""
        if self.local and (problem := lost(self.settings.model)):
            self.notify(one_line(problem), severity="warning", timeout=NOTE_S, markup=False)

    @property
    def ready_models(self) -> list[str]:
        """Names of the prepared models."""
        raise NotImplementedError

    def load_model(self, name: str) -> None:
        """Chat with a prepared model."""
        raise NotImplementedError

    def tell_unfinished(self) -> None:
        """Offer to go on with what an earlier run did not finish."""
        self.background.forget_ready(self.ready_models)
        resting = [pull for pull in self.background.pulls if pull.state is PullState.PAUSED]
        # Without any model the set-up offers it.
        if resting and self.session.phase is not Phase.EMPTY:
            self.notify(_not_to_the_end(resting), timeout=NOTE_S, markup=False)

    def _on_pulls(self, ended: Pull | None) -> None:
        if not self.is_running:
            return
        if ended is not None:
            self._tell_end(ended)
        self.pulls_changed.publish(ended)

    def _tell_end(self, pull: Pull) -> None:
        name = one_line(pull.name)
        if pull.state is PullState.FAILED:
            gone = self.background.pulls.find(pull.name) is None
            again = "" if gone else " F2 tries again."
            text = f"{name} was not {_done(pull)}. {one_line(pull.problem)}{again}"
            self.notify(text, severity="error", timeout=NOTE_S, markup=False)
        elif pull.state is PullState.CANCELLED:
            self.run_worker(self._discard(pull), group="discard")
        elif pull.state is PullState.READY and self.session.phase is Phase.EMPTY:
            self.load_model(pull.name)
        elif pull.state is PullState.READY:
            self.notify(f"{name} is ready. /model {name} loads it.", timeout=NOTE_S, markup=False)

    async def _discard(self, pull: Pull) -> None:
        try:
            freed = await asyncio.to_thread(removal.discard, pull)
        except DecdecError as error:
            self.notify(error.sentence, severity="warning", timeout=NOTE_S, markup=False)
            return
        free = f", {format.size(freed)} are free again" if freed else ""
        text = f"{one_line(pull.name)} is cancelled{free}."
        self.notify(text, markup=False)
        self.pulls_changed.publish(pull)


def _not_to_the_end(resting: Sequence[Pull]) -> str:
    """`a, b were not fetched, c was not imported to the end. F2 and Enter go on.`"""
    parts = []
    for done in ("fetched", "imported"):
        if names := [one_line(pull.name) for pull in resting if _done(pull) == done]:
            parts.append(f"{', '.join(names)} {'was' if len(names) == 1 else 'were'} not {done}")
    return f"{', '.join(parts)} to the end. F2 and Enter go on."


def _done(pull: Pull) -> str:
    return "imported" if pull.imported else "fetched"
