"""What a user asks of a model's INT8 form: a preset, bits per weight, a quality, or a size."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from runtime.errors import DecdecError

ScaleKind = Literal["tensor", "row", "aware"]
Preset = Literal["paper", "balanced", "fine", "small"]
PRESETS: tuple[Preset, ...] = get_args(Preset)

# Bits per weight below which every group would be escapes, and the plain byte above.
MIN_BITS, MAX_BITS = 1.5, 8.0
MIN_KL, MAX_KL = 1e-5, 10.0


def _within(name: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        raise ValueError(f"{name} must be between {low:g} and {high:g}, not {value:g}")


class Quality(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exactly one wish about the decoder's linears.

    preset: "paper" one step absmax/127 per matrix, "fine" one per row, "balanced" and "small" steps by
    sensitivity for a KL of 0.02 and for 3.4 bit/w. bits: per weight, tables and scales counted. kl: nats per
    token against the source, predicted. bytes: of all INT8-X files of the model together.
    """

    preset: Preset | None = None
    bits: float | None = None
    kl: float | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        if sum(wish is not None for wish in (self.preset, self.bits, self.kl, self.bytes)) != 1:
            raise ValueError("give one of a preset, bits, a KL, or a size")
        _within("bits", self.bits, MIN_BITS, MAX_BITS)
        _within("kl", self.kl, MIN_KL, MAX_KL)
        _within("bytes", self.bytes, 1, 1 << 50)

    @property
    def granularity(self) -> ScaleKind:
        """Which scales the linears get."""
        if self.preset == "paper":
            return "tensor"
        return "row" if self.preset == "fine" else "aware"

    @property
    def wish(self) -> Quality:
        """The same with presets that are a rate or a quality spelt out."""
        return {"balanced": Quality(kl=0.02), "small": Quality(bits=3.4)}.get(self.preset or "", self)

    def describe(self) -> str:
        """In a few words, for people."""
        if self.preset:
            return self.preset
        if self.bits is not None:
            return f"{self.bits:g} bit"
        return f"KL {self.kl:g}" if self.kl is not None else f"{self.bytes} bytes"

    @classmethod
    def parse(cls, given: Any) -> Quality:
        """From a job's arguments; DecdecError with exit code 2 for an impossible wish."""
        try:
            return msgspec.convert(given, cls)
        except msgspec.ValidationError as error:
            raise DecdecError("This quality is not possible", str(error), code=2) from error


BALANCED = Quality(preset="balanced")
