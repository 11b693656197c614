"""Which device answers: what DECDEC_DEVICE asks for, and no silent fall-back from it. Light by contract."""

from __future__ import annotations

import os
import re

from runtime.errors import DecdecError

VARIABLE = "DECDEC_DEVICE"


def require_wanted() -> None:
    """Raise DecdecError unless DECDEC_DEVICE is unset or names a device that answers here: the CPU."""
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted.lower() in ("", "cpu"):
        return
    fix = f"unset {VARIABLE}, or set it to cpu"
    if re.fullmatch(r"cuda(:\d{1,3})?", wanted.lower()):
        why = "this version answers on the CPU only"
        raise DecdecError(
            f"The device {wanted} cannot be used", why, f"{fix}; decdec-chat doctor shows devices"
        )
    raise DecdecError(f"{VARIABLE} is {wanted!r}", "known are cpu, cuda and cuda:N", fix)
