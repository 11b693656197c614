"""The worker as a real process, with a fake engine behind it."""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runtime.client import WorkerClient
from runtime.protocol import (
    Done,
    Event,
    Failed,
    Generate,
    Job,
    Load,
    Loaded,
    Message,
    Progress,
    Quit,
    Ready,
    SetSlowdown,
    Stats,
    Stop,
    Token,
    encode,
)
from runtime.worker import failures, jobs
from tests.fakes.small_tokenizers import write_byte_level

ROOT = Path(__file__).parents[3]
ARGV = [sys.executable, str(ROOT / "tests" / "fakes" / "engine_worker.py")]
ASK = Generate((Message("user", "hi"),))


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DECDEC_WORKER", shlex.join(ARGV))
    monkeypatch.setenv("FAKE_FOLDER", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    write_byte_level(tmp_path)
    return tmp_path / "home"


@pytest.fixture
async def client(home):
    client = WorkerClient()
    await client.start()
    yield client
    await client.close()


async def until(client: WorkerClient, *kinds: type) -> list[Event]:
    seen: list[Event] = []
    async with asyncio.timeout(30):
        async for event in client.events():
            seen.append(event)
            if isinstance(event, kinds):
                return seen
            assert not isinstance(event, Failed), event
    raise AssertionError("stream ended")


async def test_answers_stops_and_answers_again(client):
    await client.send(Load("m"))
    events = await until(client, Loaded)
    assert [type(event) for event in events] == [Ready, Progress, Loaded]
    await client.send(ASK)
    events = await until(client, Done)
    assert "".join(event.text for event in events if isinstance(event, Token)) == "hello 😀 world"
    assert events[-1].result["finish_reason"] == "stop"
    await client.send(ASK)
    await until(client, Token)
    await client.send(SetSlowdown(5.0))
    while (await until(client, Stats))[-1].slowdown_target_pct != 5.0:
        pass
    await client.send(Stop())
    done = (await until(client, Done))[-1]
    assert done.result["finish_reason"] == "stopped"
    assert done.result["k_chunk"]["down"] == 8
    await client.send(ASK)
    await until(client, Token)
    await client.send(Stop())
    await until(client, Done)


async def test_a_late_stop_does_not_end_the_next_answer(client):
    await client.send(Stop())
    await client.send(Load("m"))
    await client.send(ASK)
    assert (await until(client, Done))[-1].result["finish_reason"] == "stop"


async def test_stop_reaches_what_waits(client):
    await client.send(Job("slow"))
    await client.send(Job("slow"))
    await until(client, Progress)
    await client.send(Stop())
    codes = [(await until(client, Failed))[-1].code for _ in range(2)]
    assert codes == [130, 130]


async def test_slider_between_answers_and_where_there_is_none(client):
    await client.send(SetSlowdown(5.0))
    await client.send(Load("m"))
    await until(client, Loaded)
    await client.send(SetSlowdown(2.5))
    assert (await until(client, Stats))[-1].slowdown_target_pct == 2.5
    await client.send(Load("untuned"))
    failed = (await until(client, Failed))[-1]
    assert (failed.job, failed.why) == ("set_slowdown", "never tuned")
    await client.send(SetSlowdown(0.0))
    await until(client, Stats)


async def test_only_events_reach_stdout_and_environment_is_set(client, home):
    await client.send(Job("noisy"))
    result = (await until(client, Done))[-1].result
    assert result["environment"].startswith(str(home / "compiled"))
    assert result["torch"] is False
    await client.close()
    log = (home / "logs" / "stderr.log").read_text()
    assert [line for line in log.splitlines() if "prints" in line] == [
        "a library prints",
        "a C library prints",
        "a child prints",
    ]


async def test_every_failure_is_a_sentence_and_the_worker_lives(client, home):
    expected = {
        "unexpected": ("unexpectedly", "surprise"),
        "memory": ("Memory ran out", "memory"),
        "full_disk": ("/some/file", "the disk of /some/file is full"),
        "no_such_job": ("no_such_job", "doctor"),
    }
    for job, (_, part) in expected.items():
        await client.send(Job(job))
        failed = (await until(client, Failed))[-1]
        assert failed.job == job
        assert part in failed.why
        assert "Traceback" not in failed.what + failed.why + failed.fix
    assert "in unexpected" in (home / "logs" / "errors.log").read_text()
    await client.send(ASK)
    assert "no model" in (await until(client, Failed))[-1].why
    await client.send(Job("noisy"))
    await until(client, Done)


async def test_memory_that_runs_out_ends_one_answer(client):
    await client.send(Load("scarce"))
    await until(client, Loaded)
    await client.send(ASK)
    assert (await until(client, Done))[-1].result["text"] == "hello 😀 world"
    await client.send(ASK)
    failed = (await until(client, Failed))[-1]
    assert (failed.job, failed.code) == ("generate", 1)
    assert failed.what == "Memory ran out in this answer"
    assert "--context 1000" in failed.fix
    await client.send(ASK)
    await until(client, Token)
    await client.send(Stop())
    assert "the quick brown fox ".startswith((await until(client, Done))[-1].result["text"][:20])


def start() -> subprocess.Popen:
    return subprocess.Popen(ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)


def test_malformed_lines_are_told_and_survived(home):
    worker = start()
    lines = b'nonsense\n{"type":"fly"}\n{"type":"set_slowdown","pct":99}\n' + encode(Quit())
    out, _ = worker.communicate(lines, timeout=10)
    events = out.splitlines()
    assert len(events) == 4
    assert all(b'"type":"error"' in line for line in events[1:])
    assert worker.returncode == 0


@pytest.mark.parametrize("job", ["slow", None])
def test_ends_when_stdin_closes(home, job):
    worker = start()
    assert worker.stdout.readline()
    if job:
        worker.stdin.write(encode(Job(job)))
        worker.stdin.flush()
        assert worker.stdout.readline()
    worker.stdin.close()
    assert worker.wait(5) == 0


def test_ends_when_nobody_reads(home):
    worker = start()
    assert worker.stdout.readline()
    worker.stdout.close()
    worker.stdin.write(encode(Job("slow")))
    worker.stdin.flush()
    assert worker.wait(5) == 1


def test_an_interrupt_of_the_terminal_is_not_its_business(home):
    worker = start()
    assert worker.stdout.readline()
    os.kill(worker.pid, signal.SIGINT)
    time.sleep(0.1)
    out, _ = worker.communicate(encode(Job("noisy")) + encode(Quit()), timeout=10)
    assert b'"job":"noisy"' in out


def test_job_names_of_the_command_line_are_known():
    int8x = {"int8x_encode", "int8x_verify", "int8x_inspect"}
    benches = {"bench_int8x", "bench_kernels", "bench_decode", "bench_tables", "bench_decdec"}
    evaluations = {"eval_ppl", "eval_bbh", "eval_mt_bench", "eval_judge"}
    models = {"hub_search", "model_details", "check_files", "export"}
    assert set(jobs.JOBS) == int8x | benches | evaluations | models | {"prepare", "tune", "doctor"}
    assert all(callable(jobs.find(name)) for name in jobs.JOBS)


def test_a_full_disk_under_a_library_s_unnamed_file_says_what_to_do(home):
    failed = failures.failed("prepare", OSError(errno.ENOSPC, "No space left on device"))
    assert str(home) in failed.why
    assert "DECDEC_HOME" in failed.fix
