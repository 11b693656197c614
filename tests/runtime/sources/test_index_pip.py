"""pip as a child: it does not outlive us, however we end, and its words become sentences without secrets."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from runtime.sources import index_pip

# In pip's place: something slow that writes, deaf to a hangup.
_PIP = """
import os, signal, time
signal.signal(getattr(signal, "SIGHUP", signal.SIGTERM), signal.SIG_IGN)
with open(os.path.join(os.environ["TMPDIR"], "wheel"), "ab", buffering=0) as wheel:
    print("my pid is", os.getpid(), flush=True)
    while True:
        wheel.write(b"x")
        time.sleep(0.01)
"""
_STARTER = """
import sys
from pathlib import Path
from runtime.sources import index_pip

def enough(text):
    if "my pid is" in text:
        print(text, flush=True)
    return False

index_pip.run(["download", "x"], Path(sys.argv[1]) / "tmp", enough)
"""


@pytest.fixture
def slow_pip(tmp_path, monkeypatch):
    package = tmp_path / "instead" / "pip"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(_PIP)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))


def is_gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def until(happened):
    end = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_pip_ends_when_what_started_it_is_killed(tmp_path, slow_pip):
    starter = subprocess.Popen([sys.executable, "-c", _STARTER, str(tmp_path)], stdout=subprocess.PIPE)
    with starter:
        pip = int(starter.stdout.readline().split()[-1])
        assert psutil.pid_exists(pip)
        starter.kill()
    until(lambda: is_gone(pip))
    size = (tmp_path / "tmp" / "wheel").stat().st_size
    assert size == (tmp_path / "tmp" / "wheel").stat().st_size


def test_pip_ends_when_enough_was_heard(tmp_path, slow_pip):
    ended = index_pip.run(["download", "x"], tmp_path / "tmp", lambda text: "my pid is" in text)
    assert ended.code is None
    assert is_gone(int(ended.text.split()[-1]))


def test_pip_is_heard_to_its_last_word_and_its_temporary_files_are_new(tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "old").touch()
    code = "import os; print(os.listdir(os.environ['TMPDIR']), 'x' * 300_000, 'end'); raise SystemExit(3)"
    monkeypatch.setattr(index_pip, "_command", lambda arguments: [sys.executable, "-I", "-S", "-c", code])
    ended = index_pip.run([], tmp_path / "tmp", lambda text: False)
    assert ended.code == 3
    assert ended.text.endswith("x end" + os.linesep)
    assert len(ended.text) < 300_000
    assert os.listdir(tmp_path / "tmp") == []


@pytest.mark.parametrize("said", ["\n" * 250_000, " \n" * 125_000, " " * 250_000, "\tERROR" * 40_000])
def test_no_long_text_makes_its_failure_slow_to_tell(tmp_path, said):
    began = time.thread_time()
    assert "pip gave no reason" in index_pip.failure("tiny==1", said, tmp_path).sentence
    assert time.thread_time() - began < 0.5


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "ERROR: 403 for https://me:secret@host/x.whl?token=secret (see it)",
            "403 for https://host/x.whl (see it)",
        ),
        ("  ERROR: no ?secret=1 here", "no here"),
    ],
)
def test_addresses_are_told_without_what_may_be_secret(tmp_path, said, words):
    sentence = index_pip.failure("tiny==1", said, tmp_path).sentence
    assert "secret" not in sentence
    assert words in " ".join(sentence.split())
