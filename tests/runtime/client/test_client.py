"""The client against the scripted worker, as real processes."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from runtime.client import WorkerClient, run_job
from runtime.errors import DecdecError, Interrupted
from runtime.protocol import (
    Done,
    Event,
    Failed,
    Generate,
    Job,
    Load,
    Loaded,
    Message,
    Prepare,
    Progress,
    Ready,
    SetSlowdown,
    Stats,
    Stop,
    Token,
)

FAKE = Path(__file__).parents[2] / "fakes" / "scripted_worker.py"
ASK = Generate((Message("user", "hello"),))
ASK_LONG = Generate((Message("user", "!long"),))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))
    use(monkeypatch, "--rate", "0", "--step-s", "0")
    return tmp_path


def use(monkeypatch, *options: str) -> None:
    monkeypatch.setenv("DECDEC_WORKER", " ".join([f"'{sys.executable}'", f"'{FAKE}'", *options]))


async def until(client: WorkerClient, *kinds: type) -> list[Event]:
    seen: list[Event] = []
    async with asyncio.timeout(10):
        async for event in client.events():
            seen.append(event)
            if isinstance(event, kinds):
                return seen
            assert not isinstance(event, Failed), event
    raise AssertionError("stream ended")


async def test_answer_arrives_in_order_and_whole():
    client = WorkerClient()
    await client.start()
    await client.send(Load("m"))
    assert isinstance((await until(client, Loaded))[0], Ready)
    await client.send(ASK)
    events = await until(client, Done)
    tokens = [event for event in events if isinstance(event, Token)]
    assert "".join(token.text for token in tokens) == events[-1].result["text"]
    assert [token.index for token in tokens] == list(range(1, len(tokens) + 1))
    await client.close()
    assert not client.alive
    assert [event async for event in client.events()] == []


async def test_death_is_an_event_and_start_gives_a_new_worker():
    client = WorkerClient()
    await client.start()
    await client.send(Load("m"))
    await until(client, Loaded)
    await client.send(Generate((Message("user", "!crash"),)))
    failed = (await until(client, Failed))[-1]
    assert failed.job == "worker"
    assert "139" in failed.why
    assert not client.alive
    with pytest.raises(DecdecError, match="not running"):
        await client.send(ASK)
    await client.start()
    await client.send(Load("m"))
    await until(client, Loaded)
    await client.close()


async def test_killed_worker_names_the_signal():
    client = WorkerClient()
    await client.start()
    await until(client, Ready)
    await client.kill()
    assert "SIGKILL" in (await until(client, Failed))[-1].why
    await client.close()


async def test_stop_and_slider_act_during_an_answer(monkeypatch):
    use(monkeypatch, "--rate", "200", "--step-s", "0")
    client = WorkerClient()
    await client.start()
    await client.send(Load("m"))
    await client.send(ASK_LONG)
    await until(client, Token)
    await client.send(SetSlowdown(10.0))
    while (await until(client, Stats))[-1].k_chunk.total == 0:
        pass
    await client.send(Stop())
    assert (await until(client, Done))[-1].result["finish_reason"] == "stopped"
    await client.close()


async def test_a_line_far_over_the_default_limit_is_read(monkeypatch, tmp_path):
    text = "x" * (1 << 20)
    script = tmp_path / "s.json"
    script.write_text(f'{{"jobs": {{"big": {{"text": "{text}"}}}}, "step_s": 0}}')
    use(monkeypatch, "--script", str(script))
    client = WorkerClient()
    await client.start()
    await client.send(Job("big"))
    assert (await until(client, Done))[-1].result["text"] == text
    await client.close()


async def test_garbage_on_the_stream_is_one_failure(monkeypatch):
    monkeypatch.setenv("DECDEC_WORKER", f"'{sys.executable}' -c \"print('hello'); input()\"")
    client = WorkerClient()
    await client.start()
    assert "unreadable" in (await until(client, Failed))[-1].what
    await client.close()


async def test_missing_program_is_a_sentence(monkeypatch):
    monkeypatch.setenv("DECDEC_WORKER", "/nonexistent/worker")
    with pytest.raises(DecdecError, match="could not be started"):
        await WorkerClient().start()


def test_run_job_runs_commands_in_turn():
    events: list[Event] = []
    done = run_job([Load("m"), SetSlowdown(5.0), ASK], events.append)
    assert done.job == "generate"
    assert done.result["k_chunk"]["gate_up"] > 0
    assert any(isinstance(event, Loaded) for event in events)


def test_run_job_raises_the_workers_sentence(monkeypatch):
    use(monkeypatch, "--fail", "prepare")
    with pytest.raises(DecdecError, match="the script says so"):
        run_job(Prepare("m"), lambda event: None)


def test_run_job_reports_a_dead_worker(monkeypatch):
    use(monkeypatch, "--crash", "load")
    with pytest.raises(DecdecError, match="exited with code 139"):
        run_job(Load("m"), lambda event: None)


def test_ctrl_c_stops_a_job_and_then_the_next_start_works(monkeypatch):
    use(monkeypatch, "--step-s", "20")
    seen: list[Event] = []

    def interrupt(event: Event) -> None:
        seen.append(event)
        if isinstance(event, Progress) and event.done == 0:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted) as stopped:
        run_job([Prepare("m"), Load("m")], interrupt)
    assert stopped.value.code == 130
    assert not any(isinstance(event, Loaded) for event in seen)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_ends_an_answer_with_what_is_there(monkeypatch):
    use(monkeypatch, "--rate", "100", "--step-s", "0")

    def interrupt(event: Event) -> None:
        if isinstance(event, Token) and event.index == 3:
            os.kill(os.getpid(), signal.SIGINT)

    done = run_job([Load("m"), ASK_LONG], interrupt)
    assert done.result["finish_reason"] == "stopped"
    assert done.result["text"].startswith("word0 word1 word2 ")


def test_second_ctrl_c_kills_a_worker_that_does_not_answer(monkeypatch):
    deaf = 'import sys,time; print(\'{"type":"ready","pid":1}\', flush=True); time.sleep(60)'
    monkeypatch.setenv("DECDEC_WORKER", shlex.join([sys.executable, "-c", deaf]))

    def twice() -> None:
        for _ in range(2):
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=twice).start()
    started = time.monotonic()
    with pytest.raises(Interrupted):
        run_job(Prepare("m"), lambda event: None)
    assert time.monotonic() - started < 5


def test_worker_does_not_outlive_a_killed_parent(monkeypatch, tmp_path):
    pid_file = tmp_path / "pid"
    parent = (
        "import os,signal,pathlib,sys\n"
        "from runtime.client import run_job\n"
        "from runtime.protocol import Prepare, Ready\n"
        "def note(event):\n"
        "    if isinstance(event, Ready):\n"
        f"        pathlib.Path({str(pid_file)!r}).write_text(str(event.pid))\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "run_job(Prepare('m'), note)\n"
    )
    use(monkeypatch, "--step-s", "30")
    subprocess.run([sys.executable, "-c", parent], check=False, cwd=Path(__file__).parents[3])
    pid = int(pid_file.read_text())
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and _runs(pid):
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_client_stays_light():
    code = "import sys, runtime.client; print({'torch','numpy','transformers','triton'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
