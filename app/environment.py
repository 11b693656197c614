"""What the environment says goes before the settings: variables that it leaves open are set from the file.

Everything else asks the environment alone, in this process and in the engine's.
"""

from __future__ import annotations

import os

from runtime import locations
from runtime.errors import DecdecError

# Fields of the settings, and the variable of each.
VARIABLES = {"device": "DECDEC_DEVICE", "hub_endpoint": "HF_ENDPOINT", "cache_folder": locations.CACHE}
# Variables whose value came from here.
_ours: set[str] = set()


def apply() -> None:
    """Once, at the start. What is wrong with the file is told by whoever reads all of it."""
    path = locations.settings_file()
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, ValueError):
        return
    if text:
        for name, value in _asked(text).items():
            follow(name, value)


def _asked(text: str) -> dict[str, str]:
    """The fields of a file that are variables. Imports are paid for only by those who have some."""
    import tomllib

    try:
        content = tomllib.loads(text)
    except ValueError:
        return {}
    asked = {name: content[name] for name in VARIABLES if content.get(name)}
    if not asked:
        return {}
    from app.settings import checked

    settings, _ = checked(asked)
    return {name: getattr(settings, name) for name in asked}


def present() -> tuple[str, ...]:
    """What an engine that starts now would be given."""
    return tuple(os.environ.get(variable, "") for variable in VARIABLES.values())


def decides(name: str) -> str:
    """The value that the environment gives a field from outside, so that the settings do not count."""
    variable = VARIABLES[name]
    return "" if variable in _ours else os.environ.get(variable, "")


def follow(name: str, value: str) -> bool:
    """Set or clear the variable of a field; False where the environment decides it."""
    variable = VARIABLES[name]
    if decides(name):
        return False
    if value:
        os.environ[variable] = value
        _ours.add(variable)
    else:
        os.environ.pop(variable, None)
        _ours.discard(variable)
    return True


def require_models_folder() -> None:
    """Raise DecdecError where the settings keep the models in a folder that is not there now.

    Else everything would be fetched again, into a folder that the disk hides when it is back.
    """
    if locations.CACHE in _ours and not locations.home().is_dir():
        fix = f"mount its disk, or change cache_folder in {locations.settings_file()}"
        raise DecdecError(f"The folder of the models, {locations.home()}, is not there", "", fix)
