"""What stops a download, by what may help: trying again, beginning anew, or a person."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.errors import DecdecError


class UnreachableError(DecdecError):
    """The other side cannot be reached now; trying again may help."""


class BusyError(UnreachableError):
    """The other side asks for patience. `after_s`: how long, 0 where it does not say."""

    def __init__(self, what: str, why: str = "", fix: str = "", after_s: float = 0.0) -> None:
        super().__init__(what, why, fix)
        self.after_s = after_s


class StalledError(UnreachableError):
    """Bytes come, but so slowly that a new connection may be better."""


class ChangedError(DecdecError):
    """What the server has now does not continue what is here: only beginning anew helps."""


class StatusError(DecdecError):
    """An answer that is neither a file nor worth trying again. `headers` have lower-case names."""

    def __init__(self, what: str, status: int, headers: Mapping[str, str], fix: str = "") -> None:
        super().__init__(what, f"the answer is {status}", fix)
        self.status, self.headers = status, dict(headers)
