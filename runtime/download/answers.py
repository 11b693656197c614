"""What an answer to a request for the rest of a file is worth, by its status and headers alone."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from runtime.download.errors import BusyError, ChangedError, StatusError, UnreachableError
from runtime.download.files import RemoteFile
from runtime.download.limits import retry_after
from runtime.errors import DecdecError

ALWAYS = {"Accept-Encoding": "identity", "User-Agent": "decdec-chat"}
_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)")
_BUSY, _TRY_AGAIN = frozenset({429, 503}), frozenset({408, 425})
_ETAG = re.compile(r'(W/)?"[!\x23-\x7e]{1,512}"')
_PAGE = re.compile(rb"\s*<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The file from `start` on, in pieces. `etag`: its version, empty where the server names none.

    `sha256`: of the whole file, where the server tells.
    """

    start: int
    pieces: AsyncIterator[bytes]
    etag: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for: a file from byte `start` on, of version `etag`. `server`: its name in messages."""

    file: RemoteFile
    start: int = 0
    etag: str = ""
    server: str = "the server"

    @property
    def doing(self) -> str:
        """For messages."""
        return f"Downloading {self.file.name}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers that ask for the rest, or for the whole file should it be another version by now."""
        headers = dict(ALWAYS)
        if self.start:
            headers["Range"] = f"bytes={self.start}-"
            # A weak tag does not promise equal bytes, so a range may not depend on it.
            if self.etag and not self.etag.startswith("W/"):
                headers["If-Range"] = self.etag
        return headers


def valid_etag(text: str) -> str:
    """A version as a server may name one; empty for anything else."""
    return text if _ETAG.fullmatch(text) else ""


def check_status(status: int, headers: Headers, doing: str) -> None:
    """Raise unless a status is a success: BusyError, UnreachableError (try again), StatusError (do not)."""
    if status in (200, 206):
        return
    what = f"{doing} failed"
    why, fix = f"the answer is {status}", "start again later: it goes on where it stopped"
    if status in _BUSY:
        raise BusyError(what, why, fix, retry_after(headers.get("retry-after", "")))
    if status >= 500 or status in _TRY_AGAIN:
        raise UnreachableError(what, why, fix)
    raise StatusError(what, status, headers)


def check_encoding(headers: Headers, doing: str, server: str) -> None:
    """Raise DecdecError for content that is packed although it was asked for as it is."""
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise DecdecError(
            f"{doing} failed",
            f"the answer is packed ({encoding[:20]}), which was not asked for",
            f"check the proxy between this machine and {server}",
        )


def start_of(status: int, headers: Headers, question: Question) -> int:
    """The offset at which an answer begins: the one asked for, or 0 for the whole file.

    Raises ChangedError where the answer does not continue what is here, DecdecError where it is no answer to
    the question, and as `check_status`.
    """
    if status == 416:
        raise ChangedError(f"{question.doing} failed", f"there is nothing from byte {question.start} on")
    check_status(status, headers, question.doing)
    check_encoding(headers, question.doing, question.server)
    if status == 206:
        _check_range(headers, question)
        return question.start
    _check_length(headers, question)
    return 0


def check_first(piece: bytes, headers: Headers, question: Question) -> None:
    """Raise DecdecError where an answer of unknown length begins as a page for people."""
    if "content-length" not in headers and _PAGE.match(piece[:512]):
        raise page_instead(question.doing, question.server)


def page_instead(doing: str, server: str) -> DecdecError:
    """A page for people where data was expected."""
    return DecdecError(
        f"{doing} failed",
        f"a login page or proxy answered instead of {server}",
        "open its address in a browser to see what answers, and check HTTPS_PROXY",
    )


def is_page(headers: Headers) -> bool:
    """Whether an answer calls itself a page for people."""
    return headers.get("content-type", "").strip().lower().startswith(("text/html", "application/xhtml"))


def _check_range(headers: Headers, question: Question) -> None:
    what, size = f"{question.doing} failed", question.file.bytes
    match = _RANGE.fullmatch(headers.get("content-range", "").strip())
    if match is None:
        raise ChangedError(what, "the answer does not say which part of the file it is")
    first, last, total = int(match[1]), int(match[2]), match[3]
    if first != question.start or not first <= last < size:
        raise ChangedError(what, f"asked from byte {question.start}, got bytes {first} to {last}")
    if total != "*" and int(total) != size:
        raise ChangedError(what, f"the server has {total} bytes of it, not {size}")
    now = valid_etag(headers.get("etag", ""))
    if question.etag and now and now != question.etag:
        raise ChangedError(what, "it changed at its source")


def _check_length(headers: Headers, question: Question) -> None:
    length, size = headers.get("content-length"), str(question.file.bytes)
    if length == size:
        return
    if is_page(headers):
        raise page_instead(question.doing, question.server)
    if length is not None:
        raise ChangedError(
            f"{question.doing} failed", f"the server has {length[:20]} bytes of it, not {size}"
        )
