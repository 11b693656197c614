"""Starting the program with the scripted engine, in a terminal of any kind."""

import contextlib
import json
import os
import shlex
import sys

import pytest

from tests.app.conftest import FAKE

REPLY = "The capital of France is **Paris**.\n\n```python\nprint('Paris')\n```\n"
PROGRAM = [sys.executable, "-m", "app.cli.main"]


@contextlib.contextmanager
def _starting(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    opened = []

    def begin(*arguments, size=(100, 30), program=PROGRAM, env=(), **script):
        path = tmp_path / "script.json"
        settings = {"replies": [REPLY, "Second answer."], "rate": 200, "step_s": 0.1, "ticks": 2, **script}
        path.write_text(json.dumps(settings), encoding="utf-8")
        worker = shlex.join([sys.executable, str(FAKE), "--script", str(path)])
        whole = {**os.environ, "DECDEC_WORKER": worker, "TERM": "xterm-256color", "COLUMNS": "", "LINES": ""}
        whole.pop("NO_COLOR", None)
        opened.append(kind([*program, *arguments], {**whole, **dict(env)}, size))
        return opened[-1]

    try:
        yield begin
    finally:
        for terminal in opened:
            terminal.close()


@pytest.fixture
def start_in(tmp_path, monkeypatch):
    """Start the program in a kind of terminal; the scripted engine answers."""
    with contextlib.ExitStack() as stack:
        yield lambda kind: stack.enter_context(_starting(kind, tmp_path, monkeypatch))
