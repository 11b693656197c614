"""Changing one value in a TOML text that belongs to a person: everything else stays as it was written.

A key that is not set may stand there as a comment, `# name = value`. Setting it takes the line back in, and
dropping it makes it a comment again, so that what a text says about a key stays beside it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

_HEADER = re.compile(r"\s*\[+\s*(?P<name>[^\]]*?)\s*\]")


def shown(value: Any) -> str:
    """A value as TOML writes it."""
    return tomlkit.item(value).as_string()


def with_value(text: str, table: str, key: str, value: Any) -> str:
    """The text with `key` of a table ("": the top) set. Raises ValueError where it is no TOML."""
    document = _parsed(_taken_in(text, table, key))
    place: Any = document
    if table:
        place = document.get(table)
        if not isinstance(place, dict):
            place = document[table] = tomlkit.table()
    place[key] = _item(value)
    return tomlkit.dumps(document)


def without(text: str, table: str, key: str, usual: str = "") -> str:
    """The text with a key left out; with `usual`, a value as TOML, `# key = usual` stands in its place."""
    document = _parsed(text)
    place: Any = document.get(table) if table else document
    if not isinstance(place, dict) or key not in place:
        return text
    place[key] = 0
    lines = tomlkit.dumps(document).splitlines(keepends=True)
    del place[key]
    for index in _lines_of(lines, table, rf"{re.escape(key)} *= *0\s") if usual else ():
        line = "# " + re.sub(r"= *0", lambda _: f"= {usual}", lines[index], count=1)
        commented = "".join([*lines[:index], line, *lines[index + 1 :]])
        if _says(commented, document.unwrap()):
            return commented
    return tomlkit.dumps(document)


def _taken_in(text: str, table: str, key: str) -> str:
    """The text with the commented line of a key taken in, if there is one and the key is not set."""
    content = _parsed(text).unwrap()
    place = content.get(table) if table else content
    if not isinstance(place, dict) or key in place:
        return text
    lines = text.splitlines(keepends=True)
    for index in _lines_of(lines, table, rf"#\s*{re.escape(key)}\s*="):
        line = lines[index].lstrip("#").lstrip()
        try:
            place[key] = _parsed(line).unwrap()[key]
        except (ValueError, KeyError):
            continue
        taken = "".join([*lines[:index], line, *lines[index + 1 :]])
        if _says(taken, content):
            return taken
    return text


def _lines_of(lines: list[str], table: str, beginning: str) -> Iterator[int]:
    """Lines below a table's header that begin so."""
    here = ""
    for index, line in enumerate(lines):
        if header := _HEADER.match(line):
            here = header["name"]
        elif here == table and re.match(beginning, line):
            yield index


def _says(text: str, content: dict[str, Any]) -> bool:
    """Whether a text has this content: a line within a string looks like any other."""
    try:
        return bool(_parsed(text).unwrap() == content)
    except ValueError:
        return False


def _parsed(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(str(error)) from error


def _item(value: Any) -> Any:
    """Text of several lines is written as such where that reads back as the same."""
    if isinstance(value, str) and "\n" in value:
        written = tomlkit.string(value, multiline=True)
        try:
            if tomllib.loads(f"a = {written.as_string()}") == {"a": value}:
                return written
        except tomllib.TOMLDecodeError:
            pass
    return value
