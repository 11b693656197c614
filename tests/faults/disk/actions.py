"""What the program writes: each action with what was there before and what a person sees of it after it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import msgspec

from app import settings_file
from app.conversation import Conversation, TurnState
from app.history import History, Recorder, files
from app.library import records
from app.library.pulls import Pull
from app.settings import Settings
from runtime import locations, store
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.store import atomic, moving
from runtime.tasks.records import Records
from runtime.tuner.files import profile_path

SILENT = JobContext.silent()


class Action:
    """`prepare`, then `act` under a fault, then `again` without one. `seen`: what a person has, comparable.

    `heals`: after a disk that refuses everything from one moment on, only `again` brings all of it back.
    """

    heals = False

    def __init__(self, disk: Path, elsewhere: Path) -> None:
        """`disk` is what fails; `elsewhere` never does."""
        self.disk, self.elsewhere, self.told = disk, elsewhere, []
        os.environ["DECDEC_HOME"] = str(disk / "home")
        self.prepare()

    def prepare(self) -> None:
        """What is there before."""

    def act(self) -> None:
        """Raises DecdecError, or says a sentence in `told`."""
        raise NotImplementedError

    def again(self) -> None:
        self.act()

    def seen(self) -> object:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of files."""


def listed_models() -> dict[str, dict[str, str]]:
    """Every listed model's files by their hashes. AssertionError when one of them is not whole."""
    found = {}
    for record in store.models():
        store.verify_files(record, quick=False)
        found[record.name] = digests(record.path)
    return found


def digests(folder: Path) -> dict[str, str]:
    """Every file's hash that the store does not keep for itself."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def content(number: int, size: int) -> bytes:
    """Bytes that differ by number."""
    return (b"%d." % number * size)[:size]


def make(name: str, parts: dict[str, int]) -> None:
    """Make a model, as far as its files are not there."""
    with store.building(name, {"source": {"x": 1}}) as staging:
        for number, (part, size) in enumerate(parts.items()):
            if not (staging / part).exists():
                atomic.write_bytes(staging / part, content(number, size))
        store.publish(name, staging, {"source": "a test", "bits_per_weight": 6.4})


class MakeModel(Action):
    """A model's first files, one in a folder of its own."""

    def act(self) -> None:
        make("m", {"config.json": 300, "model.safetensors": 20_000, "base-rtn4/block.bin": 9_000})

    def seen(self) -> object:
        return listed_models()


class ExtendModel(MakeModel):
    """A model that is there gets a base more. Its folder is renamed for that, and back if that can be."""

    heals = True

    def prepare(self) -> None:
        make("m", {"config.json": 300, "model.safetensors": 20_000})
        make("n", {"config.json": 300})


class KeepSettings(Action):
    def prepare(self) -> None:
        path = locations.settings_file()
        path.parent.mkdir(parents=True)
        path.write_text("# mine\ntheme = 'nord' # stays\n" + "# a long comment\n" * 600)

    def act(self) -> None:
        if trouble := settings_file.keep(Settings(theme="nord"), Settings(theme="nord", model="other")):
            raise DecdecError(trouble)

    def seen(self) -> object:
        settings, problem = settings_file.load()
        return settings.model, settings.theme, "# stays" in locations.settings_file().read_text(), problem


class BeginSettings(Action):
    def act(self) -> None:
        settings_file.begin()

    def seen(self) -> object:
        return locations.settings_file().exists(), settings_file.load()


class ConvertSettings(Action):
    """Settings of an earlier version."""

    def prepare(self) -> None:
        old = locations.old_settings_file()
        old.parent.mkdir(parents=True)
        old.write_text(json.dumps({"model": "kept", "hints": ["a"] * 400}))

    def act(self) -> None:
        if trouble := settings_file.load()[1]:
            raise DecdecError(trouble)

    def seen(self) -> object:
        # Whichever file has it, the choice is there.
        for path in (locations.settings_file(), *locations.home().glob("settings.json*")):
            if path.exists() and "kept" in path.read_text():
                return "kept"
        return "lost"


class NotePull(Action):
    def prepare(self) -> None:
        records.keep(Pull("first", "owner/first"))

    def act(self) -> None:
        if trouble := records.keep(Pull("second", "owner/second")):
            raise DecdecError(trouble)

    def seen(self) -> object:
        return [pull.name for pull in records.unfinished()]


class Profile(Action):
    """A tuning profile in the place of another."""

    path = "p"

    def prepare(self) -> None:
        atomic.write_json(profile_path("m", "rtn4"), {"old": 1})

    def act(self) -> None:
        atomic.write_json(profile_path("m", "rtn4"), {"new": ["x" * 100] * 200})

    def seen(self) -> object:
        return digests(locations.profiles())


class MoveModels(Action):
    """From a good disk to one that fails."""

    heals = True

    def prepare(self) -> None:
        self.source, self.target = self.elsewhere / "home", self.disk / "moved"
        os.environ["DECDEC_HOME"] = str(self.source)
        make("m", {"config.json": 300, "model.safetensors": 20_000, "base/x": 5_000})
        atomic.write_json(profile_path("m", "rtn4"), {"old": 1})
        self.at = self.source

    def act(self) -> None:
        try:
            moving.SPARE, spare = 0, moving.SPARE
            moving.move(self.source, self.target, self._switch, SILENT)
        finally:
            moving.SPARE = spare

    def _switch(self) -> None:
        self.at = self.target

    def again(self) -> None:
        if self.at == self.source:
            self.act()

    def seen(self) -> object:
        there = digests(self.at)
        os.environ["DECDEC_HOME"] = str(self.at)
        models = listed_models()
        os.environ["DECDEC_HOME"] = str(self.source)
        kept = {name: value for name, value in there.items() if name.startswith(moving.FOLDERS)}
        return models, kept


class MoveBack(MoveModels):
    """From the disk that fails, where nothing can be made, to a good one."""

    def prepare(self) -> None:
        super().prepare()
        shutil.move(self.source, self.disk / "home")
        self.source, self.target = self.disk / "home", self.elsewhere / "moved"
        os.environ["DECDEC_HOME"] = str(self.source)
        self.at = self.source


class Answers(Action):
    """Results of an evaluation, line by line, where two are there already."""

    class Line(msgspec.Struct):
        number: int
        text: str

    def prepare(self) -> None:
        self.path = locations.evaluations() / "run.jsonl"
        self._add(range(2))

    def act(self) -> None:
        self._add(range(4))

    def _add(self, numbers: range) -> None:
        with Records(self.path, self.Line, lambda record: "") as kept:
            for number in numbers[len(kept.found) :]:
                kept.add(self.Line(number, "x" * 3000))

    def seen(self) -> object:
        whole = self.path.read_bytes().rpartition(b"\n")[0].splitlines()
        return tuple(msgspec.json.decode(line, type=self.Line).number for line in whole)


class ExportChat(Action):
    def prepare(self) -> None:
        self.disk.joinpath("home").mkdir()
        self.path = self.disk / "home" / "chat.md"
        self.path.write_text("mine")

    def act(self) -> None:
        conversation = Conversation()
        turn = conversation.ask("q" * 5000)
        turn.answer, turn.state = "a" * 9000, TurnState.DONE
        files.export(conversation, str(self.path))

    def again(self) -> None:
        if len(self.seen()) == 1:
            self.act()

    def seen(self) -> dict[str, int]:
        # A disk that lets nothing be removed keeps the half of a file, under a name that nobody sees.
        shown = (path for path in self.path.parent.iterdir() if not path.name.startswith("."))
        return {path.name: len(path.read_bytes()) for path in shown}


class Chat(Action):
    """A conversation beside one that is there: typed, answered token by token, closed."""

    def prepare(self) -> None:
        with_old = History()
        self.old = _said("old question", "old answer " * 300)
        with_old.save(self.old)
        with_old.close()
        self.now = Conversation("be brief")
        self.recorder = Recorder(History(), self.told.append, clock=iter(range(10**6)).__next__)

    def act(self) -> None:
        self.recorder.conversation(self.now)
        turn = self.now.ask("a new question " * 50, "m")
        self.recorder.conversation(self.now)
        for number in range(40):
            self.recorder.turn(self.now, turn)
            turn.state, turn.answer = TurnState.STREAMING, turn.answer + f"word{number} " * 40
        turn.state = TurnState.DONE
        self.recorder.turn(self.now, turn)

    def again(self) -> None:
        if self.told:
            self.recorder.turn(self.now, self.now.last)
        self.recorder.close()

    def seen(self) -> object:
        history = History()
        try:
            found = [history.load(entry.id) for entry in history.page(limit=9).entries]
            texts = {each.turns[0].question[:12]: each.turns[-1].answer for each in found}
            return texts.get("old question") == self.old.last.answer, "a new questi" in texts and (
                texts["a new questi"] == self.now.last.answer
            )
        finally:
            history.close()

    def close(self) -> None:
        self.recorder.close()


def _said(question: str, answer: str) -> Conversation:
    made = Conversation()
    turn = made.ask(question)
    turn.answer, turn.state = answer, TurnState.DONE
    return made


LIGHT = (
    MakeModel, ExtendModel, KeepSettings, BeginSettings, ConvertSettings, NotePull, Profile, MoveModels,
    MoveBack, Answers, ExportChat, Chat,
)  # fmt: skip
