"""Two programs on one home: nothing is spoilt, and who has to wait is told for whom."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import tomllib
from contextlib import closing

import pytest

from app.history import History
from app.settings import Settings
from runtime import store
from runtime.errors import DecdecError
from runtime.store.locks import exclusive
from tests.faults.kills.processes import ROOT
from tests.faults.kills.store_points import NAME, OLD, contents_of, listed, make

HOLDER = """
import sys
from runtime.store.locks import exclusive
with exclusive(sys.argv[1], sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def started(*command, **more):
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "500"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def holder(name, doing):
    other = started("-c", HOLDER, name, doing)
    assert other.stdout.readline().strip() == "held"
    return other


@pytest.mark.parametrize(
    ("name", "doing", "command"),
    [
        (f"model-{NAME}", f"Work on {NAME}", ["rm", NAME]),
        ("tune", "Tuning", ["tune", "-m", NAME, "--base", "rtn4"]),
    ],
)
def test_who_has_to_wait_is_told_for_whom(home, name, doing, command):
    with store.building(NAME) as staging:
        for file, content in OLD.items():
            (staging / file).parent.mkdir(exist_ok=True)
            (staging / file).write_bytes(content)
        store.publish(NAME, staging, {"source": "a test", "bits_per_weight": 5.0, "bases": ["rtn4"]})
    with holder(name, doing) as other:
        second = started("-m", "app.cli.main", *command)
        told = second.communicate(timeout=120)[1]
        other.stdin.close()
        other.wait(20)
    assert second.returncode == 1
    assert f"{doing} is already going on: another decdec-chat (process {other.pid}) holds its lock." in told
    assert [record.name for record in store.models()] == [NAME]


def test_a_dead_holder_holds_nothing_and_is_not_named(home):
    other = holder("model-x", "Work on x")
    other.send_signal(signal.SIGKILL)
    other.wait(20)
    with exclusive("model-x", "Work on x"):
        pass
    assert (home / "locks" / "model-x.pid").read_text() == str(os.getpid())
    with holder("model-y", "Work on y") as other:
        # A process that is gone stands there: its number may be anybody's by now.
        (home / "locks" / "model-y.pid").write_text("999999999")
        with (
            pytest.raises(DecdecError, match="another decdec-chat holds its lock"),
            exclusive("model-y", "W"),
        ):
            pass
        other.stdin.close()
        other.wait(20)


def test_two_histories_lose_nothing(home):
    writers = [started("-m", "tests.faults.kills.writer", "history", "8") for _ in range(2)]
    said = [each.communicate(timeout=120)[0].split("\n")[:-1] for each in writers]
    assert [each.returncode for each in writers] == [0, 0]
    with closing(History()) as history:
        for id, *pieces in said:
            kept = " ".join(turn.answer for turn in history.load(id).turns).split()
            assert kept == [piece for piece in pieces if not piece.startswith("!")]
        assert history.page('"7.7"').total == 2


def test_settings_of_two_are_all_there(home):
    writers = [started("-m", "tests.faults.kills.writer", "prompts", name, "8") for name in ("a", "b")]
    told = [each.communicate(timeout=120)[1] for each in writers]
    assert [each.returncode for each in writers] == [0, 0], told
    prompts = tomllib.loads((home / "settings.toml").read_text())["system_prompts"]
    assert prompts == {f"{name}{number}": name for name in ("a", "b") for number in range(8)}
    assert not Settings().system_prompts


def test_two_preparations_and_a_deletion_end_in_a_whole_model_or_none(home):
    """All at once, many times: each is refused with a sentence or does all of its work."""
    refused, gate = [], threading.Barrier(3)

    def often(work):
        gate.wait()
        for _ in range(15):
            try:
                work()
            except DecdecError as error:
                refused.append(error.sentence)

    works = (lambda: make(OLD, 1), lambda: make({**OLD, "more": b"x"}, 2), lambda: store.remove(NAME))
    threads = [threading.Thread(target=often, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(re.match("Work on tiny is already going on|There is no local model", each) for each in refused)
    make(OLD, 1)
    assert listed() == contents_of(home / "models" / NAME) == OLD
    assert json.loads((home / "models" / NAME / "manifest.json").read_text())["files"].keys() == OLD.keys()
    assert sorted(os.listdir(home / "models")) == [NAME]
