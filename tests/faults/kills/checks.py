"""What must hold after every kill, looked at from outside: by the program's next start, and on the disk."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import subprocess
import time
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.faults.kills.processes import ENDS_S, GONE_S, PROGRAM, ROOT, Place, left

# Compiled kernels, logs and locks are no results.
BESIDE = ("compiled", "logs", "locks")


def always(place: Place) -> list[str]:
    """No process, no lock, only whole models, settings and a history that can be read."""
    found = [*left(place), *_locked(place), *_models(place), *_settings(place), *_history(place)]
    return found + [f"{path.name} is empty" for path in place.home.glob("*.toml") if not path.stat().st_size]


def told(place: Place, *arguments: str) -> tuple[Any, str]:
    """The JSON that a command gives, None where it fails, and what it says then."""
    done = subprocess.run(
        [*PROGRAM, *arguments], cwd=ROOT, env=place.env(), capture_output=True, text=True, timeout=ENDS_S
    )
    said = f"{done.returncode}: {done.stdout}{done.stderr}"[-400:]
    return (json.loads(done.stdout) if done.returncode == 0 else None), said


def listed(place: Place) -> dict[str, Path]:
    """What `models --json` names, with folders."""
    found, said = told(place, "models", "--json")
    assert found, said
    models = models_folder(place)
    return {each["name"]: models / each["name"] for each in found["models"]}


def models_folder(place: Place) -> Path:
    """Where the settings say that models lie."""
    path = place.home / "settings.toml"
    chosen = tomllib.loads(path.read_text()).get("cache_folder", "") if path.exists() else ""
    return Path(chosen or place.home) / "models"


def answers(place: Place, model: str, base: str = "rtn4") -> list[str]:
    """Whether the next start answers a question with a model."""
    found, said = told(place, "run", "-m", model, "--base", base, "--max-tokens", "2", "--json", "Hello")
    return [] if found and found["completion_tokens"] > 0 else [f"a question is answered with {said}"]


def verifies(place: Place, model: str) -> list[str]:
    """Whether every weight is what the source says."""
    found, said = told(place, "int8x", "verify", model, "--json")
    return [] if found and found["lossless"] else [f"verify says {said}"]


def digests(folder: Path, dated: bool = False) -> dict[str, str]:
    """SHA-256 of every file below a folder but the record, which names its place and time.

    `dated`: the source came anew, and with it the date that the files name it by; that is left out.
    """
    named = ("manifest.json", "config.json", ".identity.json") if dated else ("manifest.json",)
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in named)
    return {
        str(path.relative_to(folder)): hashlib.sha256(_ordered(path, dated)).hexdigest() for path in files
    }


def _ordered(path: Path, dated: bool) -> bytes:
    """A file's bytes; of safetensors with an ordered header, which their writer does not order."""
    content = path.read_bytes()
    if path.suffix != ".safetensors":
        return content
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    if dated:
        header.pop("__metadata__", None)
    return json.dumps(header, sort_keys=True).encode() + content[end:]


def litter(place: Place) -> list[str]:
    """Hidden files and folders that no later start will use."""
    found = []
    for path in place.root.rglob("*"):
        parts = path.relative_to(place.root).parts
        hidden = (
            parts[-1].startswith(".") and not parts[-1].endswith(".lock") and parts[-1] != ".identity.json"
        )
        if hidden and parts[0] != "hf" and not set(parts) & set(BESIDE):
            found.append(f"left is {'/'.join(parts)}")
    return found


def _models(place: Place) -> list[str]:
    wrong = []
    for name, folder in listed(place).items():
        record = json.loads((folder / "manifest.json").read_text())
        for file, entry in record["files"].items():
            path = folder / file
            if (
                not path.is_file()
                or _sha256(path) != entry["sha256"]
                or path.stat().st_size != entry["bytes"]
            ):
                wrong.append(f"{name} is listed, and its {file} is not what the record says")
    return wrong


def _locked(place: Place) -> list[str]:
    """Locks that somebody still holds after a while: a process that ends frees its memory before them."""
    end = time.monotonic() + GONE_S
    while (found := _held(place)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def _held(place: Place) -> list[str]:
    held = []
    for path in (*place.home.glob("locks/*.lock"), *place.home.glob(".*.lock")):
        descriptor = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held.append(f"{path.name} is held")
        finally:
            os.close(descriptor)
    return held


def _settings(place: Place) -> list[str]:
    path = place.home / "settings.toml"
    try:
        tomllib.loads(path.read_text() if path.exists() else "")
    except ValueError as error:
        return [f"the settings are damaged: {error}"]
    return [] if not list(place.home.glob("settings.bad*")) else ["settings were set aside"]


def _history(place: Place) -> list[str]:
    path = place.home / "history.db"
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as connection:
        result = connection.execute("PRAGMA integrity_check").fetchone()[0]
    wrong = [] if result == "ok" else [f"the history is damaged: {result}"]
    return wrong + [f"{bad.name} was set aside" for bad in place.home.glob("*.bad")]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
