"""Where tuning profiles lie. Light by contract: the front end asks whether a model was tuned."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from runtime import locations

CPU = "cpu"


def profile_path(model: str, base: str, device: str = CPU) -> Path:
    """The file of a model and base on a device ("cpu", "cuda:0")."""
    suffix = "" if device == CPU else f".{device.replace(':', '-')}"
    return locations.profiles() / f"{model}.{base}{suffix}.json"


def profile_files(model: str, base: str) -> dict[str, Path]:
    """The profiles there are of a model and base, by device; whether they still hold is not asked."""
    cpu = profile_path(model, base)
    found = {CPU: cpu} if cpu.is_file() else {}
    head = cpu.name.removesuffix("json")
    for path in sorted(_with_head(f"{head}cuda-")):
        number = path.name.removeprefix(f"{head}cuda-").removesuffix(".json")
        if path.suffix == ".json" and number.isdigit():
            found[f"cuda:{number}"] = path
    return found


def was_tuned(model: str, bases: Iterable[str]) -> bool:
    """Whether any base of a model was tuned on any device."""
    return any(profile_files(model, base) for base in bases)


def _with_head(head: str) -> list[Path]:
    """Profiles whose names begin so; none where the folder cannot be read."""
    try:
        return [path for path in locations.profiles().iterdir() if path.name.startswith(head)]
    except OSError:
        return []
