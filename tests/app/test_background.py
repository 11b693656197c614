"""Work in processes beside the chat: they are there only while there is work."""

import asyncio
import time
from contextlib import asynccontextmanager

import psutil
import pytest

from app.background import Background
from app.library.pulls import PullState
from app.library.records import unfinished
from runtime import store
from runtime.protocol.commands import Job
from runtime.protocol.events import Done, Failed, Progress

S = PullState


async def until(condition, seconds=10.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def background():
    """A Background, and the states of pulls that ended, as (name, state)."""
    ended = []
    work = Background(lambda pull: pull and ended.append((pull.name, pull.state)))
    try:
        yield work, ended
    finally:
        await work.close()


def workers():
    """The scripted workers that run now."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if any("scripted_worker" in part for part in _command(child))]


def _command(child):
    try:
        return child.cmdline()
    except psutil.Error:
        return []


async def test_pulls_run_one_after_the_other_and_leave_nothing(worker):
    async with background() as (work, ended):
        assert workers() == []
        assert work.fetch("a", "o/a") == ""
        work.fetch("b", "o/b")
        await until(lambda: work.pulls.running and work.pulls.running.newest)
        assert len(workers()) == 1
        await until(lambda: len(ended) == 2)
        assert ended == [("a", S.READY), ("b", S.READY)]
        await until(lambda: workers() == [])
        assert unfinished() == []


async def test_the_worker_leaves_the_processor_to_others(worker):
    worker(step_s=5)
    async with background() as (work, _):
        work.fetch("a", "o/a")
        await until(lambda: work.pulls.running.newest)
        assert workers()[0].nice() > psutil.Process().nice()


async def test_pause_and_resume(worker):
    worker(step_s=3, ticks=60)
    async with background() as (work, ended):
        work.fetch("a", "o/a")
        await until(lambda: work.pulls.running.newest)
        work.pause("a")
        await until(lambda: ended)
        assert ended == [("a", S.PAUSED)]
        await until(lambda: workers() == [])
        assert [pull.name for pull in unfinished()] == ["a"]
        worker()
        work.fetch("a", "o/a")
        await until(lambda: len(ended) == 2)
        assert ended[-1] == ("a", S.READY)
        assert unfinished() == []


async def test_pausing_at_once_is_heard_by_a_worker_that_just_starts(worker):
    worker(step_s=30, ticks=300)
    async with background() as (work, ended):
        work.fetch("a", "o/a")
        work.pause("a")
        await until(lambda: ended == [("a", S.PAUSED)])


@pytest.mark.parametrize("running", [True, False], ids=["running", "waiting"])
async def test_cancelling_forgets(worker, running):
    worker(step_s=30, ticks=300)
    async with background() as (work, ended):
        work.fetch("a", "o/a")
        work.fetch("b", "o/b")
        await until(lambda: work.pulls.running.newest)
        work.cancel("a" if running else "b")
        await until(lambda: ended)
        assert ended == [("a" if running else "b", S.CANCELLED)]
        left = "b" if running else "a"
        assert [pull.name for pull in unfinished()] == [left]
        await until(lambda: work.pulls.find(left).state is S.RUNNING)


async def test_what_was_refused_is_not_offered_at_the_next_start(worker, tmp_path):
    worker("--fail", "prepare")
    async with background() as (work, ended):
        work.fetch("folder", str(tmp_path))
        work.fetch("a", "o/a")
        work.fetch("half", "o/half")
        with store.building("half", {"source": {"kind": "hub", "repo": "o/half"}}) as staging:
            (staging / "part").write_bytes(b"x")
        await until(lambda: len(ended) == 3)
        assert [state for _, state in ended] == [S.FAILED] * 3
        assert [pull.name for pull in unfinished()] == ["half"], "only of this there is something on disk"
        assert work.pulls.find("folder") is None, "to import it again it is named again"
        assert work.pulls.find("a").state is S.FAILED, "F2 tries again"


@pytest.mark.parametrize("how", ["--fail", "--crash"])
async def test_an_error_is_told_and_the_next_goes_on(worker, how):
    worker(how, "prepare")
    async with background() as (work, ended):
        work.fetch("a", "o/a")
        work.fetch("b", "o/b")
        await until(lambda: len(ended) == 2)
        assert ended == [("a", S.FAILED), ("b", S.FAILED)]
        assert work.pulls.find("a").problem.endswith(".")
        assert len(unfinished()) == (0 if how == "--fail" else 2)
        worker()
        work.fetch("a", "o/a")
        await until(lambda: ended[-1] == ("a", S.READY))


async def test_a_worker_that_cannot_start_is_an_error(monkeypatch):
    monkeypatch.setenv("DECDEC_WORKER", "/nonexistent/worker")
    async with background() as (work, ended):
        work.fetch("a", "o/a")
        await until(lambda: ended == [("a", S.FAILED)])
        assert "could not be started" in work.pulls.find("a").problem


async def test_closing_ends_everything_and_the_next_start_knows(worker):
    worker(step_s=60, ticks=600)
    async with background() as (work, ended):
        work.fetch("a", "o/a")
        work.fetch("b", "o/b")
        looking = asyncio.create_task(work.run(Job("int8x_inspect")))
        await until(lambda: work.pulls.running.newest and len(workers()) == 2)
        await work.close()
        assert workers() == []
        assert isinstance(await looking, Failed)
        assert ended == [], "nothing failed"
    again = Background(lambda pull: None)
    assert [(pull.name, pull.state) for pull in again.pulls] == [("a", S.PAUSED), ("b", S.PAUSED)]
    assert isinstance(await work.run(Job("doctor")), Failed), "nothing starts any more"


async def test_jobs_in_one_process_end_with_the_first_failure(worker):
    worker("--fail", "check_files", jobs={"model_details": {"context": 7}})
    async with background() as (work, _):
        events = []
        done = await work.run(Job("model_details"), on_event=events.append)
        assert (done, done.result) == (Done("model_details", {"context": 7}), {"context": 7})
        assert any(isinstance(event, Progress) for event in events)
        events.clear()
        failed = await work.run(Job("check_files"), Job("model_details"), on_event=events.append)
        assert (failed.job, failed.what) == ("check_files", "It failed")
        assert not any(isinstance(event, Done) for event in events)
        assert workers() == []


async def test_a_look_that_is_called_off_ends_its_process(worker):
    worker(step_s=60, ticks=600)
    async with background() as (work, _):
        looking = asyncio.create_task(work.run(Job("int8x_inspect")))
        await until(workers)
        looking.cancel()
        started = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await looking
        assert time.monotonic() - started < 5
        assert workers() == []
