"""A worker without an engine: speaks the protocol from a script, for tests of everything in front of it.

    python tests/fakes/scripted_worker.py [--script FILE.json] [--untuned] [--rate N] [--step-s S] [--text T]
        [--fail COMMAND]… [--crash COMMAND]…

The script holds the same settings as JSON (see `Script`). A user message "!crash", "!fail" or "!long" makes
that very answer die, fail, or go on for 5000 tokens; "!break" dies after three, "!echo" answers with the
command itself as JSON. A reply ends before a stop string. COMMAND is a command's tag or a job's name.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from runtime.errors import DecdecError, Interrupted
from runtime.protocol import commands as c
from runtime.protocol import events as e
from runtime.protocol.lines import decode_command, encode

ANSWER = "The capital of France is **Paris**; caf\u00e9s and \u6771\u4eac \U0001f600 too."
# The table gets richer along the slider, as a tuned one does.
PATH = tuple(
    e.SlowdownPoint(pct, e.KChunk(4 * i, 2 * i, 8 * i, 4 * i))
    for i, pct in enumerate([0.0, 1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0])
)
# What tuning finds: microseconds of every kind without correction, and where its curve begins to rise.
BASE_US = {"qkv": 44.5, "o": 30.0, "gate_up": 106.0, "down": 59.0}
KNEES = {"qkv": 32, "o": 64, "gate_up": 16, "down": 24}
INPUTS = {"qkv": 576, "o": 576, "gate_up": 576, "down": 1536}
RUNGS = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192)
PREPARE_STEPS = [
    ("download", 92_871_040, "bytes"),
    ("sensitivity", 60, "blocks"),
    ("encode", 134_515_008, "weights"),
    ("quantise", 30, "blocks"),
]


def curve_us(kind: str, k: int) -> float:
    """What k channels of 1024 add: a start, and a slope behind the knee."""
    return 0.02 * BASE_US[kind] + 0.1 * max(0, k - KNEES[kind])


class Script(msgspec.Struct, forbid_unknown_fields=True):
    """What the fake does. `step_s`: seconds per progress step; `rate`: tokens per second, 0: no waiting;
    `broken`: models that cannot be loaded; `job_s`: as `step_s`, of single jobs.
    `times`: a file that is given the time of every token at the end of an answer.

    `note`: of a loaded model, where `{load.context}` and such stand for what was asked for.
    """

    replies: tuple[str, ...] = (ANSWER,)
    rate: float = 50.0
    step_s: float = 0.4
    job_s: dict[str, float] = {}
    ticks: int = 8
    untuned: bool = False
    lossless: bool = True
    device: str = "cpu (fake)"
    context: int = 2048
    note: str = ""
    times: str = ""
    fail: dict[str, e.Failed] = {}
    crash: list[str] = []
    broken: list[str] = []
    jobs: dict[str, dict[str, object]] = {}


class Shared:
    """State that the reading thread changes while a command runs."""

    def __init__(self) -> None:
        self.pct, self.lossless = 0.0, False
        self.pending: list[threading.Event] = []
        self.lock = threading.Lock()
        self.inbox: queue.Queue[tuple[c.Command, threading.Event]] = queue.Queue()

    def accept(self, command: c.Command) -> None:
        """Queue a command, or act at once on a stop or a slider move."""
        with self.lock:
            if isinstance(command, c.Stop | c.Quit):
                for stop in self.pending:
                    stop.set()
            if isinstance(command, c.SetSlowdown):
                self.pct, self.lossless = command.pct, command.lossless
            if not isinstance(command, c.Stop):
                self.pending.append(stop := threading.Event())
                self.inbox.put((command, stop))


class FakeWorker:
    """Answers one command after the other."""

    def __init__(self, script: Script) -> None:
        self.script, self.shared = script, Shared()
        self.replies = itertools.cycle(script.replies)
        self.loaded: e.Loaded | None = None
        self.used = 0

    def run(self) -> None:
        """Until Quit, or until stdin closes."""
        threading.Thread(target=self._read, daemon=True).start()
        self._emit(e.Ready(os.getpid()))
        while True:
            command, stop = self.shared.inbox.get()
            if isinstance(command, c.Quit):
                return
            self._run(command, stop)
            with self.shared.lock:
                self.shared.pending.remove(stop)

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self.shared.accept(decode_command(line))
        self.shared.accept(c.Quit())

    def _run(self, command: c.Command, stop: threading.Event) -> None:
        name = command.name if isinstance(command, c.Job) else type(command).__struct_config__.tag
        if name in self.script.crash:
            os._exit(139)
        try:
            if name in self.script.fail:
                failed = self.script.fail[name]
                raise DecdecError(failed.what, failed.why, failed.fix, failed.code)
            self._answer(command, stop)
        except DecdecError as error:
            self._emit(e.Failed(str(name), error.what, error.why, error.fix, error.code))

    def _answer(self, command: c.Command, stop: threading.Event) -> None:
        match command:
            case c.Load():
                self._load(command, stop)
            case c.Prepare():
                self._work("prepare", PREPARE_STEPS, stop)
                self._emit(e.Done("prepare", {"model": command.name or command.model}))
            case c.Tune():
                self._work("tune", [("tune", 40, "points")], stop, self._measured)
                self.script.untuned = False
                self._emit(e.Done("tune", self._tuned(command.model)))
            case c.Job():
                self._work(command.name, [(command.name, 100, "tensors")], stop)
                self._emit(e.Done(command.name, dict(self.script.jobs.get(command.name, {}))))
            case c.Generate():
                self._generate(command, stop)
            case c.SetSlowdown() if self.loaded:
                self._emit(self._stats(0, 0, 0))

    def _load(self, command: c.Load, stop: threading.Event) -> None:
        self.loaded = None
        if command.model in self.script.broken:
            raise DecdecError("The model cannot be loaded", "it needs 900 GB")
        self._work("load", [("load", 30, "blocks")], stop)
        path, reason = (PATH, "") if not self.script.untuned else ((), "not tuned on this device yet")
        context = command.context or self.script.context
        self.loaded = e.Loaded(
            command.model,
            command.base,
            self.script.device,
            context,
            120 << 20,
            path,
            reason,
            self.script.lossless,
            note=self.script.note.format(load=command),
        )
        self.used = 0
        self._emit(self.loaded)

    def _work(
        self,
        job: str,
        steps: list[tuple[str, int, str]],
        stop: threading.Event,
        data: Callable[[int], dict[str, object] | None] = lambda tick: None,
    ) -> None:
        step_s = self.script.job_s.get(job, self.script.step_s)
        for step, total, unit in steps:
            for i in range(self.script.ticks + 1):
                if stop.wait(step_s / self.script.ticks if i else 0):
                    raise Interrupted(continues=True)
                done = total * i // self.script.ticks
                rate = total / step_s if i and step_s else None
                eta = (total - done) / rate if rate else None
                self._emit(e.Progress(job, step, done, total, unit, rate, eta, "", data(i)))

    def _generate(self, command: c.Generate, stop: threading.Event) -> None:
        if self.loaded is None:
            raise DecdecError("Nothing can be generated", "no model is loaded", "load one first")
        question = command.messages[-1].content
        if question == "!crash":
            os._exit(139)
        if question == "!fail":
            raise DecdecError("The answer failed", "the device ran out of memory", "shorten the chat", 1)
        prompt = sum(len(m.content) // 4 + 4 for m in command.messages)
        text, index, reason, times = "", 0, "stop", []
        for piece in self._pieces(command):
            if command.max_tokens is not None and index >= command.max_tokens:
                reason = "length"
                break
            if stop.wait(self._pause()):
                reason = "stopped"
                break
            text, index = text + piece, index + 1
            self._emit(e.Token(piece, index))
            times.append(time.monotonic())
            if index % 10 == 1:
                self._emit(self._stats(prompt, min(self.used, prompt), index))
        last = self._stats(prompt, min(self.used, prompt), index)
        self._emit(last)
        self.used = prompt + index
        if self.script.times:
            Path(self.script.times).write_text(json.dumps(times))
        self._emit(e.Done("generate", self._result(text, reason, last)))

    def _pieces(self, command: c.Generate) -> Iterator[str]:
        reply, question = next(self.replies), command.messages[-1].content
        if question == "!long":
            return (f"word{i} " for i in range(5000))
        if question == "!break":
            return _broken(reply)
        if question == "!echo":
            reply = msgspec.json.encode(command).decode()
        for stop in command.stop:
            reply = reply.partition(stop)[0]
        return (reply[i : i + 4] for i in range(0, len(reply), 4))

    def _pause(self) -> float:
        """A corrected token takes longer by the slider's share."""
        return (1 + self.shared.pct / 100) / self.script.rate if self.script.rate else 0

    def _point(self) -> e.SlowdownPoint:
        path = self.loaded.path if self.loaded else ()
        reached = [p for p in path if p.slowdown_pct <= self.shared.pct]
        return reached[-1] if reached else e.SlowdownPoint(0.0, e.KChunk())

    def _stats(self, prompt: int, reused: int, index: int) -> e.Stats:
        point = self._point()
        measured = point.slowdown_pct * 0.96 if self.loaded and self.loaded.path else None
        speed = self.script.rate / (1 + point.slowdown_pct / 100)
        limit = self.loaded.context_limit if self.loaded else 0
        return e.Stats(
            speed, 0.02, prompt, reused, index, prompt + index, limit, self.shared.pct, measured,
            point.k_chunk, point.k_chunk.total * 30, self.shared.lossless,
        )  # fmt: skip

    def _result(self, text: str, reason: str, stats: e.Stats) -> dict[str, object]:
        assert self.loaded is not None
        return {
            "text": text,
            "model": self.loaded.model,
            "device": self.loaded.device,
            "finish_reason": reason,
            "prompt_tokens": stats.prompt_tokens,
            "completion_tokens": stats.completion_tokens,
            "prefill_s": stats.prefill_s,
            "decode_tokens_per_s": stats.decode_tokens_per_s,
            "slowdown_target_pct": stats.slowdown_target_pct,
            "slowdown_measured_pct": stats.slowdown_measured_pct,
            "k_chunk": msgspec.to_builtins(stats.k_chunk),
            "dropped_messages": 0,
        }

    def _measured(self, tick: int) -> dict[str, object]:
        """Points of a tick: flat up to a knee, then a slope."""
        ks = RUNGS[
            len(RUNGS) * tick // (self.script.ticks + 1) : len(RUNGS) * (tick + 1) // (self.script.ticks + 1)
        ]
        points = [(kind, 0, k, us + curve_us(kind, k)) for k in ks for kind, us in BASE_US.items()]
        return {"base_us": BASE_US, "points": points}

    def _tuned(self, model: str) -> dict[str, object]:
        detents = {str(p.slowdown_pct): p.k_chunk for p in PATH if p.slowdown_pct in (2.5, 5.0, 10.0, 20.0)}
        types = tuple(BASE_US)
        return {
            "model": model,
            "device": self.script.device,
            "base_us": BASE_US,
            "n_tb": dict.fromkeys(types, 1),
            "path": msgspec.to_builtins(PATH),
            "detents": msgspec.to_builtins(detents),
            "report": {
                "base_us": BASE_US,
                "curves": {
                    kind: [(k, us + curve_us(kind, k)) for k in RUNGS] for kind, us in BASE_US.items()
                },
                "knees": KNEES,
                "token": {"us": 10_000.0, "of_us": 6_000.0, "layers": 30, "inputs": INPUTS},
            },
        }

    def _emit(self, event: e.Event) -> None:
        sys.stdout.buffer.write(encode(event))
        sys.stdout.buffer.flush()


def _broken(reply: str) -> Iterator[str]:
    yield from reply[:3]
    os._exit(139)


def _script() -> Script:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--untuned", action="store_true")
    parser.add_argument("--rate", type=float)
    parser.add_argument("--step-s", type=float)
    parser.add_argument("--text", action="append")
    parser.add_argument("--fail", action="append", default=[])
    parser.add_argument("--crash", action="append", default=[])
    args = parser.parse_args()
    settings = json.loads(args.script.read_text(encoding="utf-8")) if args.script else {}
    script = msgspec.convert(settings, Script)
    script.untuned = script.untuned or args.untuned
    script.rate = script.rate if args.rate is None else args.rate
    script.step_s = script.step_s if args.step_s is None else args.step_s
    script.replies = tuple(args.text or script.replies)
    script.crash = script.crash + args.crash
    failure = {
        name: e.Failed(name, "It failed", "the script says so", "change the script") for name in args.fail
    }
    script.fail = {**script.fail, **failure}
    return script


if __name__ == "__main__":
    FakeWorker(_script()).run()
    # The reading thread holds stdin's lock: an orderly shutdown would wait a second for it.
    os._exit(0)
