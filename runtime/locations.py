"""The only place that knows folders: where models and their work lie, and where a person's own files lie."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

APP = "decdec-chat"
HOME, CACHE = "DECDEC_HOME", "DECDEC_CACHE"


def _asked(variable: str) -> Path | None:
    asked = os.environ.get(variable)
    return Path(asked).expanduser().resolve() if asked else None


def home() -> Path:
    """Where everything big lies: `DECDEC_CACHE`, else `DECDEC_HOME`, else the platform's cache folder.

    Not created here.
    """
    return _asked(CACHE) or usual_home()


def usual_home() -> Path:
    """Where everything big lies unless `DECDEC_CACHE` moves it."""
    return _asked(HOME) or platformdirs.user_cache_path(APP)


def models() -> Path:
    """Prepared models, one folder each."""
    return home() / "models"


def downloads() -> Path:
    """Partly and wholly downloaded source files, kept until a model is prepared."""
    return home() / "downloads"


def profiles() -> Path:
    """Tuning profiles, one JSON file per model and device key."""
    return home() / "profiles"


def pulls() -> Path:
    """What is being fetched beside the chat, one small JSON file a model, until it is ready."""
    return home() / "pulls"


def compiled() -> Path:
    """Cache of compiled CPU kernels (numba)."""
    return home() / "compiled"


def evaluations() -> Path:
    """Answers to evaluations, one file a run, so that a stopped one goes on."""
    return home() / "evaluations"


def locks() -> Path:
    """Lock files between processes."""
    return home() / "locks"


def settings_file() -> Path:
    """The settings a person can edit: in `DECDEC_HOME`, else in the platform's folder for settings."""
    return (_asked(HOME) or platformdirs.user_config_path(APP)) / "settings.toml"


def history_file() -> Path:
    """Conversations: in `DECDEC_HOME`, else in the platform's folder for data, which no cleaner empties."""
    return (_asked(HOME) or platformdirs.user_data_path(APP)) / "history.db"


def old_settings_file() -> Path:
    """Where earlier versions kept settings, as JSON."""
    return usual_home() / "settings.json"
