"""Ways to make a disk refuse, for real where the system allows it; each counts how often it has."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
from pathlib import Path

PAGE = 4096
LARGE = 1 << 30
_NEWNS, _NEWUSER = 0x20000, 0x10000000
_RDONLY, _REMOUNT, _REC, _PRIVATE = 1, 32, 0x4000, 1 << 18
# Where an audit event names the files it is about, if it changes them.
_CHANGES = {
    "os.rename": (0, 1), "os.mkdir": (0,), "os.link": (1,), "os.symlink": (1,), "os.truncate": (0,),
    "os.chmod": (0,), "os.utime": (0,), "sqlite3.connect": (0,), "os.remove": (0,), "os.rmdir": (0,),
}  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def private_mounts() -> bool:
    """Give this process, which must have one thread, mounts of its own; False where that is not allowed."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEWNS if user == 0 else _NEWNS | _NEWUSER):
        return False
    with contextlib.suppress(OSError):
        if user:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    return libc.mount(None, b"/", None, _REC | _PRIVATE, None) == 0


class SmallDisk:
    """A tmpfs that gets as little room as is wanted. OSError where nothing may be mounted."""

    name = "tmpfs"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._mount(0, f"size={LARGE},nr_inodes=100000")

    def limit(self, pages: int) -> None:
        """Leave so many pages free."""
        status = os.statvfs(self.folder)
        used = (status.f_blocks - status.f_bfree) * status.f_frsize
        # A size of nothing would be no limit at all.
        self._mount(_REMOUNT, f"size={max(PAGE, used + pages * PAGE)}")

    def limit_names(self, count: int) -> None:
        """Leave room for so many more files and folders, of any size."""
        status = os.statvfs(self.folder)
        self._mount(_REMOUNT, f"nr_inodes={max(1, status.f_files - status.f_ffree + count)}")

    def read_only(self) -> None:
        """Refuse every change."""
        self._mount(_REMOUNT | _RDONLY, "")

    def used_pages(self) -> int:
        status = os.statvfs(self.folder)
        return (status.f_blocks - status.f_bfree) * status.f_frsize // PAGE

    def lift(self) -> None:
        """Room again."""
        self._mount(_REMOUNT, f"size={LARGE},nr_inodes=100000")

    def close(self) -> None:
        ctypes.CDLL(None).umount2(os.fsencode(self.folder), 2)

    def _mount(self, flags: int, data: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"tmpfs", os.fsencode(self.folder), b"tmpfs", flags, data.encode() or None):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(self.folder))


class Refusals:
    """Fails the n-th change of anything below a folder with a code, and all that follow if it is for good.

    Sees what Python opens, makes, renames, links, removes and syncs; `SizeLimit` sees what is written.
    """

    name = "refused calls"

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self.count, self._at, self._code, self._for_good, self._on = 0, -1, 0, False, False
        self._real_fsync = os.fsync
        os.fsync = self._fsync
        sys.addaudithook(self._hear)

    def arm(self, at: int, code: int = errno.ENOSPC, for_good: bool = False) -> None:
        """Refuse change number `at`; -1 only counts."""
        self.count, self._at, self._code, self._for_good, self._on = 0, at, code, for_good, True

    def lift(self) -> None:
        self._on = False

    def _hear(self, event: str, arguments: tuple) -> None:
        if not self._on:
            return
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES:
            self._met(arguments[0])
        elif places := _CHANGES.get(event):
            # A disk without room still lets go of what it has.
            if event in ("os.remove", "os.rmdir") and self._code in (errno.ENOSPC, errno.EDQUOT):
                return
            for place in places:
                if self._met(arguments[place]):
                    return

    def _fsync(self, descriptor: int) -> None:
        if self._on and sys.platform == "linux":
            self._met(os.readlink(f"/proc/self/fd/{descriptor}"))
        self._real_fsync(descriptor)

    def _met(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike) or not os.fsdecode(path).startswith(self._folder):
            return False
        number, self.count = self.count, self.count + 1
        if number == self._at or (self._for_good and 0 <= self._at < number):
            raise OSError(self._code, os.strerror(self._code), os.fsdecode(path))
        return True


class SizeLimit:
    """No file of this process may grow beyond so many bytes: the system itself refuses the write."""

    name = "file size"

    def __init__(self) -> None:
        import resource

        self._resource = resource
        self._hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

    def limit(self, size: int) -> None:
        self._resource.setrlimit(self._resource.RLIMIT_FSIZE, (size, self._hard))

    def lift(self) -> None:
        self._resource.setrlimit(self._resource.RLIMIT_FSIZE, (self._hard, self._hard))
