"""What a person can set, and which values are possible."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from app.loading import Loading
from app.slider import DEFAULT_SLOWDOWN_PCT, MAX_SLOWDOWN_PCT
from app.slider.floor import MAX_FLOOR
from runtime import device
from runtime.protocol.commands import Sampling

MAX_TOKENS = 1 << 24
MAX_SEED = (1 << 63) - 1


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the chat remembers between starts. `untuned`: models whose tuning was declined.

    `context`, `prompt_correction`, `kv_bits`, `base`: how models are loaded where the command line says
    nothing.
    `slowdown_lossless`: the slider stands beyond its right end.
    `auto_floor`: tokens/s that the slider's "auto" keeps, 0: auto is off. `hints`: first-use hints already
    seen; `show_hints`: whether more may come. `keys`: Textual key lists by an action's name, where they
    differ from the usual ones. `device`, `hub_endpoint`: as DECDEC_DEVICE and HF_ENDPOINT, which go before.
    `cache_folder`: as DECDEC_CACHE, where models lie. Empty text: whatever is usual.
    """

    model: str = ""
    system_prompt: str = ""
    slowdown_pct: float = DEFAULT_SLOWDOWN_PCT
    theme: str = "decdec-dark"
    untuned: tuple[str, ...] = ()
    context: int | None = None
    prompt_correction: bool = True
    kv_bits: int = 16
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    system_prompts: dict[str, str] = {}
    auto_floor: float = 0.0
    hints: tuple[str, ...] = ()
    show_hints: bool = True
    keys: dict[str, str] = {}
    device: str = ""
    hub_endpoint: str = ""
    cache_folder: str = ""
    base: str = ""
    slowdown_lossless: bool = False

    @property
    def loading(self) -> Loading:
        """How models are loaded."""
        return Loading(self.context, self.prompt_correction, self.kv_bits, self.base)

    def __post_init__(self) -> None:
        _ = self.loading
        _within("slowdown_pct", self.slowdown_pct, 0.0, MAX_SLOWDOWN_PCT)
        _within("auto_floor", self.auto_floor, 0.0, MAX_FLOOR)
        _within("max_tokens", self.max_tokens, 1, MAX_TOKENS)
        _within("seed", self.sampling.seed, 0, MAX_SEED)
        if device.understood(self.device) is None:
            raise ValueError(f"device must be auto, cpu, cuda or cuda:N, not {self.device!r}")
        if self.hub_endpoint and not re.fullmatch(r"https?://[^\s/]+\S*", self.hub_endpoint):
            raise ValueError(f"hub_endpoint must begin with https:// or http://, not {self.hub_endpoint!r}")
        if self.cache_folder and not Path(self.cache_folder).expanduser().is_absolute():
            raise ValueError(f"cache_folder must be a whole path, not {self.cache_folder!r}")


def _within(name: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        raise ValueError(f"{name} must be between {low:g} and {high:g}, not {value:g}")


FIELDS = msgspec.structs.fields(Settings)
# Fields that are tables of a file, and fall back entry by entry.
TABLES = ("sampling", "system_prompts", "keys")
_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def checked(raw: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """Settings from a file's content, and a sentence about each thing in it that is left out.

    Only what is wrong falls back to its default.
    """
    problems: list[str] = []
    good: dict[str, Any] = {}
    for name, part in _parts(raw):
        try:
            msgspec.convert(part, Settings)
        except msgspec.ValidationError as error:
            problems.append(f"{name} in the settings is not used: {_reason(error)}.")
        else:
            _merge(good, part)
    if unknown := unknown_names(raw):
        problems.append(f"The settings have {', '.join(unknown)}, which this version does not know.")
    return msgspec.convert(good, Settings), problems


def unknown_names(raw: Mapping[str, Any]) -> list[str]:
    """Names in a file's content that mean nothing here."""
    known = {field.name for field in FIELDS}
    sampling = raw.get("sampling")
    inner = sampling if isinstance(sampling, dict) else {}
    odd = set(inner) - {field.name for field in msgspec.structs.fields(Sampling)}
    return sorted([*(set(raw) - known), *(f"sampling.{name}" for name in odd)])


def _parts(raw: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every value by itself, so that one that is wrong spoils no other."""
    for name, value in raw.items():
        if name in TABLES and isinstance(value, dict):
            for key, entry in value.items():
                yield f"{name}.{key}", {name: {key: entry}}
        else:
            yield name, {name: value}


def _merge(into: dict[str, Any], part: dict[str, Any]) -> None:
    for name, value in part.items():
        if name in TABLES:
            into.setdefault(name, {}).update(value)
        else:
            into[name] = value


def _reason(error: msgspec.ValidationError) -> str:
    """msgspec's message in plain words: without the place in the document, and with names for types."""
    text = re.sub(r" - at `.*$", "", str(error), flags=re.DOTALL)
    found = re.fullmatch(r"Expected `([^`]*)`, got `([^`]*)`", text)
    if not found:
        return text
    wanted = [_KINDS.get(kind, kind) for kind in found[1].split(" | ") if kind != "null"]
    return f"it must be {' or '.join(wanted)}, not {_KINDS.get(found[2], found[2])}"
