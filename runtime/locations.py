"""The only place that knows folders: everything the app keeps is below `home()`."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def home() -> Path:
    """`DECDEC_HOME`, or the platform's cache folder for decdec-chat. Not created here."""
    override = os.environ.get("DECDEC_HOME")
    return Path(override).expanduser().resolve() if override else platformdirs.user_cache_path("decdec-chat")


def models() -> Path:
    """Prepared models, one folder each."""
    return home() / "models"


def downloads() -> Path:
    """Partly and wholly downloaded source files, kept until a model is prepared."""
    return home() / "downloads"


def profiles() -> Path:
    """Tuning profiles, one JSON file per model and device key."""
    return home() / "profiles"


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
    """The settings a person can edit."""
    return home() / "settings.json"
