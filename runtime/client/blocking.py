"""The command line's side of the worker: run commands one after the other, wait, obey Ctrl+C."""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import IO, Protocol

from runtime.client import process
from runtime.errors import DecdecError, Interrupted
from runtime.protocol.commands import Command, Quit, SetSlowdown, Stop
from runtime.protocol.events import Done, Event, Failed, Loaded
from runtime.protocol.lines import decode_event, encode, lines_of

POLL_S = 0.1
QUIT_GRACE_S = 5.0


class Engine(Protocol):
    """What runs the commands, for as long as it is entered."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...

    def send(self, command: Command) -> None:
        """Send; an engine that is gone is no error here."""
        ...

    def next_event(self) -> Event | None:
        """The next event, None after a short wait."""
        ...

    def kill(self) -> None:
        """End it now."""
        ...


def run_job(
    command: Command | Iterable[Command],
    on_event: Callable[[Event], None],
    engine: Callable[[], Engine] | None = None,
) -> Done:
    """Run commands in a fresh worker, or in another engine, and return the last one's Done.

    An iterable is asked for its next command when the one before is finished: a generator may decide by the
    events it has seen.
    Every event goes to `on_event` as it comes. Ctrl+C asks the worker to stop and waits; a second one kills.
    A stopped generation still returns its Done (finish_reason "stopped"). Raises Interrupted or DecdecError
    when a command fails or the worker dies; commands after a stop are not sent.
    """
    commands = command if isinstance(command, Iterable) else (command,)
    with (engine or _Worker)() as worker, _interrupts() as interrupts:
        done = Done("nothing")
        for each in commands:
            if interrupts.count:
                raise Interrupted
            worker.send(each)
            # A slider move has no answer of its own.
            if not isinstance(each, SetSlowdown):
                done = _wait(worker, interrupts, on_event) or done
        return done


class _Interrupts:
    def __init__(self) -> None:
        self.count = 0

    def note(self, signum: int, frame: FrameType | None) -> None:
        self.count += 1


@contextlib.contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    """Count Ctrl+C instead of raising, so that no event is half handled. A no-op off the main thread."""
    interrupts = _Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, interrupts.note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


def _wait(worker: Engine, interrupts: _Interrupts, on_event: Callable[[Event], None]) -> Done | None:
    """Forward events until the running command is finished; None for a Load."""
    stop_sent = False
    while True:
        if interrupts.count > 1:
            worker.kill()
            raise Interrupted
        if interrupts.count and not stop_sent:
            worker.send(Stop())
            stop_sent = True
        event = worker.next_event()
        if event is None:
            continue
        on_event(event)
        if isinstance(event, Failed):
            raise _failure(event)
        if isinstance(event, Done | Loaded):
            return event if isinstance(event, Done) else None


def _failure(event: Failed) -> DecdecError:
    if event.code == 130:
        return Interrupted(event.what, continues=bool(event.fix))
    return DecdecError(event.what, event.why, event.fix, event.code)


class _Worker:
    """A child process whose stdout is read by a thread, so that waiting can be interrupted everywhere."""

    def __init__(self) -> None:
        log = process.open_log()
        try:
            self._child = subprocess.Popen(
                process.worker_command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                **process.spawn_options(),
            )
        except OSError as error:
            failed = process.unstartable(error)
            raise DecdecError(failed.what, failed.why) from error
        finally:
            process.close_log(log)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._stdin: IO[bytes] = self._child.stdin
        self._stdout: IO[bytes] = self._child.stdout
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True, name="worker-events")
        self._reader.start()

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.send(Quit())
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._child.wait(QUIT_GRACE_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join(QUIT_GRACE_S)
        self._stdout.close()

    def send(self, command: Command) -> None:
        """Send; a worker that is gone is reported by the reader, not here."""
        line = encode(command)
        with contextlib.suppress(OSError, ValueError):
            self._stdin.write(line)
            self._stdin.flush()

    def next_event(self) -> Event | None:
        """The next event, None after a short wait."""
        try:
            return self._events.get(timeout=POLL_S)
        except queue.Empty:
            return None

    def kill(self) -> None:
        """End the worker now."""
        self._child.kill()
        self._child.wait()

    def _read(self) -> None:
        try:
            for line in lines_of(self._stdout):
                self._events.put(decode_event(line))
        except DecdecError as error:
            self._events.put(Failed("worker", error.what, error.why, error.fix))
            self._child.kill()
        self._events.put(process.death(self._child.wait()))
