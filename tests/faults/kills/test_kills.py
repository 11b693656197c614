"""A few kills; `python -m tests.faults.kills` makes hundreds, of real programs with an engine too."""

import os
import subprocess
import sys

import pytest

from tests.faults.kills.processes import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
# Every so many changes on disk; with 1 all of them are hit, about 900.
STEP = os.environ.get("KILLS_STEP", "31")
ROUNDS = os.environ.get("KILLS_ROUNDS", "3")


def kills(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.kills", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_before_changes_on_disk():
    """Everything that is kept, killed at its write boundaries: whole, and gone on with to the same end."""
    assert "an answer" in kills("--points", "--step", STEP)


def test_programs_at_random_moments():
    """Programs that write without an engine."""
    assert "settings" in kills("--rounds", ROUNDS, "--seed", "1", "--jobs", "settings,history,chats import")
