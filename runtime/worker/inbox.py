"""Reading commands while one runs: a stop and a slider move act at once, everything else waits its turn."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from runtime.errors import DecdecError
from runtime.protocol.commands import Command, Quit, SetSlowdown, Stop
from runtime.protocol.lines import decode_command, lines_of

# How long work may go on without looking at its stop flag after the front end is gone.
ORPHAN_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Task:
    """A command that waits or runs, and its own stop flag."""

    command: Command
    stop: threading.Event = field(default_factory=threading.Event)


class Inbox:
    """Filled by a thread that reads stdin, emptied by the worker's loop."""

    def __init__(self, on_error: Callable[[DecdecError], None]) -> None:
        self._on_error = on_error
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._open: list[Task] = []
        self._slowdown = SetSlowdown(0.0)
        self._moved = self._move_waits = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, daemon=True, name="commands").start()

    def next(self) -> Task:
        """The next command; waits for it."""
        task = self._tasks.get()
        if isinstance(task.command, SetSlowdown):
            with self._lock:
                self._move_waits = False
        return task

    def finished(self, task: Task) -> None:
        """A later stop is no longer meant for this task."""
        with self._lock:
            self._open.remove(task)

    def slowdown(self) -> SetSlowdown | None:
        """The newest slider position, if nobody took it yet."""
        with self._lock:
            moved, self._moved = self._moved, False
            return self._slowdown if moved else None

    def position(self) -> SetSlowdown:
        """Where the slider stands, for an engine that is new; counts as taken."""
        with self._lock:
            self._moved = False
            return self._slowdown

    def accept(self, command: Command) -> None:
        """Take one command. A stop reaches all that came before it, also what has not begun yet."""
        with self._lock:
            if isinstance(command, Stop | Quit):
                for task in self._open:
                    task.stop.set()
            if isinstance(command, SetSlowdown):
                self._slowdown, self._moved = command, True
                # One waiting move is enough, for it takes the newest position.
                if self._move_waits:
                    return
                self._move_waits = True
            if not isinstance(command, Stop):
                task = Task(command)
                self._open.append(task)
                self._tasks.put(task)

    def read(self, stream: IO[bytes]) -> None:
        """Take every command of a stream, until it ends; what is none is told."""
        for line in lines_of(stream):
            try:
                self.accept(decode_command(line))
            except DecdecError as error:
                self._on_error(error)

    def _read(self) -> None:
        # Unbuffered by the interpreter: a reader that holds stdin's lock would hold up its shutdown.
        with os.fdopen(os.dup(sys.stdin.fileno()), "rb") as stream:
            self.read(stream)
        self.accept(Quit())
        leave = threading.Timer(ORPHAN_GRACE_S, os._exit, (1,))
        leave.daemon = True
        leave.start()
