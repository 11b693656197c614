"""The file that keeps settings: TOML that a person edits and that the chat changes value by value."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from app.options import OPTIONS, Option, Section
from app.settings import FIELDS, TABLES, Settings, checked
from runtime import locations
from runtime.errors import DecdecError

LOCK_S = 2.0
WIDTH = 100
MAX_BYTES, MAX_NAMES = 1 << 20, 1000
# TOML's parsers take longer than the square of the parts of a name.
_DEEP = re.compile(r"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){100}")
_HEAD = """\
# Settings of decdec-chat, read when it starts. A line that begins with # does not count.
# What is changed in the chat is changed here, and nothing else: comments and order stay.
"""
_HEADINGS = {
    Section.ANSWERS: "Answers",
    Section.ENGINE: "How models are loaded, and where",
    Section.LOOK: "Looks",
    Section.NONE: "What the chat remembers by itself",
}


def load() -> tuple[Settings, str]:
    """The settings, and sentences about what is wrong with them (empty: nothing).

    A file that is no TOML is kept beside the next one under `.bad`. Settings that an earlier version kept as
    JSON are taken over once.
    """
    path = locations.settings_file()
    try:
        raw = read(path)[1]
    except FileNotFoundError:
        return _converted()
    except OSError as error:
        return Settings(), f"Settings could not be read ({error.strerror}); defaults are used: {path}."
    except ValueError as error:
        return Settings(), _set_aside(path, error)
    settings, problems = checked(raw)
    return settings, " ".join(problems)


def read(path: Path) -> tuple[str, dict[str, Any]]:
    """A file's text and what it says. ValueError where it is no TOML, or far more than settings are."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 10} kB")
    text = data.decode("utf-8")
    if _DEEP.search(text):
        raise ValueError("a name in it has too many parts")
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if sum(1 + (len(each) if isinstance(each, dict) else 0) for each in found.values()) > MAX_NAMES:
        raise ValueError(f"it has more than {MAX_NAMES} names")
    return text, found


def keep(before: Settings, after: Settings) -> str:
    """Bring what differs into the file; a sentence about trouble, empty when all is well.

    The file is read again first, so that neither a person's edits nor another chat's changes are lost.
    """
    path = locations.settings_file().resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path):
            text, trouble = _present(path)
            # Where the old file is gone, the new one has to say everything.
            text = _changed(text, Settings() if trouble else before, after)
            _replace(path, text)
            return trouble
    except OSError as error:
        return f"Settings could not be saved ({_reason(error, path)}): {path}."
    except DecdecError as error:
        return error.sentence
    except (ValueError, RecursionError) as error:
        return f"Settings could not be saved ({error}): {path}."


def begin() -> None:
    """Make the file if there is none, for a person to edit. DecdecError when that cannot be."""
    from runtime.store import atomic

    path = locations.settings_file()
    if not path.exists():
        _converted()
    if not path.exists():
        atomic.write_bytes(path, template().encode("utf-8"))


def template() -> str:
    """A file in which nothing is set and everything is explained."""
    parts = [_HEAD]
    for section, heading in _HEADINGS.items():
        options = [o for o in OPTIONS if o.section is section and not o.table and o.name not in TABLES]
        parts += [f"\n# {heading}\n" if options else "", *map(_explained, options)]
    for table in TABLES:
        inner = [option for option in OPTIONS if option.table == table]
        about = [_comment(option.help) for option in OPTIONS if option.name == table]
        parts += [f"\n[{table}]\n", *about, *map(_explained, inner)]
    return "".join(parts)


def _explained(option: Option) -> str:
    return f"{_comment(option.help)}# {option.key} = {_usual(option)}\n"


def _comment(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="# ", subsequent_indent="# ") + "\n"


def _usual(option: Option) -> str:
    """What the file shows for an option that is not set, as TOML."""
    from app import toml_text

    return toml_text.shown(option.usual if option.example is None else option.example)


def _present(path: Path) -> tuple[str, str]:
    """The file's text, or a new one's, and what was wrong with the file."""
    try:
        text, _ = read(path)
    except FileNotFoundError:
        return template(), ""
    except ValueError as error:
        return template(), _set_aside(path, error)
    return text, ""


def _changed(text: str, before: Settings, after: Settings) -> str:
    for field in FIELDS:
        old, new = getattr(before, field.name), getattr(after, field.name)
        if old == new:
            continue
        if field.name in TABLES:
            text = _changed_table(text, field.name, old, new)
        elif isinstance(new, tuple):
            text = _set(text, "", field.name, _merged(text, field.name, old, new))
        else:
            text = _set(text, "", field.name, new)
    return text


def _changed_table(text: str, table: str, old: Any, new: Any) -> str:
    """Only entries that differ: others may be another chat's."""
    were, are = (value if isinstance(value, dict) else msgspec.structs.asdict(value) for value in (old, new))
    for key in dict.fromkeys([*were, *are]):
        if were.get(key) != are.get(key):
            text = _set(text, table, key, are.get(key))
    return text


def _merged(text: str, name: str, old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """A list of the file, with what was added and without what was taken out."""
    kept = tomllib.loads(text).get(name, [])
    kept = [str(each) for each in kept] if isinstance(kept, list) else []
    gone = set(old) - set(new)
    return tuple(dict.fromkeys([*(each for each in kept if each not in gone), *new]))


def _set(text: str, table: str, key: str, value: Any) -> str:
    from app import toml_text

    option = next((o for o in OPTIONS if (o.table, o.key) == (table, key)), None)
    if value is None or (option is not None and value == option.usual):
        return toml_text.without(text, table, key, _usual(option) if option else "")
    return toml_text.with_value(text, table, key, list(value) if isinstance(value, tuple) else value)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One chat at a time changes the file."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=LOCK_S):
            yield
    except Timeout:
        why = "another decdec-chat is writing them"
        raise DecdecError("Settings could not be saved", why, "try again") from None


def _reason(error: OSError, path: Path) -> str:
    from runtime.store.oserrors import FULL, full_words

    return full_words(path, error.errno) if error.errno in FULL else error.strerror or str(error)


def _replace(path: Path, text: str) -> None:
    from runtime.store import atomic

    mode = path.stat().st_mode & 0o777 if path.exists() else None
    with atomic.replacing(path) as file:
        file.write(text.encode("utf-8"))
        if mode is not None and os.name != "nt":
            os.fchmod(file.fileno(), mode)


def _converted() -> tuple[Settings, str]:
    """Settings of an earlier version, whose file is renamed once they are in the new one."""
    old = locations.old_settings_file()
    try:
        raw = msgspec.json.decode(old.read_bytes(), type=dict[str, Any])
    except OSError:
        return Settings(), ""
    except ValueError as error:
        return Settings(), _set_aside(old, error)
    settings, problems = checked(raw)
    trouble = keep(Settings(), settings)
    if not trouble:
        with contextlib.suppress(OSError):
            old.replace(old.with_name(f"{old.name}.old"))
    return settings, " ".join([*problems, *filter(None, [trouble])])


def _set_aside(path: Path, error: Exception) -> str:
    bad = _free(path)
    with contextlib.suppress(OSError):
        path.replace(bad)
    return f"Settings were damaged ({error}); defaults are used, the old file is {bad}."


def _free(path: Path) -> Path:
    """A name for a damaged file that takes no other one's place."""
    names = (path.with_suffix(f".bad{index or ''}") for index in itertools.count())
    return next(name for name in names if not name.exists())
