"""Moves the models to another folder, with a bar, and a way back until the last moment."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import ProgressBar, Static

from app import format
from app.chat.screens.base import EngineScreen
from runtime import locations
from runtime.errors import DecdecError, Interrupted
from runtime.progress import JobContext
from runtime.protocol.events import Event, Progress
from runtime.store import moving


class MovingScreen(EngineScreen):
    """The engine rests while it is up. It closes by itself when everything is there, or back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Stop", priority=True)]

    def __init__(self, target: Path) -> None:
        super().__init__()
        self._target, self._stopped = target, threading.Event()

    def compose(self) -> ComposeResult:
        """From where, to where, how far."""
        with Vertical(id="moving"):
            yield Static("Moving the models", id="moving-title")
            yield Static(f"{locations.home()}\n→ {self._target}", id="moving-folders", markup=False)
            yield ProgressBar(id="moving-bar", show_eta=False)
            yield Static("The engine ends first …", id="moving-figures", markup=False)
            yield Static("Esc stops it and leaves everything where it was", id="moving-keys")

    def on_mount(self) -> None:
        """Begin."""
        self.run_worker(self._work(), group="engine-pause")

    def action_leave(self) -> None:
        """Stop at the next piece."""
        self._stopped.set()
        self.query_one("#moving-keys", Static).update("Stopping, and putting back what was moved …")

    def on_unmount(self) -> None:
        """The program ends: nothing goes on behind it."""
        self._stopped.set()

    async def _work(self) -> None:
        problem = ""
        try:
            await self.chat_app.rest_engine()
            await asyncio.to_thread(self._move)
        except Interrupted:
            problem = "Stopped; the models lie where they did."
        except DecdecError as error:
            problem = error.sentence
        await self.chat_app.wake_engine()
        self._tell(problem)
        self.dismiss()

    def _tell(self, problem: str) -> None:
        if problem:
            self.app.notify(problem, severity="warning", timeout=12, markup=False)
        else:
            self.app.notify(f"The models lie in {self._target} now.", markup=False)

    def _move(self) -> None:
        """In a thread."""
        context = JobContext("move", self._progress, self._stopped.is_set)
        moving.move(locations.home(), self._target, self._switch, context)

    def _switch(self) -> None:
        self.app.call_from_thread(self.chat_app.point_to, self._target)

    def _progress(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.app.call_from_thread(self._show, event)

    def _show(self, event: Progress) -> None:
        self.query_one(ProgressBar).update(total=event.total, progress=event.done)
        figures = "  ".join(filter(None, (format.amount(event), format.pace(event))))
        self.query_one("#moving-figures", Static).update(figures)
