"""When memory runs out: recognise it, say it in numbers, give back what can be given. Light by contract."""

from __future__ import annotations

import contextlib
import gc
import re
import sys

import psutil

from runtime.store.units import in_words

_ALLOCATION_FAILED = ("can't allocate memory", "not enough memory", "out of memory")
_AMOUNT = r"(\d+(?:\.\d+)?) ?(bytes|[KMGTPE]iB)"
_WANTED, _FREE = re.compile(rf"allocate {_AMOUNT}"), re.compile(rf"of which {_AMOUNT} is free")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MAX_TEXT = 300


def is_out_of_memory(error: BaseException) -> bool:
    """Whether host or device memory could not be had."""
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError) or (torch and isinstance(error, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error).lower() for text in _ALLOCATION_FAILED)


def shortage(error: BaseException) -> str:
    """Why memory ran out, as a fragment of a sentence: how much was wanted where, as far as `error` tells."""
    wanted, free = _bytes(_WANTED, error), _bytes(_FREE, error)
    if wanted is None and str(error):
        return first_line(error)
    where = "of host memory" if free is None else "of the GPU's memory"
    free = psutil.virtual_memory().available if free is None else free
    needed = "" if wanted is None else f"{in_words(wanted)} more were needed and "
    return f"{needed}{in_words(free)} {where} are free"


def first_line(error: BaseException) -> str:
    """An exception's kind and the first line of its text."""
    text = " ".join(str(error).split("\n", 1)[0].split())[:_MAX_TEXT]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def release_memory() -> None:
    """Give back what a failed step held."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        with contextlib.suppress(RuntimeError):
            torch.cuda.empty_cache()


def _bytes(amount: re.Pattern[str], error: BaseException) -> int | None:
    found = amount.search(str(error))
    return None if found is None else int(float(found[1]) * 1024 ** _UNITS.index(found[2]))
