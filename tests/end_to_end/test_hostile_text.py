"""What a model, a file, a hub or a server writes never drives the terminal, wherever it is shown."""

import json
import sys
from pathlib import Path

import pytest

from tests.app.conftest import MODEL, add_model
from tests.app.history.conversations import said
from tests.app.library.inspection import INSPECTION

pytest.importorskip("fcntl", reason="this system has no pseudo terminals")
from app.history import History
from tests.end_to_end import terminals
from tests.end_to_end.hostile import EVIL, EVIL_LINE, driven

SETTINGS = f"""
model = {json.dumps(MODEL)}
base = {json.dumps(EVIL_LINE)}
device = {json.dumps("x" + EVIL_LINE)}
{json.dumps(EVIL_LINE)} = 1
[system_prompts]
{json.dumps(EVIL_LINE)} = {json.dumps(EVIL_LINE)}
"""
FAILED = {"job": "x", "what": f"No {EVIL}", "why": EVIL, "fix": EVIL}
ROOT = Path(__file__).parents[2]
# One process runs many commands, as each would be run by itself.
COMMANDS = """
import sys
from app.cli import safe_stream
from app.cli.guard import guarded
from app.cli.root import cli
safe_stream.protect()
for line in ARGUMENTS:
    guarded(lambda: cli.main(line, prog_name="decdec-chat", standalone_mode=False))
print("all done")
"""
EVERY = [
    ["run", "hello"], ["run", "--json", "hello"], ["doctor"], ["doctor", "--json"], ["models"],
    ["models", "--json"], ["chats", "list"], ["chats", "list", "--json"], ["chats", "show"],
    ["chats", "delete", EVIL_LINE], ["chats", "import", f"/{EVIL_LINE}.json"], ["settings"],
    ["settings", "--json"], ["int8x", "inspect", "--tensors"], ["int8x", "inspect", "--json"],
    ["rm", EVIL_LINE], ["pull", EVIL_LINE], ["run", "-m", EVIL_LINE, "x"], ["run", "--base", EVIL_LINE, "x"],
    [EVIL_LINE], ["run", "--server", EVIL_LINE, "x"], ["tune"], ["int8x", "verify"],
]  # fmt: skip


@pytest.fixture
def begin(start_in, tmp_path):
    """Start a program with hostile text in its history, its settings and its models."""
    start = start_in(terminals.PtyTerminal)
    add_model(MODEL, source=EVIL)
    history = History()
    history.save(said((EVIL, f"<think>{EVIL}</think>{EVIL}"), title=EVIL_LINE))
    history.close()
    (tmp_path / "home" / "settings.toml").write_text(SETTINGS.replace("\x7f", "\\u007f"), encoding="utf-8")
    return start


def test_no_command_lets_it_through(begin, tmp_path):
    program = tmp_path / "commands.py"
    program.write_text(COMMANDS.replace("ARGUMENTS", ascii(EVERY)), encoding="utf-8")
    inspection = {**INSPECTION, "model": EVIL, "quality": EVIL}
    for each in (*inspection["kinds"], *inspection["tensors"]):
        each |= {"kind": EVIL, "codec": EVIL, "granularity": EVIL, "levels": None}
    doctor = {
        EVIL: EVIL,
        "devices": [{"name": EVIL, "usable": False, "why": EVIL, "fix": EVIL}],
        "x": {EVIL: EVIL},
    }
    terminal = begin(
        program=[sys.executable, str(program)], env={"PYTHONPATH": str(ROOT)},
        replies=[EVIL], note=EVIL, jobs={"doctor": doctor, "int8x_inspect": inspection},
        fail={"tune": FAILED, "int8x_verify": FAILED},
    )  # fmt: skip
    terminal.wait("all done", seconds=60)
    assert terminal.output.count(b"PWNED") > len(EVERY), "nothing hostile was printed"
    assert not driven(terminal.output, terminal.emulated)


def test_the_chat_shows_it_and_is_not_driven(begin):
    terminal = begin(replies=[f"<think>{EVIL}</think>Said {EVIL} end"], rate=0, note=EVIL)
    terminal.wait("Ask anything")
    # Terminals take escapes out of what is pasted; the rest of it arrives.
    terminal.type(f"\x1b[200~pasted {EVIL.replace(chr(27), '')}\x1b[201~")
    terminal.wait("pasted")
    terminal.press("enter")
    terminal.wait("Said", "tok/s")
    terminal.press("f3")
    terminal.wait("Conversations", "PWNED")
    terminal.press("escape")
    terminal.wait("Ask anything")
    terminal.type("/export /nowhere/\u202ex\u009b2J.md")
    terminal.wait("/nowhere")
    terminal.press("enter")
    terminal.wait("cannot be written")
    terminal.press("f2")
    terminal.wait("Catalogue")
    terminal.type("i")
    terminal.wait("Licence", "PWNED")
    assert not driven(terminal.output, terminal.emulated)
    terminal.press("ctrl+q")
    assert terminal.exit_code() == 0
