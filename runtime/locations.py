"""The only place that knows folders: where models and their work lie, and where a person's own files lie."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import platformdirs

from runtime.errors import DecdecError

APP = "decdec-chat"
HOME, CACHE = "DECDEC_HOME", "DECDEC_CACHE"


# No folder of such a name can ever be made.
_HOPELESS = frozenset({errno.ELOOP, errno.ENAMETOOLONG})


def home() -> Path:
    """Where everything big lies: `DECDEC_CACHE`, else `DECDEC_HOME`, else the platform's cache folder.

    Not created here. DecdecError, as from all that follow, where no such folder can be.
    """
    return _asked(CACHE) or usual_home()


def usual_home() -> Path:
    """Where everything big lies unless `DECDEC_CACHE` moves it."""
    return _asked(HOME) or _usual(platformdirs.user_cache_path)


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
    return (_asked(HOME) or _usual(platformdirs.user_config_path)) / "settings.toml"


def history_file() -> Path:
    """Conversations: in `DECDEC_HOME`, else in the platform's folder for data, which no cleaner empties."""
    return (_asked(HOME) or _usual(platformdirs.user_data_path)) / "history.db"


def old_settings_file() -> Path:
    """Where earlier versions kept settings, as JSON."""
    return usual_home() / "settings.json"


def _asked(variable: str) -> Path | None:
    """The folder that a variable names, whether it is there or not; None where it names none."""
    asked = os.environ.get(variable)
    if not asked:
        return None
    try:
        path = Path(asked).expanduser().resolve()
        str(path).encode()
        path.stat()
    except RuntimeError as error:
        raise _unusable(variable, asked, str(error)) from error
    except UnicodeEncodeError as error:
        # The libraries that read weights and tokenizers take no other names.
        raise _unusable(variable, asked, "its name is not UTF-8") from error
    except OSError as error:
        if error.errno in _HOPELESS:
            raise _unusable(variable, asked, error.strerror or str(error)) from error
    return path


def _unusable(variable: str, asked: str, why: str) -> DecdecError:
    return DecdecError(f"{variable} names no folder ({asked})", why, f"set {variable} to another folder")


def _usual(folder: Callable[[str], Path]) -> Path:
    """A folder of the platform; a user without a home folder has none."""
    try:
        path = folder(APP)
    except RuntimeError:
        path = Path()
    if not path.is_absolute():
        raise DecdecError("There is no folder to keep anything in", "your user has no home", f"set {HOME}")
    return path
