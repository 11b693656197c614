"""What `eval ppl` was asked for, checked before any weight is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import msgspec

from runtime.errors import DecdecError
from runtime.protocol.bases import BaseSpec
from runtime.protocol.quality import BALANCED, Quality

Method = Literal["bf16", "int8", "int8x", "rtn", "awq", "squeezellm"]
Select = Literal["bucket", "exact", "static", "random"]
ResidualBits = Literal[2, 4, 8, "exact"]
METHODS: tuple[Method, ...] = get_args(Method)
SELECTS: tuple[Select, ...] = get_args(Select)
RESIDUALS: tuple[ResidualBits, ...] = get_args(ResidualBits)
DEFAULT_CONTEXT = 1024
_PLAIN: dict[str, float] = {"bf16": 16, "int8": 8}
_NAMED = re.compile(r"([a-z0-9]*[a-z])(\d+(?:\.\d+)?)")

Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Channels = Annotated[int, msgspec.Meta(ge=0, le=1024)]


class BaseWish(msgspec.Struct, frozen=True):
    """Weights to evaluate. bits: as asked for; None where `quality` says it in another way (int8x)."""

    method: Method
    bits: float | None
    quality: Quality | None = None

    @property
    def correctable(self) -> bool:
        """Whether it can have a residual."""
        return self.method not in _PLAIN

    @property
    def name(self) -> str:
        """As `awq3.5`."""
        if self.method in _PLAIN:
            return self.method
        if self.bits is None:
            return f"{self.method} ({(self.quality or BALANCED).describe()})"
        return f"{self.method}{self.bits:g}"


class Request(msgspec.Struct, frozen=True):
    """Arguments of the job.

    model: name in the store, catalogue name, or path of weights. text: path of a UTF-8 file.
    windows: how many windows of `context` tokens, from the start; None: all whole ones.
    residual_bits: of the residual's codes; the product has 4. scale: granularity of the int8 base's scales.
    prompt: so many tokens at the start of each window are prompt: not scored, and corrected in every channel
    (`prompt_correction`) or, as in the paper, in none. continuations: calibrate on the model's own
    continuations of the prompts too. seed: of the random selection.
    """

    model: str
    text: str
    bases: tuple[BaseWish, ...] = (BaseWish("rtn", 4),)
    k_chunk: tuple[Channels, ...] = (0,)
    select: tuple[Select, ...] = ("bucket",)
    residual_bits: tuple[ResidualBits, ...] = (4,)
    windows: Count | None = None
    context: Annotated[int, msgspec.Meta(ge=2, le=1 << 20)] = DEFAULT_CONTEXT
    prompt: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] = 0
    prompt_correction: bool = True
    scale: Literal["row", "tensor"] = "row"
    continuations: bool = False
    seed: int = 0

    @classmethod
    def parse(cls, args: dict[str, Any]) -> Request:
        """Read a job's arguments; DecdecError with exit code 2 when they ask for something impossible.

        `base`, `bits`, `select` and `residual_bits` may be lists; a base may carry its bits in its name.
        """
        given = {key: value for key, value in args.items() if value is not None}
        wishes = _bases(
            _list(given.pop("base", "rtn")), _list(given.pop("bits", [])), given.pop("quality", None)
        )
        given |= {key: _list(given[key]) for key in ("select", "residual_bits") if key in given}
        try:
            request = msgspec.convert(given, cls)
        except msgspec.ValidationError as error:
            raise _refused(str(error)) from error
        request = msgspec.structs.replace(request, bases=wishes)
        if any(request.k_chunk) and not any(base.correctable for base in wishes):
            raise _refused(f"the base {wishes[0].name} has no residual to correct with")
        if request.prompt > request.context - 2:
            raise _refused(
                f"a prompt of {request.prompt} leaves nothing to score in {request.context} tokens"
            )
        return request

    @property
    def corrects_prompt(self) -> bool:
        """Whether prompt positions get every channel corrected."""
        return self.prompt > 0 and self.prompt_correction

    def rows(self) -> tuple[Row, ...]:
        """Base by base, residual by residual, selection by selection; without channels one row a residual."""
        return tuple(dict.fromkeys(row for base in self.bases for row in self._rows(base)))

    def _rows(self, base: BaseWish) -> Iterator[Row]:
        if not base.correctable:
            yield Row(base, 0, self.select[0], self.residual_bits[0])
            return
        for residual in self.residual_bits:
            for select in self.select:
                for k in self.k_chunk:
                    first = self.residual_bits[0] if not self.corrects_prompt else residual
                    yield Row(base, k, select, residual) if k else Row(base, 0, self.select[0], first)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result: which weights, how many channels per 1024 are corrected, which, with what."""

    base: BaseWish
    k_chunk: int
    select: Select
    residual: ResidualBits


def _bases(names: Sequence[str], bits: Sequence[float], quality: Any) -> tuple[BaseWish, ...]:
    wishes = [wish for name in names for wish in _wishes(str(name), bits, quality)]
    if not wishes:
        raise _refused("no base is named")
    return tuple(dict.fromkeys(wishes))


def _wishes(name: str, bits: Sequence[float], quality: Any) -> Iterator[BaseWish]:
    if name in _PLAIN:
        yield BaseWish("bf16" if name == "bf16" else "int8", _PLAIN[name])
        return
    method, wanted = (name, bits) if name in METHODS else _named(name)
    if method == "int8x" and not wanted:
        yield BaseWish("int8x", None, Quality.parse(quality or {"preset": "balanced"}))
    for each in wanted or ([] if method == "int8x" else [4]):
        yield _wish(method, float(each))


def _wish(method: str, bits: float) -> BaseWish:
    try:
        BaseSpec(method, bits)  # type: ignore[arg-type]
    except ValueError as error:
        raise _refused(str(error)) from error
    quality = Quality(bits=bits) if method == "int8x" else None
    return BaseWish(method, bits, quality)  # type: ignore[arg-type]


def _named(name: str) -> tuple[str, list[float]]:
    found = _NAMED.fullmatch(name)
    if found is None or found[1] not in METHODS or found[1] in _PLAIN:
        raise _refused(f"the base {name} is unknown; known are {', '.join(METHODS)}, as awq or awq3.5")
    return found[1], [float(found[2])]


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _refused(why: str) -> DecdecError:
    return DecdecError("This evaluation is not possible", why, code=2)
