"""How a model is brought into memory, as a person asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.protocol.bases import DEFAULT
from runtime.protocol.commands import Load


@dataclass(frozen=True, slots=True)
class Loading:
    """Options of every load; `Load` says what they mean, and refuses impossible ones with ValueError."""

    context: int | None = None
    prompt_correction: bool = True
    kv_bits: int = 16

    def __post_init__(self) -> None:
        self.command("")

    def command(self, model: str, base: str = DEFAULT.name) -> Load:
        """The command that loads a model so."""
        return Load(model, base, self.context, self.prompt_correction, self.kv_bits)
