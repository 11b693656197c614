"""The part of a file that is here: continued byte by byte, begun anew, checked, put in its place.

Beside it lies a note of the version its bytes are of (the server's ETag), so that a later start asks for the
rest of that version alone. Nothing is ever written through a link.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from runtime.download.answers import valid_etag
from runtime.download.files import RemoteFile, partial_files
from runtime.store import atomic
from runtime.store.hashing import PIECE_BYTES
from runtime.store.oserrors import translated

_MAX_NOTE = 4096
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Partial:
    """One file on its way to `target`. Open between `open` and `close`; `have` bytes of it are here.

    Every method that touches the disk raises DecdecError for what the system refuses (a full disk, no right
    to write); what is there stays.
    """

    def __init__(self, file: RemoteFile, target: Path) -> None:
        self.file, self.target = file, target
        self.path, self._note = partial_files(target)
        self.have, self.etag = 0, ""
        self._descriptor = -1
        self._digest = self._begin_digest()

    def open(self, on_piece: Callable[[int], None] = lambda count: None) -> None:
        """Take up what is there; `on_piece` hears the size of each piece read for the hash and may raise."""
        with self._translated():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = _open_regular(self.path)
            if os.fstat(self._descriptor).st_size > self.file.bytes:
                os.ftruncate(self._descriptor, 0)
            self.etag = self._read_note()
            self._read_again(on_piece)

    @property
    def is_open(self) -> bool:
        """Whether it is being worked on."""
        return self._descriptor >= 0

    def close(self) -> None:
        """Leave what is there for the next start."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def restart(self, etag: str = "") -> None:
        """Forget what is there; what comes is of version `etag`."""
        with self._translated():
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            self.have, self.etag, self._digest = 0, etag, self._begin_digest()
            # Before the first byte: bytes beside an older note would be taken for those of another version.
            self._note.unlink(missing_ok=True)
            if etag:
                with self._note.open("xb") as note:
                    note.write(etag.encode("ascii"))

    def append(self, piece: bytes) -> None:
        """Write the next bytes."""
        with self._translated():
            left = memoryview(piece)
            while left:
                written = os.write(self._descriptor, left)
                self._digest.update(left[:written])
                self.have += written
                left = left[written:]

    def wrong_hash(self, sha256: str = "") -> str:
        """What is wrong with the whole file: empty if its hash is the known one, or none is known.

        `sha256`: what the server said where the file's own record knows no hash.
        """
        known = self.file.sha256 or self.file.git_sha1 or sha256
        found = self._digest.hexdigest()
        return f"its hash is {found}, not {known}" if known and known != found else ""

    def sync(self) -> None:
        """Make what is there durable."""
        with self._translated():
            os.fsync(self._descriptor)

    def finish(self) -> None:
        """Put the whole file, which is durable, in its place."""
        with self._translated():
            self.close()
            os.replace(self.path, self.target)
            self._note.unlink(missing_ok=True)
            atomic.sync_folder(self.target.parent)

    def remove(self) -> None:
        """Delete what is there."""
        self.close()
        with self._translated():
            self.path.unlink(missing_ok=True)
            self._note.unlink(missing_ok=True)

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self.target, f"Downloading {self.file.name}")

    def _begin_digest(self) -> hashlib._Hash:
        if self.file.git_sha1 and not self.file.sha256:
            return hashlib.sha1(b"blob %d\0" % self.file.bytes, usedforsecurity=False)
        return hashlib.sha256()

    def _read_again(self, on_piece: Callable[[int], None]) -> None:
        while piece := os.read(self._descriptor, PIECE_BYTES):
            self._digest.update(piece)
            self.have += len(piece)
            on_piece(len(piece))

    def _read_note(self) -> str:
        with suppress(OSError, UnicodeDecodeError):
            if stat.S_ISREG(self._note.lstat().st_mode):
                return valid_etag(self._note.read_bytes()[: _MAX_NOTE + 1].decode("ascii"))
        return ""


def _open_regular(path: Path) -> int:
    """Open a file of our own to read and write; a link in its place is removed, never followed."""
    flags = os.O_RDWR | os.O_CREAT | _NO_LINK
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink > 1):
            path.unlink()
    descriptor = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(21, "it is no regular file", str(path))
    return descriptor
