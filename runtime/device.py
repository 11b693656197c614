"""Which device answers: what DECDEC_DEVICE asks for, and no silent fall-back from it. Light by contract."""

from __future__ import annotations

import os
import re

from runtime.errors import DecdecError

VARIABLE = "DECDEC_DEVICE"
_FIX = f"unset {VARIABLE}, or set it to cpu"


def require_wanted() -> None:
    """Raise DecdecError unless DECDEC_DEVICE is unset or names a device that answers here: the CPU."""
    if wanted_gpu() is None:
        return
    wanted, why = os.environ[VARIABLE].strip(), "this version answers on the CPU only"
    raise DecdecError(f"The device {wanted} cannot be used", why, f"{_FIX}; decdec-chat doctor shows devices")


def wanted_gpu() -> int | None:
    """The number of the CUDA device that DECDEC_DEVICE names, None for the CPU; DecdecError for neither."""
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted.lower() in ("", "cpu"):
        return None
    found = re.fullmatch(r"cuda(?::(\d{1,3}))?", wanted.lower())
    if found is None:
        raise DecdecError(f"{VARIABLE} is {wanted!r}", "known are cpu, cuda and cuda:N", _FIX)
    return int(found[1] or 0)
