"""What a server is started with."""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime.protocol.commands import MAX_SLOWDOWN_PCT, Load
from runtime.server.access import Access


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one client may take from the others.

    `waiting`: answers in the queue. `requests`: requests of any kind at once. `body_bytes`: of a request,
    which must be there within `body_s` seconds, and its head within `head_s`. `reader_s`: how long a client
    may leave what is sent to it unread. `silence_s`: after so long without text a stream gets a comment, so
    that nobody between takes it for dead. `connections`: open at once, `connections_each`: of
    one other machine. `wrong_key_s`: how long a wrong key is not answered.
    """

    waiting: int = 16
    requests: int = 64
    body_bytes: int = 4 << 20
    body_s: float = 30.0
    head_s: float = 10.0
    reader_s: float = 60.0
    silence_s: float = 10.0
    connections: int = 128
    connections_each: int = 32
    wrong_key_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Settings:
    """`load`: how every model is brought into memory; its `model` is the one to begin with, and "default".

    `slowdown_pct`: the slider where a request does not say; models that are not tuned answer at 0.
    `must_slide`: a first model that is not tuned is tuned, for the slider was asked for.
    """

    load: Load
    slowdown_pct: float = 0.0
    must_slide: bool = False
    access: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0.0 <= self.slowdown_pct <= MAX_SLOWDOWN_PCT:
            raise ValueError(f"a slowdown is within 0..{MAX_SLOWDOWN_PCT:g}, not {self.slowdown_pct}")
