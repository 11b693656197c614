"""The wizard's state machine."""

from app.setup import Setup, Step
from runtime.protocol.commands import Job, Prepare, Stop, Tune
from runtime.protocol.events import Done, Failed, Progress


def at_prepare():
    setup = Setup(Step.MODEL)
    setup.choose("m")
    assert setup.start() == Prepare("m")
    return setup


def test_the_whole_way():
    setup = Setup()
    assert setup.start() == Job("doctor")
    setup.push(Done("doctor", {"cpu": "fast"}))
    assert setup.hardware == {"cpu": "fast"}
    setup.forward()
    assert setup.step is Step.MODEL
    setup.choose("owner/m")
    assert setup.start() == Prepare("owner/m")
    assert setup.start() is None
    setup.push(Progress("prepare", "download", 1, 2, "bytes"))
    setup.push(Progress("prepare", "encode", 1, 2, "tensors"))
    assert list(setup.progress.steps) == ["download", "encode"]
    assert setup.progress.is_finished("download")
    assert not setup.progress.is_finished("encode")
    setup.push(Done("prepare", {"name": "owner--m"}))
    assert (setup.step, setup.model) == (Step.TUNE, "owner--m")
    assert setup.start() == Tune("owner--m")
    setup.push(Done("tune", {}))
    assert (setup.step, setup.tuned) == (Step.FINISHED, True)


def test_leaving_the_preparation_stops_it_first_and_returns_to_the_choice():
    setup = at_prepare()
    assert setup.leave() == Stop()
    assert setup.step is Step.PREPARE
    setup.push(Failed("prepare", "Stopped", "interrupted", code=130))
    assert setup.step is Step.MODEL
    assert "kept" in setup.problem
    setup.choose("m")
    assert setup.start() == Prepare("m")


def test_leaving_the_tuning_gives_a_chat_that_is_not_tuned():
    setup = Setup(Step.TUNE, "m")
    setup.start()
    setup.leave()
    setup.push(Failed("tune", "Stopped", code=130))
    assert (setup.step, setup.tuned) == (Step.FINISHED, False)


def test_a_job_that_finishes_while_being_stopped_counts():
    setup = at_prepare()
    setup.leave()
    setup.push(Done("prepare", {"name": "m"}))
    assert setup.step is Step.TUNE


def test_a_failure_is_told_and_can_be_tried_again():
    setup = at_prepare()
    setup.push(Failed("prepare", "The disk is full", "2 GB are needed", "delete something"))
    assert setup.step is Step.PREPARE
    assert setup.problem == "The disk is full: 2 GB are needed. Delete something."
    assert setup.start() == Prepare("m")


def test_a_crash_is_a_failure_of_what_ran():
    setup = at_prepare()
    setup.push(Failed("worker", "The engine's process ended"))
    assert not setup.running
    assert "ended" in setup.problem


def test_leaving_a_failed_step_needs_no_stop():
    setup = at_prepare()
    setup.push(Failed("prepare", "no"))
    assert setup.leave() is None
    assert setup.step is Step.MODEL


def test_events_of_others_are_ignored():
    setup = at_prepare()
    setup.push(Progress("load", "load", 1, 2, "blocks"))
    setup.push(Done("generate", {}))
    assert setup.progress.steps == {}
    assert setup.step is Step.PREPARE
