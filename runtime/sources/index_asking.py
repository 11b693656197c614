"""Where pip would fetch a wheel from, by the user's own settings; pip is ended before it fetches it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import index_pip

# What a file of metadata may have; more is the wheel itself, which an answer is not worth.
_MAX_BYTES = 1 << 20
_OPTIONS = ["--dry-run", "--no-deps", "--ignore-installed", "--only-binary", ":all:", "--no-cache-dir"]
# Where an index has no metadata beside its wheels, and with an old pip, the answer is the request that pip is
# heard to make for the wheel itself. It is looked for again and again, so no text may make that slow.
_REQUEST = re.compile(
    r"\b(https?://[\w.-]{1,255}:\d{1,5}) \"GET ([^\s?]{1,4000}\.whl(?:\?\S{0,4000})?)"
    r" HTTP/[\d.]{1,9}\" (?:200|30[12378])\b",
    re.ASCII,
)
_USUAL_PORT = re.compile(r"^(http(?=\S*:80$)|https(?=\S*:443$))(\S+):\d+$")


@dataclass(frozen=True, slots=True)
class Location:
    """Where a wheel is. `sha256`: of the whole wheel, empty where the index does not tell it."""

    url: str = field(repr=False)
    sha256: str = ""


class _Archive(msgspec.Struct, frozen=True):
    hashes: dict[str, str] = {}


class _Download(msgspec.Struct, frozen=True):
    url: str
    archive_info: _Archive = _Archive()


class _Item(msgspec.Struct, frozen=True):
    download_info: _Download


class _Report(msgspec.Struct, frozen=True):
    """As far as we read what pip calls its installation report."""

    install: tuple[_Item, ...]


def ask(requirement: str, work: Path, ctx: JobContext) -> Location | DecdecError | None:
    """Where the index has an exact requirement ("name==version"); None where only pip itself can get it.

    A DecdecError where the index does not have it, or cannot be reached. `work` is a folder for what pip
    writes.
    """
    report, temporary = work / "report.json", work / "tmp"

    def enough(text: str) -> bool:
        ctx.check()
        return _REQUEST.search(text) is not None or index_pip.largest_file(temporary) > _MAX_BYTES

    arguments = ["install", "-vv", *_OPTIONS, "--report", str(report), requirement]
    ended = index_pip.run(arguments, temporary, enough)
    location = _reported(report) or _overheard(ended.text)
    if location is None and index_pip.NOT_THERE.search(ended.text):
        return index_pip.failure(requirement, ended.text, work)
    return location if location and _is_open(location.url) else None


def _reported(report: Path) -> Location | None:
    try:
        (item,) = msgspec.json.decode(report.read_bytes(), type=_Report).install
    except (OSError, msgspec.DecodeError, ValueError, RecursionError):
        return None
    found = item.download_info
    return Location(found.url, found.archive_info.hashes.get("sha256", ""))


def _overheard(text: str) -> Location | None:
    """From the first request: what it may be redirected to is an address for once."""
    match = _REQUEST.search(text)
    if match is None:
        return None
    # A proxy of plain HTTP is asked for whole addresses.
    url = match[2] if "://" in match[2] else _USUAL_PORT.sub(r"\1\2", match[1]) + match[2]
    known = re.search(re.escape(url) + r"#sha256=([0-9a-f]{64})\b", text)
    return Location(url, known[1] if known else "")


def _is_open(url: str) -> bool:
    """Whether an address is one of those that we fetch from, without a password in it."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https", "file") and "@" not in parts.netloc
    except ValueError:
        return False
