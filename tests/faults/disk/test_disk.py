"""A disk that refuses, wherever the program writes; the long run is `python -m tests.faults.disk`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.disk import sites

pytest.importorskip("resource", reason="this system has no limits of files")
ROOT = Path(__file__).resolve().parents[3]


def sweep(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.disk", *arguments],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_is_lost_at_any_write_and_then_it_goes_on(tmp_path):
    said = sweep("--rounds", "1", "--folder", str(tmp_path))
    rounds, refused = map(int, re.search(r"(\d+) rounds, (\d+) refused, 0 wrong", said).groups())
    # Where nothing may be mounted, calls are refused and files are limited all the same.
    assert rounds > 130
    assert refused > rounds / 2
    assert {"MakeModel size", "Chat size", "KeepSettings ENOSPC", "MoveModels EIO"} <= set(
        re.findall(r"^ *\d+  (.*)$", said, re.MULTILINE)
    )


def test_with_torch_too_a_refused_write_is_a_sentence_and_the_next_start_goes_on(tmp_path):
    # The lightest of those actions; all of them are the long run's.
    given = ["--heavy", "--rounds", "1", "--seed", "5", "--no-mounts", "--only", "Scored", "--folder"]
    said = sweep(*given, str(tmp_path))
    rounds, refused = map(int, re.search(r"(\d+) rounds, (\d+) refused, 0 wrong", said).groups())
    assert rounds > 10
    assert refused > rounds / 2


def test_whatever_writes_is_known_with_what_makes_its_disk_refuse():
    unknown = sites.found() - sites.SITES.keys()
    assert not unknown, "say in sites.py which action or test makes its disk refuse"
