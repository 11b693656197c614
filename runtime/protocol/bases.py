"""Names of low-bit bases: a method and its bits per weight, as `awq3.5`."""

from __future__ import annotations

import re
from typing import Literal, get_args

import msgspec

from runtime.errors import DecdecError
from runtime.protocol.quality import MAX_BITS, MIN_BITS

Method = Literal["rtn", "awq", "squeezellm", "int8x", "packed"]
METHODS: tuple[Method, ...] = get_args(Method)
_NAME = re.compile(r"([a-z0-9]*[a-z])(\d+(?:\.\d+)?)")


class BaseSpec(msgspec.Struct, frozen=True):
    """A base: "rtn", "awq" and "squeezellm" have 3 or 4 bits, or between them a mix of blocks of both;
    "int8x" codes at any rate; "packed" is read from an AWQ or GPTQ checkpoint of 4 bits.
    """

    method: Method
    bits: float

    def __post_init__(self) -> None:
        low, high = self.range
        if not low <= self.bits <= high:
            raise ValueError(f"{self.method} has {low:g} to {high:g} bits, not {self.bits:g}")

    @property
    def range(self) -> tuple[float, float]:
        """Bits that the method can have."""
        if self.method == "int8x":
            return MIN_BITS, MAX_BITS
        return (4.0, 4.0) if self.method == "packed" else (3.0, 4.0)

    @property
    def name(self) -> str:
        """The base's name; folders and commands use it."""
        return f"{self.method}{self.bits:g}"

    @property
    def mixed(self) -> bool:
        """Whether some decoder blocks have 3 bits and others 4."""
        return self.method != "int8x" and self.bits not in (3, 4)

    @classmethod
    def parse(cls, name: str) -> BaseSpec:
        """From a name; DecdecError with exit code 2 for an unknown one."""
        found = _NAME.fullmatch(name)
        try:
            if found is None or found[1] not in METHODS:
                raise ValueError("rtn, awq and squeezellm have 3 to 4 bits, int8x any: awq4, int8x3.4")
            return cls(found[1], float(found[2]))
        except ValueError as error:
            raise DecdecError(f"Base {name!r} is not possible", str(error), code=2) from error


DEFAULT = BaseSpec("awq", 4)
PACKED = BaseSpec("packed", 4)
