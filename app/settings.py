"""Settings a person can edit, kept as one JSON file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import msgspec

from app.loading import Loading
from app.slider import DEFAULT_SLOWDOWN_PCT, MAX_SLOWDOWN_PCT
from runtime import locations
from runtime.protocol.commands import Sampling


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the chat remembers between starts. `untuned`: models whose tuning was declined.

    `context`, `prompt_correction`, `kv_bits`: how models are loaded where the command line says nothing.
    `auto_floor`: tokens/s that the slider's "auto" keeps, 0: auto is off. `hints`: first-use hints already
    seen. `keys`: Textual key lists by an action's name, where they differ from the usual ones. `device`,
    `hub_endpoint`: as DECDEC_DEVICE and HF_ENDPOINT, which go before. `cache_folder`: where models lie.
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
    keys: dict[str, str] = {}
    device: str = ""
    hub_endpoint: str = ""
    cache_folder: str = ""

    @property
    def loading(self) -> Loading:
        """How models are loaded."""
        return Loading(self.context, self.prompt_correction, self.kv_bits)

    def __post_init__(self) -> None:
        _ = self.loading
        if not 0.0 <= self.slowdown_pct <= MAX_SLOWDOWN_PCT:
            raise ValueError(f"slowdown_pct must be within 0..{MAX_SLOWDOWN_PCT:g}, not {self.slowdown_pct}")


def load() -> tuple[Settings, str]:
    """The settings and a sentence about trouble with them (empty: none).

    A file that cannot be understood is kept beside the new one under `.bad`, and defaults are used.
    """
    path = locations.settings_file()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Settings), ""
    except FileNotFoundError:
        return Settings(), ""
    except OSError as error:
        return Settings(), f"Settings could not be read ({error.strerror}); defaults are used."
    except (msgspec.DecodeError, ValueError) as error:
        return Settings(), _set_aside(path, error)


def _set_aside(path: Path, error: Exception) -> str:
    bad = path.with_suffix(".bad")
    with contextlib.suppress(OSError):
        os.replace(path, bad)
    return f"Settings were damaged ({error}); defaults are used, the old file is {bad}."


def save(settings: Settings) -> str:
    """Write atomically; a sentence about trouble, empty when all is well."""
    path = locations.settings_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".settings-")
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(settings), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError as error:
        return f"Settings could not be saved ({error.strerror}): {path}"
    return ""
