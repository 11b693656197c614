"""How quick the chat stays while it draws: keys to screen, processor time, the engine's rate, opening a chat.

    python docs/benchmarks/chat_latency.py [--out FOLDER] [--rate 100] [--only list,fence,table]

The chat runs in a pseudo terminal of 100x30 with the scripted engine of the tests, which writes long answers
at a fixed rate. A key is a letter that no answer holds; its time ends when the terminal is sent that letter.
The engine's rate is compared with the same engine whose events nobody draws.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "tests" / "fakes" / "scripted_worker.py"
MODEL = "SmolLM2-135M-Instruct"
KEYS = "жщфцэюячбдлшъыйг"
SIZE = (30, 100)

ANSWERS = {
    "list": "Items:\n\n" + "".join(f"{i}. item {i} with **bold** words and `code`\n" for i in range(1, 301)),
    "fence": "```python\n"
    + "".join(f"value_{i} = compute({i}, name='n{i}')  # line {i}\n" for i in range(1, 501))
    + "```\n",
    "table": "| row | name | value |\n|---|---|---|\n"
    + "".join(f"| {i} | name of row {i} | *{i * 37}* |\n" for i in range(1, 101)),
}


@dataclass(frozen=True)
class Row:
    """One scenario. Times in ms; `cpu`: share of a core; `rate`: tokens/s, and with nobody drawing."""

    scenario: str
    tokens: int
    keys: int
    p50_ms: float
    p95_ms: float
    max_ms: float
    cpu: float
    rate: float
    rate_alone: float


class Terminal:
    """The chat in a pseudo terminal."""

    def __init__(self, env: dict[str, str]) -> None:
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(ROOT)
            os.execvpe(sys.executable, [sys.executable, "-m", "app.cli.main"], env)
        self.process = psutil.Process(pid)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        self.seen = b""

    def read(self, seconds: float) -> bytes:
        """Everything it draws within a time, at least once looked."""
        end, got = time.perf_counter() + seconds, b""
        while (left := end - time.perf_counter()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                break
            got += self._drawn()
        return got

    def wait_for(self, text: str, seconds: float = 30.0) -> float:
        """Seconds until a text is drawn; raises TimeoutError."""
        start, wanted, tail = time.perf_counter(), text.encode(), b""
        while time.perf_counter() - start < seconds:
            if select.select([self.fd], [], [], 0.05)[0]:
                tail = tail[-64:] + self._drawn()
                if wanted in tail:
                    return time.perf_counter() - start
        raise TimeoutError(f"{text!r} was not drawn within {seconds} s")

    def _drawn(self) -> bytes:
        """What is there now; empty when it has ended."""
        try:
            return os.read(self.fd, 1 << 16)
        except OSError:
            return b""

    def type(self, text: str) -> None:
        """Send keys."""
        os.write(self.fd, text.encode())

    def close(self) -> None:
        """End it."""
        self.type("\x11")
        self.read(3.0)
        for child in [*self.process.children(recursive=True), self.process]:
            child.kill()
        os.close(self.fd)


def make_home(folder: Path) -> None:
    """A home with one prepared model, as the tests have it."""
    os.environ["DECDEC_HOME"] = str(folder)
    from runtime import store

    with store.building(MODEL) as staging:
        (staging / "weights.bin").write_bytes(b"x")
        store.publish(MODEL, staging, {"source": "a test", "bits_per_weight": 6.4, "bases": ["awq4"]})


def scripted(folder: Path, answer: str, rate: float) -> tuple[dict[str, str], Path]:
    """Environment with an engine that gives this answer, and where it notes the time of every token."""
    log, script = folder / "times.json", folder / "script.json"
    settings = {
        "replies": [answer],
        "rate": rate,
        "step_s": 0.05,
        "ticks": 2,
        "times": str(log),
        "context": 65536,
    }
    script.write_text(json.dumps(settings))
    worker = shlex.join([sys.executable, str(WORKER), "--script", str(script)])
    env = {
        **os.environ,
        "DECDEC_WORKER": worker,
        "DECDEC_HOME": str(folder / "home"),
        "TERM": "xterm-256color",
    }
    return env, log


def rate_of(log: Path) -> tuple[int, float]:
    """Tokens and tokens/s of the last answer."""
    times = json.loads(log.read_text())
    return len(times), (len(times) - 1) / (times[-1] - times[0])


def alone(env: dict[str, str], log: Path, seconds: float) -> float:
    """The engine's rate when its events go nowhere, over as many seconds."""
    from runtime.protocol import Generate, Load, Message, SetSlowdown
    from runtime.protocol.lines import encode

    log.unlink(missing_ok=True)
    command = shlex.split(env["DECDEC_WORKER"])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=env) as child:
        assert child.stdin is not None
        child.stdin.write(
            encode(Load(MODEL)) + encode(SetSlowdown(5.0)) + encode(Generate((Message("user", "q"),)))
        )
        child.stdin.flush()
        end = time.monotonic() + seconds
        while not log.exists() and time.monotonic() < end:
            time.sleep(0.2)
        child.kill()
    return rate_of(log)[1]


def measure(name: str, folder: Path, rate: float) -> Row:
    """One answer streamed into the chat while somebody types."""
    env, log = scripted(folder, ANSWERS[name], rate)
    length = (len(ANSWERS[name]) / 4) / rate
    calm = alone(env, log, 3 * length)
    log.unlink()
    terminal = Terminal(env)
    try:
        terminal.wait_for("target")
        terminal.read(1.0)
        terminal.type("go\r")
        terminal.read(1.0)
        keys, cpu = _type_until(terminal, log, 3 * length)
    finally:
        terminal.close()
    tokens, drawn = rate_of(log)
    keys.sort()
    p95 = keys[min(len(keys) - 1, int(0.95 * len(keys)))]
    times = (statistics.median(keys), p95, keys[-1])
    return Row(
        name,
        tokens,
        len(keys),
        *(round(1000 * t, 1) for t in times),
        round(cpu, 3),
        round(drawn, 2),
        round(calm, 2),
    )


def _type_until(terminal: Terminal, log: Path, seconds: float) -> tuple[list[float], float]:
    """Key times until the answer is over, and the app's share of a core meanwhile."""
    keys: list[float] = []
    start, before = time.perf_counter(), sum(terminal.process.cpu_times()[:2])
    while not log.exists() and time.perf_counter() - start < seconds:
        key = KEYS[len(keys) % len(KEYS)]
        terminal.read(0.15 + 0.01 * (len(keys) % 13))
        terminal.type(key)
        keys.append(terminal.wait_for(key))
        terminal.read(0.05)
        terminal.type("\x7f")
    return keys, (sum(terminal.process.cpu_times()[:2]) - before) / (time.perf_counter() - start)


def opening(folder: Path, messages: int = 200) -> float:
    """Seconds from Enter in the history to the last message of a chat on screen."""
    env, _ = scripted(folder, "short", 1000)
    os.environ["DECDEC_HOME"] = env["DECDEC_HOME"]
    from app.conversation import Conversation, Turn, TurnState
    from app.history import History

    turns, parent = [], ""
    text = "A paragraph with **bold** words and `code` that is long enough to be wrapped on a screen.\n\n" * 4
    for at in range(messages // 2):
        code = f"```python\nprint({at})\n```\n"
        turns.append(Turn(f"question {at}", f"{text}{code}end{at}", TurnState.DONE, "stop", parent=parent))
        parent = turns[-1].id
    history, _ = History.open()
    conversation = Conversation.of(turns, parent, title="a long chat")
    history.save(conversation)
    history.close()
    terminal = Terminal(env)
    try:
        terminal.wait_for("target")
        terminal.type("\x1bOR")
        terminal.wait_for("a long chat")
        terminal.read(1.0)
        terminal.type("\r")
        return terminal.wait_for(f"end{messages // 2 - 1}")
    finally:
        terminal.close()


def main() -> None:
    """Measure and print; with --out also write chat-latency.json."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--only", default=",".join(ANSWERS))
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_home(folder / "home")
        rows = []
        for scenario in asked.only.split(","):
            rows.append(measure(scenario, folder, asked.rate))
            print(json.dumps(asdict(rows[-1])), flush=True)
        opened = [opening(folder) for _ in range(3)]
        print(json.dumps({"opening_200_messages_s": [round(each, 3) for each in opened]}))
    if asked.out:
        document = {"rows": [asdict(row) for row in rows], "opening_200_messages_s": opened}
        asked.out.mkdir(parents=True, exist_ok=True)
        (asked.out / "chat-latency.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
