"""Measurements in processes of their own, which may hang, crash or fill the device without ending the run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

_MOST = 300


def child_json(module: str, arguments: Sequence[str], limit_s: float) -> Any:
    """What `python -m module arguments` prints in its last line; RuntimeError with the reason if nothing."""
    command = [sys.executable, "-m", module, *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=max(limit_s, 0.0), check=False)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"not done after {error.timeout:.0f} s") from error
    lines = run.stdout.strip().splitlines()
    if run.returncode or not lines:
        said = [line for line in run.stderr.splitlines() if line.strip()] or [f"exit code {run.returncode}"]
        raise RuntimeError(said[-1][:_MOST])
    return json.loads(lines[-1])
