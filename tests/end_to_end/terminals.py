"""The program in a real terminal: a pseudo terminal with an emulated screen, or tmux if it is installed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
import uuid
from collections.abc import Callable, Mapping, Sequence

import psutil
import pyte

KEYS = {
    "enter": "\r", "escape": "\x1b", "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f8": "\x1b[19~",
    "ctrl+c": "\x03", "ctrl+d": "\x04", "ctrl+j": "\n", "ctrl+q": "\x11", "ctrl+r": "\x12", "ctrl+y": "\x19",
    "shift+enter": "\x1b[13;2u",
}  # fmt: skip
TMUX_KEYS = {"enter": "Enter", "escape": "Escape"}


class Terminal:
    """What both kinds share: looking at the screen until something is there."""

    def screen(self) -> list[str]:
        """The lines as they are now."""
        raise NotImplementedError

    def press(self, *keys: str) -> None:
        """Send keys by name."""
        raise NotImplementedError

    def type(self, text: str) -> None:
        """Send text."""
        raise NotImplementedError

    def ask(self, text: str) -> None:
        """Type a text, see it, and send it."""
        self.type(text)
        self.wait(text)
        self.press("enter")

    @property
    def pid(self) -> int:
        """The program's process."""
        raise NotImplementedError

    def wait(self, *wanted: str, seconds: float = 40.0) -> str:
        """Until all these texts stand on the screen; the whole screen."""
        return self.wait_for(lambda screen: all(text in screen for text in wanted), repr(wanted), seconds)

    def wait_for(self, holds: Callable[[str], bool], what: str, seconds: float = 40.0) -> str:
        """Until something holds of the screen's text. AssertionError shows the screen that was there."""
        end = time.monotonic() + seconds
        while not holds(screen := "\n".join(self.screen())):
            if time.monotonic() > end:
                raise AssertionError(f"{what} did not appear within {seconds:g} s in\n{screen}")
            time.sleep(0.05)
        return screen

    def wait_end(self, seconds: float = 20.0) -> None:
        """Until the program and all its children are gone."""
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            family = [*process.children(recursive=True), process]
            _, alive = psutil.wait_procs(family, seconds)
            assert not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE], alive


class PtyTerminal(Terminal):
    """A pseudo terminal whose output goes through pyte; `output` is all of it as it came."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], size: tuple[int, int]) -> None:
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self.output = b""
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.execvpe(command[0], list(command), dict(env))
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def emulated(self) -> pyte.Screen:
        """The emulator with its title, modes and cursor."""
        return self._screen

    def screen(self) -> list[str]:
        while select.select([self._fd], [], [], 0)[0]:
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:
                break
            if not data:
                break
            self.output += data
            self._stream.feed(data)
        return [self._line(self._screen.buffer[row]) for row in range(self._screen.lines)]

    def _line(self, cells):
        """Not by `Screen.display`, which fails over half a wide character that lost its other half."""
        return "".join(cells[column].data for column in range(self._screen.columns))

    def press(self, *keys: str) -> None:
        for key in keys:
            os.write(self._fd, KEYS[key].encode())
            # An escape that another key follows at once would be the beginning of a sequence.
            time.sleep(0.15)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def resize(self, width: int, height: int) -> None:
        """Become larger or smaller."""
        self._screen.resize(height, width)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def hang_up(self) -> None:
        """Close the terminal's window."""
        os.close(self._fd)
        self._fd = -1

    def exit_code(self) -> int:
        """Wait for the end; a negative code is a signal's. What was written before is in `output`."""
        end = time.monotonic() + 20
        while (ended := os.waitpid(self._pid, os.WNOHANG))[0] == 0:
            assert time.monotonic() < end, "it does not end"
            self.screen()
            time.sleep(0.02)
        self.screen()
        return os.waitstatus_to_exitcode(ended[1])

    def close(self) -> None:
        """End whatever is left."""
        _kill(self._pid)
        with contextlib.suppress(OSError):
            os.close(self._fd)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


class TmuxTerminal(Terminal):
    """A session of a tmux server of its own."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], size: tuple[int, int]) -> None:
        self._socket = f"decdec-test-{uuid.uuid4().hex[:8]}"
        changed = [f"{key}={value}" for key, value in env.items() if os.environ.get(key) != value]
        line = shlex.join(["exec", "env", *changed, *command]).removeprefix("exec ")
        self._tmux("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), f"exec {line}")
        self._pid = int(self._tmux("display-message", "-p", "#{pane_pid}"))

    @property
    def pid(self) -> int:
        return self._pid

    def screen(self) -> list[str]:
        return self._tmux("capture-pane", "-p").splitlines()

    def press(self, *keys: str) -> None:
        for key in keys:
            self._tmux("send-keys", TMUX_KEYS.get(key, key.upper().replace("CTRL+", "C-")))
            time.sleep(0.15)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def close(self) -> None:
        """End the server and whatever is left."""
        _kill(self._pid)
        with contextlib.suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, "-f", os.devnull, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip("\n")


def _kill(pid: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in [*process.children(recursive=True), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGKILL)
