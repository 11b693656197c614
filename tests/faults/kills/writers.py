"""Jobs that only write: settings, conversations, and the models from one folder to another."""

from __future__ import annotations

import tomllib
from contextlib import closing
from pathlib import Path

from app.history import History
from tests.faults.kills import checks
from tests.faults.kills.jobs import NAME, empty, with_model
from tests.faults.kills.processes import Place
from tests.faults.kills.rounds import Job

WRITER = ("-m", "tests.faults.kills.writer")
COUNT = 8
WITHOUT_MODEL = {"settings", "history", "chats import", "chats export"}


def one_or_the_other(place: Place) -> list[str]:
    """Both settings that are written together are of one writing."""
    path = place.home / "settings.toml"
    content = tomllib.loads(path.read_text()) if path.exists() else {}
    prompt = content.get("system_prompt", "")
    return [] if prompt == content.get("model", "") * 200 else ["the settings are a mixture"]


def written(place: Place) -> list[str]:
    """The last setting counts, and nothing is left of the writing."""
    return one_or_the_other(place) + checks.litter(place)


def all_that_was_told(place: Place) -> list[str]:
    """Every piece that the writer told as drawn is in the history."""
    said = place.root.parent / f"{place.root.name}.said"
    lines = said.read_text().split("\n")[:-1]
    if len(lines) < 2:
        return []
    with closing(History(place.home / "history.db")) as history:
        conversation = history.load(lines[0])
    kept = " ".join(turn.answer for turn in conversation.turns).split() if conversation else []
    missing = [piece for piece in lines[1:] if piece not in set(kept)]
    return [f"lost: {missing[0]} and {len(missing) - 1} more were drawn and are not kept"] if missing else []


def homes(place: Place) -> tuple[str, str]:
    """The two folders."""
    return str(place.home), str(place.root / "other")


def in_one_place(place: Place) -> list[str]:
    """The model is listed, and lies in one folder only."""
    found = [] if NAME in checks.listed(place) else ["lost: the model is not listed"]
    there = [folder for folder in homes(place) if (Path(folder) / "models" / NAME).exists()]
    return found + ([] if len(there) == 1 else [f"the model lies in {there}"])


def moved(place: Place) -> list[str]:
    """And nothing is left of the moving."""
    return in_one_place(place) + checks.litter(place)


def conversations(place: Place) -> None:
    """A file of conversations."""
    from app.history import files
    from tests.faults.kills import history_points

    files.export_all(history_points.conversations(COUNT), str(place.root / "all.json"))


def whole_imports(place: Place) -> list[str]:
    """Every import is there with all conversations or none."""
    found, said = checks.told(place, "chats", "list", "--json", "--limit", "1000")
    if found is None:
        return [said]
    return (
        []
        if found["total"] % COUNT == 0
        else [f"{found['total']} conversations are there, of {COUNT} a file"]
    )


def kept_chats(place: Place) -> None:
    """Conversations in the history."""
    from app.history import History
    from tests.faults.kills import history_points

    with closing(History(place.home / "history.db")) as history:
        history.add_all(history_points.conversations(COUNT))


def whole_exports(place: Place) -> list[str]:
    """Every exported file is whole."""
    from app.history import files

    return [f"{p.name} is half" for p in place.root.glob("out*.json") if len(files.read(str(p))) != COUNT]


JOBS = (
    Job("settings", empty, lambda p: (*WRITER, "settings"), one_or_the_other, written),
    Job("history", empty, lambda p: (*WRITER, "history"), all_that_was_told, checks.litter),
    Job("move by renaming", with_model, lambda p: (*WRITER, "move", *homes(p)), in_one_place, moved),
    Job("move by copying", with_model, lambda p: (*WRITER, "copy", *homes(p)), in_one_place, moved),
    Job(
        "chats import", conversations, lambda p: ("chats", "import", str(p.root / "all.json")), whole_imports
    ),
    Job(
        "chats export",
        kept_chats,
        lambda p: ("chats", "export", "--all", str(p.root / "out.json")),
        whole_exports,
        whole_exports,
    ),
)
