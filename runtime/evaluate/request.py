"""What `eval ppl` was asked for, checked before any weight is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import msgspec

from runtime.errors import DecdecError
from runtime.protocol.quality import BALANCED, Quality

BaseName = Literal["bf16", "int8", "int8x", "rtn"]
Select = Literal["bucket", "exact", "static", "random"]
DEFAULT_CONTEXT = 1024

Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Channels = Annotated[int, msgspec.Meta(ge=0, le=1024)]


class Request(msgspec.Struct, frozen=True):
    """Arguments of the job.

    model: name in the store, catalogue name, or path of weights. text: path of a UTF-8 file.
    windows: how many windows of `context` tokens, from the start; None: all whole ones.
    bits: of the base, 3 or 4 for round-to-nearest (4 unless told). scale: granularity of the int8 base's
    scales. quality: of the int8x base, which `bits` sets too. seed: of the random selection.
    """

    model: str
    text: str
    base: BaseName = "rtn"
    bits: float | None = None
    k_chunk: tuple[Channels, ...] = (0,)
    select: Select = "bucket"
    windows: Count | None = None
    context: Annotated[int, msgspec.Meta(ge=2, le=1 << 20)] = DEFAULT_CONTEXT
    scale: Literal["row", "tensor"] = "row"
    quality: Quality = BALANCED
    seed: int = 0

    @classmethod
    def parse(cls, args: dict[str, Any]) -> Request:
        """Read a job's arguments; DecdecError with exit code 2 when they ask for something impossible."""
        given = {key: value for key, value in args.items() if value is not None}
        base = given.get("base", "rtn")
        if base not in get_args(BaseName):
            raise _refused(f"the base {base} cannot be evaluated yet")
        if base == "int8x":
            given["quality"] = Quality.parse(given.get("quality") or _rate(given.pop("bits", None)))
        else:
            given["bits"] = {"bf16": 16, "int8": 8}.get(base, given.get("bits", 4))
            given.pop("quality", None)
        if base == "rtn" and given["bits"] not in (3, 4):
            raise _refused(f"round-to-nearest has 3 or 4 bits, not {given['bits']:g}")
        try:
            request = msgspec.convert(given, cls)
        except msgspec.ValidationError as error:
            raise _refused(str(error)) from error
        if request.base != "rtn" and any(request.k_chunk):
            raise _refused(f"the base {request.base} has no residual to correct with")
        return request

    def rows(self) -> tuple[Row, ...]:
        """One row per k_chunk, in the order asked for."""
        return tuple(Row(self.base, k, self.select) for k in dict.fromkeys(self.k_chunk))


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result: which weights, and how many channels per 1024 are corrected."""

    base: BaseName
    k_chunk: int
    select: Select


def _rate(bits: float | None) -> dict[str, Any]:
    return {"preset": "balanced"} if bits is None else {"bits": bits}


def _refused(why: str) -> DecdecError:
    return DecdecError("This evaluation is not possible", why, code=2)
