"""The `tokenizers` library, driven by a file from outside: where it panics or hangs, the file is refused.

Its patterns may backtrack for minutes and its panics are no ordinary exceptions. A long text is therefore
encoded in a thread of its own, which cannot be stopped but can be left behind.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import tokenizers

from runtime.errors import DecdecError
from runtime.panics import is_failure

# One text at a time needs no pool of threads, and a pool complains when a process is started after it.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

MAX_SECONDS = 1.5
# Slower than any machine with any usable tokenizer.
CHARACTERS_PER_SECOND = 20_000
POLL_SECONDS = 0.05
# A thread may stand still without taking any processor time.
MOST_WAIT = 20
# No pattern takes long to fail on so few characters.
SHORT_TEXT = 16


class Backend:
    """One tokenizer. Loading and encoding raise DecdecError where the library fails, or takes absurdly long.

    Looking up one token or id cannot fail, and happens for every token of an answer.
    """

    def __init__(self, document: str, path: Path) -> None:
        """`document`: the content of a tokenizer.json; `path` names it in messages."""
        self._path = path
        self._left_behind = False
        with self._refusing():
            self._library: Any = tokenizers.Tokenizer.from_str(document)

    @property
    def vocab_size(self) -> int:
        """Ids are below this number, added tokens included."""
        with self._refusing():
            return int(self._library.get_vocab_size(with_added_tokens=True))

    @cached_property
    def longest_token(self) -> int:
        """Characters of a token's longest name; but for a normaliser's work, none stands for more."""
        with self._refusing():
            return max(map(len, self._library.get_vocab(with_added_tokens=True)), default=1)

    def id_of(self, token: str) -> int | None:
        """A token's id by its exact name."""
        found = self._library.token_to_id(token)
        return None if found is None else int(found)

    def token_of(self, token_id: int) -> str | None:
        """A token's name."""
        name: str | None = self._library.id_to_token(token_id)
        return name

    def first_ids(self) -> list[int]:
        """What is put around an empty text."""
        with self._refusing():
            return list(self._library.encode("", add_special_tokens=True).ids)

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        """Ids of a text, nothing added. `plain`: tokens marked special are text like any other."""
        return self.encode_all([text], plain=plain)[0]

    def encode_all(self, texts: Sequence[str], *, plain: bool = False) -> list[list[int]]:
        """Ids of several texts, each by itself, within the time of one as long as all."""
        self._library.encode_special_tokens = plain
        length = sum(map(len, texts))
        if length <= SHORT_TEXT:
            return self._encoded(texts)
        return self._within_time(lambda: self._encoded(texts), length)

    def _encoded(self, texts: Sequence[str]) -> list[list[int]]:
        # Unlike `encode`, the call for several texts lets other threads run.
        with self._refusing():
            return [list(each.ids) for each in self._library.encode_batch(texts, add_special_tokens=False)]

    def _within_time(self, work: Callable[[], list[list[int]]], length: int) -> list[list[int]]:
        if self._left_behind:
            raise self._too_slow()
        result: list[list[list[int]] | BaseException] = []

        def run() -> None:
            try:
                result.append(work())
            except BaseException as error:
                result.append(error)

        thread = threading.Thread(target=run, name="tokenizer", daemon=True)
        thread.start()
        _wait(thread, MAX_SECONDS + length / CHARACTERS_PER_SECOND)
        if not result:
            self._left_behind = True
            raise self._too_slow()
        if isinstance(result[0], BaseException):
            raise result[0]
        return result[0]

    def _too_slow(self) -> DecdecError:
        return self._refused("it takes absurdly long to cut a text into tokens")

    def _refused(self, why: str) -> DecdecError:
        return DecdecError(f"{self._path} cannot be used", why, "prepare the model again, or choose another")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except DecdecError:
            raise
        except BaseException as error:
            if not is_failure(error):
                raise
            raise self._refused(_first_words(error)) from error


def _wait(thread: threading.Thread, seconds: float) -> None:
    """Until the thread ends, or has had its processor time; on a busy machine that comes later."""
    started = time.monotonic()
    while thread.is_alive() and time.monotonic() - started < MOST_WAIT * seconds:
        thread.join(POLL_SECONDS)
        if thread.is_alive() and _processor_time(thread, started) > seconds:
            return


def _processor_time(thread: threading.Thread, started: float) -> float:
    """Seconds; where a thread's cannot be told, those since it started."""
    with suppress(psutil.Error, OSError):
        for each in psutil.Process().threads():
            if each.id == thread.native_id:
                return float(each.user_time + each.system_time)
    return time.monotonic() - started


def _first_words(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
