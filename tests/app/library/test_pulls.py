"""The queue of pulls, by table."""

import pytest

from app.library.pulls import Pull, Pulls, PullState
from runtime.protocol.commands import Prepare
from runtime.protocol.events import Done, Failed, Progress

S = PullState
STOPPED = Failed("prepare", "Stopped", code=130)
BROKEN = Failed("prepare", "The disk is full", "2 GB are needed", "free some space")


def queued(*names):
    pulls = Pulls()
    for name in names:
        pulls.add(name, f"owner/{name}")
    return pulls


def states(pulls):
    return {pull.name: pull.state for pull in pulls}


def test_one_after_the_other_in_order():
    pulls = queued("a", "b")
    assert pulls.start() == Prepare("owner/a", "a")
    assert pulls.start() is None
    assert states(pulls) == {"a": S.RUNNING, "b": S.WAITING}
    assert pulls.end(Done("prepare", {})).state is S.READY
    assert states(pulls) == {"b": S.WAITING}
    assert pulls.start() == Prepare("owner/b", "b")
    assert pulls.end(Done("prepare", {})).name == "b"
    assert pulls.start() is None


def test_the_same_model_is_queued_once():
    pulls = queued("a")
    pulls.start()
    pulls.add("A", "owner/a")
    assert states(pulls) == {"a": S.RUNNING}


def test_progress_belongs_to_what_runs():
    pulls = queued("a", "b")
    pulls.push(Progress("prepare", "download", 1, 2, "bytes"))
    assert all(pull.newest is None for pull in pulls)
    pulls.start()
    pulls.push(Progress("prepare", "download", 1, 2, "bytes"))
    pulls.push(Progress("prepare", "encode", 3, 4, "weights"))
    assert (pulls.find("a").newest.step, pulls.find("b").newest) == ("encode", None)


@pytest.mark.parametrize(
    ("intent", "then", "after"),
    [("pause", STOPPED, S.PAUSED), ("cancel", STOPPED, S.CANCELLED), ("pause", BROKEN, S.PAUSED)],
)
def test_what_runs_is_stopped_first(intent, then, after):
    pulls = queued("a", "b")
    pulls.start()
    assert getattr(pulls, intent)("a")
    assert pulls.find("a").state is S.STOPPING
    assert not getattr(pulls, intent)("a"), "it was told already"
    assert pulls.start() is None, "it still works"
    assert pulls.end(then).state is after
    assert pulls.start() == Prepare("owner/b", "b")
    assert (pulls.find("a") is None) is (after is S.CANCELLED)


def test_pausing_can_be_taken_back_or_become_a_cancellation_before_it_took_effect():
    for intent, after in (("resume", S.WAITING), ("cancel", S.CANCELLED)):
        pulls = queued("a")
        pulls.start()
        pulls.pause("a")
        assert not getattr(pulls, intent)("a")
        assert pulls.end(STOPPED).state is after


def test_what_became_ready_while_it_was_being_stopped_is_ready():
    pulls = queued("a")
    pulls.start()
    pulls.cancel("a")
    assert pulls.end(Done("prepare", {})).state is S.READY


def test_what_waits_leaves_without_a_stop():
    pulls = queued("a", "b", "c")
    pulls.start()
    assert not pulls.pause("b")
    assert not pulls.cancel("c")
    assert states(pulls) == {"a": S.RUNNING, "b": S.PAUSED}


def test_a_failure_is_told_and_tried_again_behind_the_others():
    pulls = queued("a", "b", "c")
    pulls.start()
    failed = pulls.end(BROKEN)
    assert (failed.state, failed.problem) == (
        S.FAILED,
        "The disk is full: 2 GB are needed. Free some space.",
    )
    assert pulls.start() == Prepare("owner/b", "b")
    pulls.resume("a")
    assert (pulls.find("a").state, pulls.find("a").problem) == (S.WAITING, "")
    assert [pull.name for pull in pulls.waiting] == ["c", "a"]


def test_a_crash_is_a_failure_and_a_stop_from_outside_a_pause():
    pulls = queued("a", "b")
    pulls.start()
    assert pulls.end(Failed("worker", "The engine's process ended")).state is S.FAILED
    pulls.start()
    assert pulls.end(STOPPED).state is S.PAUSED


def test_unfinished_ones_wait_for_the_user():
    pulls = Pulls([Pull("a", "owner/a", S.PAUSED)])
    assert pulls.start() is None
    pulls.resume("A")
    assert pulls.start() == Prepare("owner/a", "a")


def test_figures_of_a_second_run_start_anew():
    pulls = queued("a")
    pulls.start()
    pulls.push(Progress("prepare", "download", 1, 2, "bytes"))
    pulls.pause("a")
    pulls.end(STOPPED)
    assert pulls.find("a").newest.step == "download", "how far it came stays on screen"
    pulls.resume("a")
    pulls.start()
    assert pulls.find("a").newest is None


def test_models_that_became_ready_otherwise_are_dropped():
    pulls = queued("a", "b", "c")
    pulls.start()
    pulls.pause("b")
    assert [pull.name for pull in pulls.drop(["A", "B", "x"])] == ["b"]
    assert states(pulls) == {"a": S.RUNNING, "c": S.WAITING}, "what runs settles that itself"


def test_intents_for_unknown_models_do_nothing():
    pulls = queued()
    assert not pulls.pause("x")
    assert not pulls.cancel("x")
    pulls.resume("x")
    assert pulls.end(Done("prepare", {})) is None


def test_refused_is_what_failed_before_it_had_begun():
    pulls = queued("a", "b", "c")
    pulls.start()
    assert pulls.end(BROKEN).refused
    pulls.start()
    pulls.push(Progress("prepare", "encode", 1, 2, "tensors"))
    assert not pulls.end(BROKEN).refused
    pulls.start()
    assert not pulls.end(Failed("worker", "The engine's process ended")).refused
    pulls.resume("a")
    pulls.start()
    assert not pulls.find("a").refused


@pytest.mark.parametrize(("source", "stage"), [("/models/m", "importing"), ("owner/m", "fetching")])
def test_a_folder_is_imported_not_fetched(source, stage):
    pull = Pull("m", source, S.RUNNING)
    assert pull.stage == stage
    pull.state = S.PAUSED
    assert pull.stage == "paused"
