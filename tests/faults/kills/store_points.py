"""What the store does, killed at every boundary: making, replacing, repairing, deleting and moving models."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from app import environment, settings_file
from app.settings import Settings
from runtime import locations, store
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.store import atomic, folders, leftovers, moving, settling
from tests.faults.kills.points import Operation

NAME = "tiny"
SILENT = JobContext.silent()
OLD = {"config.json": b"{}", "model.safetensors": b"w" * 900, "base-rtn4/block-0.safetensors": b"b" * 300}
NEW = {"config.json": b"{ }", "model.safetensors": b"v" * 700}
MORE = OLD | {"base-awq4/block-0.safetensors": b"a" * 200}


def make(files, version):
    """Make the model as a preparation does: what is there already stays."""
    with store.building(NAME, {"source": {"source": "a test"}, "version": version}) as staging:
        for file, content in files.items():
            if not (staging / file).exists():
                atomic.write_bytes(staging / file, content)
        store.publish(NAME, staging, {"source": "a test", "bits_per_weight": 5.0})


def listed():
    """Contents of the listed model, {} where there is none; AssertionError where it is not whole."""
    found = store.models()
    assert [record.name for record in found] in ([], [NAME]), found
    return contents_of(found[0].path) if found else {}


def contents_of(folder):
    """Files of a model, read without the store and compared with its record."""
    files = json.loads((folder / "manifest.json").read_text())["files"]
    contents = {name: (folder / name).read_bytes() for name in files}
    for name, entry in files.items():
        assert len(contents[name]) == entry["bytes"], f"{name} has a wrong size"
        assert hashlib.sha256(contents[name]).hexdigest() == entry["sha256"], f"{name} has a wrong hash"
    return contents


def only(*allowed):
    """A check that the listed model is one of these."""

    def check(place):
        content = listed()
        return [] if content in allowed else [f"listed is {sorted(content)}"]

    return check


def and_nothing_else(*allowed):
    """The same, and that nothing of broken work is left."""
    check = only(*allowed)
    return lambda place: check(place) + litter(place)


def litter(place):
    """Everything that is no model, no lock and no file a person or the program keeps."""
    kept = {"manifest.json", "settings.toml"}
    found = []
    for path in place.rglob("*"):
        parts = path.relative_to(place).parts
        hidden = [part for part in parts if part.startswith(".") and part != ".identity.json"]
        if hidden and not path.name.endswith(".lock") and path.name not in kept:
            found.append(f"left is {'/'.join(parts)}")
    return found


def damage(place):
    """The model, with a file that lost a byte."""
    make(OLD, 1)
    path = folders.final(NAME) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def remove(place):
    try:
        store.remove(NAME)
    except DecdecError:
        assert not store.models()


def half_made(place):
    """What a preparation leaves that was stopped."""
    try:
        with store.building(NAME, {"source": {"source": "a test"}}) as staging:
            atomic.write_bytes(staging / "model.safetensors", b"w" * 500)
            raise DecdecError("Stopped")
    except DecdecError:
        pass


def discard(place):
    leftovers.discard_half_made(NAME)


def filled(place):
    make(OLD, 1)
    for folder in ("downloads/hub-x", "profiles"):
        atomic.write_bytes(place / "home" / folder / "file.json", b"{}")


def moved(place):
    """The move as the settings do it, unless it is done."""
    environment.apply()
    target = place / "other" / "folder"
    if locations.home() != target:
        moving.move(locations.home(), target, lambda: _point_to(target), SILENT)
    else:
        settling.settle()


def _point_to(folder: Path) -> None:
    before, _ = settings_file.load()
    trouble = settings_file.keep(before, Settings(cache_folder=str(folder)))
    assert not trouble, trouble


def copied(place):
    """The move between two disks."""
    moving._same_disk = lambda source, target: False
    moved(place)


def is_there(place):
    """After a kill the next start finds the model, wherever it lies."""
    environment.apply()
    settling.settle()
    return [] if listed() == OLD else ["the model is lost"]


def has_moved(place):
    found = is_there(place)
    found += [] if locations.home() == place / "other" / "folder" else ["it was not moved"]
    left = [name for name in moving.FOLDERS if (place / "home" / name).exists()]
    return found + [f"left is home/{name}" for name in left] + litter(place)


def is_empty(place):
    store.models()
    left = [path.name for path in (place / "home" / "models").glob("*")]
    return [f"left is {name}" for name in left]


def exported(place):
    from runtime.export.destination import appearing

    folder = place / "out"
    if folder.exists():
        return
    with appearing(folder) as temporary:
        for name, content in OLD.items():
            atomic.write_bytes(temporary / name, content)


def export_is_whole(place):
    folder = place / "out"
    whole = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return [] if whole in ({}, OLD) else [f"exported is {sorted(whole)}"]


def nothing(place):
    os.makedirs(place / "home", exist_ok=True)


OPERATIONS = (
    Operation("make a model", nothing, lambda p: make(OLD, 1), only({}, OLD), and_nothing_else(OLD)),
    Operation(
        "make it anew", lambda p: make(OLD, 1), lambda p: make(NEW, 2), only(OLD, NEW), and_nothing_else(NEW)
    ),
    Operation(
        "extend it", lambda p: make(OLD, 1), lambda p: make(MORE, 1), only(OLD, MORE), and_nothing_else(MORE)
    ),
    Operation("repair it", damage, lambda p: make(OLD, 1), only({}, OLD), and_nothing_else(OLD)),
    Operation("delete it", lambda p: make(OLD, 1), remove, only({}, OLD), is_empty),
    Operation("discard half of one", half_made, discard, only({}), is_empty),
    Operation("move, one disk", filled, moved, is_there, has_moved),
    Operation("move, two disks", filled, copied, is_there, has_moved),
    Operation("export", lambda p: make(OLD, 1), exported, export_is_whole, export_is_whole),
)
