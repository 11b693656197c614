"""A prepared model on its way from the store to an engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from runtime import store
from runtime.engine.shapes import check_base, check_int8x
from runtime.errors import DecdecError
from runtime.generation.engine import Engine
from runtime.int8x import Int8xReader
from runtime.model.spec import ModelSpec
from runtime.protocol.commands import LOSSLESS, Load
from runtime.protocol.events import Loaded
from runtime.store import ModelRecord
from runtime.tuner.profile import Machine, Profile, read_profile

UNTUNED = "the slider is off until this model is tuned on this machine"
NO_SLIDER = "INT8 needs no slider"

AnyEngine = TypeVar("AnyEngine", bound=Engine, covariant=True)


@dataclass(frozen=True, slots=True)
class LoadedEngine(Generic[AnyEngine]):
    """An engine, the event that announces it, and the folder its tokenizer is in."""

    engine: AnyEngine
    loaded: Loaded
    folder: Path


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A prepared model whose files are there."""

    record: ModelRecord
    reader: Int8xReader
    spec: ModelSpec


def open_model(command: Load) -> OpenedModel:
    """The model a command names. Raises DecdecError where it is not here, damaged, or lacks the base."""
    record = store.find(command.model)
    store.verify_files(record, quick=True)
    reader = Int8xReader(record.path)
    spec = ModelSpec.from_config(reader.config)
    check_int8x(reader, spec)
    _require_base(record, command.base)
    if command.base != LOSSLESS:
        check_base(record.path, command.base, spec)
    return OpenedModel(record, reader, spec)


def find_profile(model: str, base: str, machine: Machine) -> tuple[Profile | None, str]:
    """The tuning that holds on a machine, or None and why there is none."""
    if base == LOSSLESS:
        return None, NO_SLIDER
    found, reason = read_profile(model, base, machine)
    return found, "" if found else reason or UNTUNED


def _require_base(record: ModelRecord, base: str) -> None:
    if base != LOSSLESS and base not in record.record.get("bases", []):
        raise DecdecError(
            f"{record.name} has no {base} base",
            f"it was prepared with {', '.join(record.record.get('bases', [])) or 'none'}",
            f"run: decdec-chat pull {record.name} --base {base}",
        )
