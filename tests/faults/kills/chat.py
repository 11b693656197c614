"""The chat on a pseudo terminal, killed while an answer is being written."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shlex
import shutil
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil

from app.history import History
from tests.end_to_end.terminals import PtyTerminal
from tests.faults.kills import checks
from tests.faults.kills.jobs import NAME, with_model
from tests.faults.kills.processes import PROGRAM, ROOT, Place, kill
from tests.faults.kills.rounds import PARTS, WHO, Tally

FAKE = ROOT / "tests" / "fakes" / "scripted_worker.py"
REPLY = "It is Paris."
SPAN_S = 3.0
WAIT_S = 120.0


@dataclass
class ChatKilling:
    """Rounds of chats. `real`: with the engine and a tiny model, else with the scripted worker."""

    real: bool
    root: Path
    shared: Path
    random: random.Random
    number: int = 0

    @property
    def name(self) -> str:
        """What the table calls it."""
        return "real chat" if self.real else "chat"

    def run(self, rounds: int) -> Tally:
        """Kill so many chats."""
        tally, began = Tally(self.name), time.monotonic()
        for _ in range(rounds):
            self._round(tally)
        tally.seconds = time.monotonic() - began
        return tally

    def _round(self, tally: Tally) -> None:
        self.number += 1
        place = Place(self.root / f"{self.name.replace(' ', '-')}-{self.number}", self.shared)
        place.home.mkdir(parents=True)
        with_model(place)
        (place.home / "settings.toml").write_text(
            f'model = "{NAME}"\nuntuned = ["{NAME}"]\nshow_hints = false\n'
        )
        moment, who = self.random.uniform(0.0, SPAN_S), self.random.choice(WHO)
        try:
            found = self._killed_chat(place, moment, who) + self._next_start(place)
        except AssertionError as error:
            found = [str(error)]
        tally.kills, tally.jobs = tally.kills + 1, tally.jobs + 1
        tally.spread[min(PARTS - 1, int(PARTS * moment / SPAN_S))] += 1
        tally.reached[who] += 1
        tally.note(f"chat {self.number}, {who} at {moment:.2f} s", found)
        shutil.rmtree(place.root)

    def _killed_chat(self, place: Place, moment: float, who: str) -> list[str]:
        with self._terminal(place) as terminal:
            terminal.wait(NAME, seconds=WAIT_S)
            return self._killed(terminal, place, moment, who)

    def _killed(self, terminal: PtyTerminal, place: Place, moment: float, who: str) -> list[str]:
        """What is wrong behind a kill in the middle of an answer."""
        terminal.wait("target" if not self.real else "Enter", seconds=WAIT_S)
        question = "Tell me more" if self.real else "!long"
        terminal.ask(question)
        if not self.real:
            terminal.wait("word1", seconds=WAIT_S)
        end = time.monotonic() + moment
        while time.monotonic() < end:
            terminal.screen()
            time.sleep(0.01)
        family = [psutil.Process(terminal.pid), *psutil.Process(terminal.pid).children(recursive=True)]
        kill(terminal.pid, who)
        if who == "worker":
            return self._goes_on(terminal)
        terminal.exit_code()
        screen = "\n".join(terminal.screen())
        _, alive = psutil.wait_procs(family[1:], 30)
        return [f"{each} is left" for each in alive] + checks.always(place) + _kept(place, screen, question)

    def _goes_on(self, terminal: PtyTerminal) -> list[str]:
        """Only the engine died: the same chat answers again, and leaves in order."""
        if not self.real:
            # What is sent before a new engine is up stays in the prompt.
            terminal.wait("SIGKILL", " ready ", seconds=WAIT_S)
            terminal.ask("And now?")
            terminal.wait(REPLY, seconds=WAIT_S)
        terminal.press("ctrl+c", "ctrl+q")
        code = terminal.exit_code()
        return [] if code == 0 else [f"it leaves with {code}"]

    def _next_start(self, place: Place) -> list[str]:
        """The next start answers."""
        found = checks.always(place) + checks.litter(place)
        if self.real:
            return found + (checks.answers(place, NAME) if self.number % 3 == 0 else [])
        with self._terminal(place) as terminal:
            terminal.wait("target", seconds=WAIT_S)
            terminal.ask("And then?")
            terminal.wait(REPLY, seconds=WAIT_S)
            terminal.press("ctrl+q")
            code = terminal.exit_code()
        return found + ([] if code == 0 else [f"the next chat leaves with {code}"]) + checks.always(place)

    @contextlib.contextmanager
    def _terminal(self, place: Place):
        script = place.root.parent / f"{place.root.name}.script"
        script.write_text(json.dumps({"replies": [REPLY], "rate": 60, "step_s": 0.05, "ticks": 2}))
        worker = {"DECDEC_WORKER": shlex.join([sys.executable, str(FAKE), "--script", str(script)])}
        env = place.env(**({} if self.real else worker), COLUMNS="", LINES="", PYTHONPATH=str(ROOT))
        env.pop("NO_COLOR", None)
        terminal = PtyTerminal(PROGRAM, env, (100, 30))
        try:
            yield terminal
        finally:
            terminal.close()
            script.unlink()


def _kept(place: Place, screen: str, question: str) -> list[str]:
    """All that the terminal showed is in the history."""
    with closing(History(place.home / "history.db")) as history:
        entries = history.page().entries
        turn = history.load(entries[0].id).last if entries else None
    if turn is None:
        return [f"lost: {question} was shown and is not kept"]
    words = [int(number) for number in re.findall(r"word(\d+)", screen)]
    wanted = " ".join(f"word{number}" for number in range(max(words, default=-1) + 1))
    if not turn.answer.startswith(wanted):
        return [f"lost: word{max(words)} was shown, kept is …{turn.answer[-40:]!r}"]
    return [] if turn.question == question and not turn.open else [f"kept is {turn}"]
