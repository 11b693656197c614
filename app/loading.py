"""How a model is brought into memory, as a person asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.protocol.bases import DEFAULT
from runtime.protocol.commands import Load


@dataclass(frozen=True, slots=True)
class Loading:
    """Options of every load; `Load` says what they mean, and refuses impossible ones with ValueError.

    `base`: the one that is wanted where a model has it; empty: the usual one.
    """

    context: int | None = None
    prompt_correction: bool = True
    kv_bits: int = 16
    base: str = ""

    def __post_init__(self) -> None:
        self.command("")

    def command(self, model: str, base: str = "") -> Load:
        """The command that loads a model so; `base`: instead of the wanted one."""
        return Load(
            model, base or self.base or DEFAULT.name, self.context, self.prompt_correction, self.kv_bits
        )
