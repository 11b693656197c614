"""What is read from a process now and then, and what every piece of an answer took."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

import psutil


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a process, when it had written `tokens`. Sizes in bytes, times in seconds.

    private: of what is resident, what is no page of a file: those come and go as the system needs memory.
    """

    tokens: int
    resident: int
    private: int
    files: int
    threads: int
    processor_s: float
    wall_s: float
    device: Mapping[str, int] = field(default_factory=dict)


def read(process: psutil.Process, tokens: int, device: Mapping[str, int]) -> Reading:
    """Look at the process. Files: descriptors, on Windows handles."""
    with process.oneshot():
        used, memory = process.cpu_times(), process.memory_info()
        return Reading(
            tokens=tokens,
            resident=memory.rss,
            private=memory.rss - getattr(memory, "shared", 0),
            files=process.num_handles() if psutil.WINDOWS else process.num_fds(),
            threads=process.num_threads(),
            processor_s=used.user + used.system,
            wall_s=time.perf_counter(),
            device=dict(device),
        )


class Pieces:
    """Tokens, seconds and place in the context of everything that was shown; flat, for it is watched too."""

    def __init__(self) -> None:
        self.tokens, self.seconds, self.position = array("d"), array("d"), array("d")
        self._answer = 0

    def begin(self) -> None:
        """A new answer."""
        self._answer = len(self.position)

    def add(self, tokens: int, seconds: float, index: int) -> None:
        """So many tokens more, the last of them the answer's `index`th."""
        self.tokens.append(tokens)
        self.seconds.append(seconds)
        self.position.append(index)

    def placed(self, prompt_tokens: int) -> None:
        """The answer stands behind a prompt of so many tokens."""
        for at in range(self._answer, len(self.position)):
            self.position[at] += prompt_tokens
