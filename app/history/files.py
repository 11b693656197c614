"""Files that people name: where a conversation is written to, and what is read."""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path

from app import format
from app.conversation import Conversation
from app.history import document, markdown
from app.history.titles import heading
from app.text import one_line
from runtime.errors import DecdecError
from runtime.store import atomic
from runtime.store.oserrors import FULL, full_words

MAX_BYTES = 64 << 20
MARKDOWN, JSON = ".md", ".json"
# Bytes of a name that every file system takes, with room for a number and an ending.
_MAX_NAME = 80


def default_name(conversation: Conversation, ending: str = MARKDOWN) -> str:
    """A name of the title's words that any system accepts: `chat-capital-of-france.md`."""
    title = unicodedata.normalize("NFC", heading(conversation).lower())
    words = "".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in title)
    cut = "-".join(words.split()).encode("utf-8", "ignore")[:_MAX_NAME].decode("utf-8", "ignore").strip("-")
    return f"chat-{cut or 'untitled'}{ending}"


def proposed(conversation: Conversation) -> Path:
    """Where it is written when nobody says anything else: a free name in the current folder."""
    return next(path for path in _names(Path(default_name(conversation))) if not path.exists())


def export(conversation: Conversation, wish: str = "") -> Path:
    """Write a conversation; the ending decides how: .md to read, .json with everything. Gives the file.

    A folder gets a file named by the title. A name that is taken gets a number, nothing is overwritten.
    """
    path = _target(conversation, wish)
    if path.suffix.lower() == JSON:
        return write(path, document.encode([conversation]))
    return write(path, markdown.document(conversation).encode("utf-8", "replace"))


def export_all(conversations: Collection[Conversation], wish: str) -> Path:
    """Write many conversations into one .json file. Gives the file."""
    if not conversations:
        raise DecdecError("There is nothing to export")
    path = _expanded(wish)
    if path.suffix.lower() != JSON:
        raise DecdecError(f"{_shown(path)} cannot be written", "many conversations need a .json file")
    return write(path, document.encode(conversations))


def write(path: Path, data: bytes) -> Path:
    """Write a new file, under a free name like this one."""
    try:
        with _beside(path, data) as whole:
            return next(free for free in _names(path) if _took(whole, free))
    except (OSError, ValueError) as error:
        raise _refused(path, "written", error) from error


def read(wish: str) -> list[Conversation]:
    """The conversations of a file that a person named. DecdecError when there are none in it."""
    path = _expanded(wish)
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is no file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _refused(path, "read", error) from error
    if len(data) > MAX_BYTES:
        raise DecdecError(f"{_shown(path)} cannot be read", f"it is larger than {format.size(MAX_BYTES)}")
    try:
        return document.decode(data)
    except ValueError as error:
        raise DecdecError(f"{_shown(path)} holds no conversations of decdec-chat", str(error)) from error


def _target(conversation: Conversation, wish: str) -> Path:
    if not wish.strip():
        return proposed(conversation)
    path = _expanded(wish)
    if wish.rstrip().endswith(("/", os.sep)) or os.path.isdir(path):
        return path / default_name(conversation)
    if not path.suffix:
        return path.with_name(path.name + MARKDOWN)
    if path.suffix.lower() not in (MARKDOWN, JSON):
        raise DecdecError(
            f"{_shown(path)} cannot be written", f"{path.suffix} is no kind of export", "use .md or .json"
        )
    return path


def _expanded(wish: str) -> Path:
    text = wish.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise DecdecError(f"{one_line(text)} cannot be used", str(error)) from error


def _names(path: Path) -> Iterator[Path]:
    """`chat.md`, `chat-2.md`, `chat-3.md`, and so on."""
    yield path
    for number in count(2):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


@contextlib.contextmanager
def _beside(path: Path, data: bytes) -> Iterator[Path]:
    """A file with all of the data, on disk, in the folder of `path`; gone behind the block."""
    whole = atomic.temporary_for(path)
    try:
        with whole.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield whole
    finally:
        whole.unlink(missing_ok=True)
    atomic.sweep_for(path)


def _took(whole: Path, free: Path) -> bool:
    """Give a whole file a name that nothing has, in one step; False where something has it."""
    try:
        os.link(whole, free)
    except FileExistsError:
        return False
    except OSError:
        return _renamed(whole, free)
    return True


def _renamed(whole: Path, free: Path) -> bool:
    """Where the file system knows no links: an empty file keeps the name until the whole one has it."""
    try:
        free.open("xb").close()
    except FileExistsError:
        return False
    try:
        os.replace(whole, free)
    except BaseException:
        free.unlink(missing_ok=True)
        raise
    return True


def _refused(path: Path, done: str, error: Exception) -> DecdecError:
    what = f"{_shown(path)} cannot be {done}"
    if isinstance(error, OSError) and error.errno in FULL:
        return DecdecError(what, full_words(path, error.errno), "free some space, or name another folder")
    return DecdecError(what, getattr(error, "strerror", None) or str(error))


def _shown(path: Path) -> str:
    return one_line(str(path))
