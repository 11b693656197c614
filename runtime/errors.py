"""The one error type that may cross the runtime's boundary."""

from __future__ import annotations


class DecdecError(Exception):
    """A failure a user can act on: what failed, why, and what to do.

    Parts are sentence fragments; a final full stop, as libraries' messages have, is dropped. `sentence` joins
    them.
    `code` is the process exit code (1 failed, 2 wrong usage, 130 interrupted).
    """

    def __init__(self, what: str, why: str = "", fix: str = "", code: int = 1) -> None:
        self.what, self.why, self.fix = (part.rstrip(". ") for part in (what, why, fix))
        self.code = code
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """The message as one line: `what: why. Fix.`"""
        head = f"{self.what}: {self.why}" if self.why else self.what
        tail = f" {self.fix[0].upper()}{self.fix[1:]}" if self.fix else ""
        end = "" if tail.endswith(("?", "!", ".")) else "."
        return " ".join(f"{head}.{tail}{end if tail else ''}".split())


class MachineLimit(DecdecError):
    """What was asked for needs more than this machine has: no file of a model is to blame."""


class Interrupted(DecdecError):
    """The user stopped a long job; what is on disk stays usable by the next start.

    `continues`: whether the next start takes up what is done so far.
    """

    def __init__(self, what: str = "Stopped", continues: bool = False) -> None:
        super().__init__(
            what, "", "the next start continues where this one stopped" if continues else "", 130
        )
        self.continues = continues
