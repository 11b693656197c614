"""The wizard's state machine."""

import pytest

from app.setup import Setup, Step
from app.wizard_texts import words
from runtime.protocol.commands import Job, Prepare, Stop, Tune
from runtime.protocol.events import Done, Failed, Progress

STOPPED = Failed("prepare", "Stopped", "interrupted", code=130)


def at_prepare():
    setup = Setup(Step.MODEL)
    setup.choose("m")
    assert setup.start() == Prepare("m")
    return setup


def at_ready():
    setup = Setup(Step.TUNE, "m")
    assert setup.start() == Tune("m")
    setup.push(Done("tune", {}))
    return setup


def test_the_whole_way():
    setup = Setup()
    assert setup.start() == Job("doctor")
    setup.push(Done("doctor", {"cpu": "fast"}))
    assert setup.hardware == {"cpu": "fast"}
    assert setup.measured
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
    assert not setup.prepared
    setup.push(Done("prepare", {"name": "owner--m"}))
    assert (setup.step, setup.model, setup.prepared) == (Step.TUNE, "owner--m", True)
    assert setup.start() == Tune("owner--m")
    setup.push(Done("tune", {}))
    assert (setup.step, setup.tuned) == (Step.READY, True)
    setup.forward()
    assert setup.step is Step.FINISHED


# The machine


def test_the_report_grows_while_it_is_measured():
    setup = Setup()
    setup.start()
    setup.push(Progress("doctor", "measure", 0, 1, "devices", data={"report": {"memory": 1}}))
    assert (setup.hardware, setup.measured) == ({"memory": 1}, False)
    setup.push(Progress("doctor", "measure", 0, 1, "devices"))
    setup.push(Done("doctor", {"memory": 2}))
    assert (setup.hardware, setup.measured) == ({"memory": 2}, True)


def test_what_was_known_stays_where_the_engine_says_nothing():
    setup = Setup()
    setup.hardware = {"memory": 1}
    setup.start()
    setup.push(Done("doctor", {}))
    assert setup.hardware == {"memory": 1}


def test_nobody_waits_for_the_measurement():
    setup = Setup()
    assert setup.start() == Job("doctor")
    setup.forward()
    assert setup.start() is None
    setup.choose("m")
    assert setup.start() == Prepare("m")
    setup.push(Done("doctor", {"memory": 1}))
    assert (setup.hardware, setup.measured, setup.running) == ({"memory": 1}, True, "prepare")


def test_a_machine_that_could_not_be_measured_can_be_left_or_tried_again():
    setup = Setup()
    setup.start()
    setup.push(Failed("worker", "The engine's process ended"))
    assert words(setup).problem == "The engine's process ended. r tries again, Enter goes on."
    assert setup.start() == Job("doctor")
    setup.push(Failed("worker", "The engine's process ended"))
    setup.forward()
    assert setup.step is Step.MODEL


def test_the_choice_of_a_model_measures_where_nobody_has():
    assert Setup(Step.MODEL).start() == Job("doctor")


def test_the_machine_can_be_measured_again():
    setup = Setup()
    setup.start()
    setup.push(Done("doctor", {"memory": 1}))
    assert setup.start() is None
    setup.measure_again()
    assert setup.start() == Job("doctor")


# Pause, stop, failure


def test_a_pause_keeps_the_step_and_goes_on_from_what_is_there():
    setup = at_prepare()
    setup.push(Progress("prepare", "download", 1, 2, "bytes"))
    assert setup.pause() == Stop()
    assert setup.pause() is None, "one is enough"
    assert words(setup).problem.startswith("Pausing")
    setup.push(STOPPED)
    assert (setup.step, setup.waiting, setup.problem) == (Step.PREPARE, True, "")
    assert words(setup).problem.startswith("Paused")
    assert list(setup.progress.steps) == ["download"], "it is still shown"
    assert setup.start() == Prepare("m")
    assert not setup.waiting


def test_only_preparing_can_be_paused():
    setup = Setup(Step.TUNE, "m")
    setup.start()
    assert setup.pause() is None
    assert Setup().pause() is None


def test_escape_while_pausing_leaves_without_another_stop():
    setup = at_prepare()
    setup.pause()
    assert setup.leave() is None
    setup.push(STOPPED)
    assert setup.step is Step.MODEL


def test_a_paused_job_can_be_left():
    setup = at_prepare()
    setup.pause()
    setup.push(STOPPED)
    assert setup.leave() is None
    assert (setup.step, setup.waiting) == (Step.MODEL, False)


def test_what_an_earlier_run_began_waits():
    setup = Setup()
    setup.resume("o--m", "o/m")
    assert (setup.step, setup.waiting) == (Step.PREPARE, True)
    said = words(setup)
    assert said.title == "Continue preparing o--m"
    assert "Enter or p goes on" in said.problem
    assert setup.start() == Prepare("o/m", "o--m")
    assert words(setup).title == "Fetch and prepare o--m"
    setup.push(Failed("prepare", "It has no weights"))
    setup.choose("m")
    assert setup.start() == Prepare("m")


def test_a_base_with_fewer_bits_is_prepared_and_tuned():
    setup = Setup(Step.MODEL)
    setup.choose("m", "int8x3")
    assert setup.start() == Prepare("m", bases=("int8x3",))
    setup.push(Done("prepare", {"name": "m"}))
    assert setup.start() == Tune("m", "int8x3")


def test_leaving_the_preparation_stops_it_first_and_returns_to_the_choice():
    setup = at_prepare()
    assert setup.leave() == Stop()
    assert setup.step is Step.PREPARE
    setup.push(STOPPED)
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
    assert not setup.stopping


def test_a_failure_is_told_and_can_be_tried_again():
    setup = at_prepare()
    setup.push(Failed("prepare", "The disk is full", "2 GB are needed", "delete something"))
    assert setup.step is Step.PREPARE
    assert setup.problem == "The disk is full: 2 GB are needed. Delete something."
    assert words(setup).problem == f"{setup.problem} Enter tries again."
    assert setup.start() == Prepare("m")


@pytest.mark.parametrize("asked", ["nothing", "pause", "leave"])
def test_a_crash_is_a_failure_of_what_ran(asked):
    setup = at_prepare()
    getattr(setup, asked, lambda: None)()
    setup.push(Failed("worker", "The engine's process ended"))
    assert not setup.running
    assert not setup.stopping
    assert "ended" in setup.problem
    assert setup.step is Step.PREPARE


def test_leaving_a_failed_step_needs_no_stop():
    setup = at_prepare()
    setup.push(Failed("prepare", "no"))
    assert setup.leave() is None
    assert setup.step is Step.MODEL


def test_events_of_others_are_ignored():
    setup = at_prepare()
    setup.push(Progress("load", "load", 1, 2, "blocks"))
    setup.push(Done("generate", {}))
    setup.push(Failed("doctor", "no"))
    assert setup.progress.steps == {}
    assert setup.step is Step.PREPARE
    assert setup.problem == ""


# Tuning


def test_tuning_that_is_offered_waits_and_says_why():
    setup = Setup(Step.TUNE, "m", reason="since the last tuning driver changed from 550.1 to 560.2")
    assert setup.waiting
    said = words(setup)
    assert said.text.startswith("Since the last tuning driver changed from 550.1 to 560.2. Measures")
    assert "Esc leaves it: the slider is off" in said.problem
    assert setup.leave() is None
    assert (setup.step, setup.tuned) == (Step.FINISHED, False)


def test_points_are_collected_and_begin_anew_with_another_tuning():
    setup = Setup(Step.TUNE, "m")
    setup.start()
    data = {"base_us": {"o": 30.0}, "points": [["o", 0, 8, 31.0]]}
    setup.push(Progress("tune", "tune", 1, 2, "points", data=data))
    assert setup.findings.curve("o").points == ((8, 31.0),)
    setup.push(Done("tune", {}))
    setup.measure_again()
    assert setup.start() == Tune("m")
    assert setup.findings.curve("o") is None


def test_the_last_card_can_be_left_either_way():
    for leave in (Setup.forward, Setup.leave):
        setup = at_ready()
        leave(setup)
        assert (setup.step, setup.tuned) == (Step.FINISHED, True)


def test_names_from_elsewhere_are_shown_in_one_line_without_controls():
    setup = Setup(Step.MODEL)
    setup.choose("a\x1b[31m\nb")
    assert words(setup).title == "Fetch and prepare a␛[31m b"


@pytest.mark.parametrize(
    ("step", "kept"),
    [
        ("download", "finished pieces are kept"),
        ("sensitivity", "this step begins again, what is finished stays"),
        ("encode", "finished pieces are kept"),
    ],
)
def test_what_a_pause_costs_is_said_before_and_after_it(step, kept):
    setup = at_prepare()
    setup.push(Progress("prepare", step, 1, 2, "blocks"))
    assert f"p pauses, Esc goes back; {kept}." in words(setup).text
    setup.pause()
    assert ("begins again" in words(setup).problem) is (step == "sensitivity")
    setup.push(STOPPED)
    assert words(setup).problem == f"Paused: {kept}. Enter or p goes on, Esc goes back."


def test_refused_is_what_failed_before_it_had_begun():
    setup = at_prepare()
    setup.push(Failed("prepare", "It has no weights"))
    assert setup.refused
    setup.start()
    assert not setup.refused
    setup.push(Progress("prepare", "encode", 1, 2, "tensors"))
    setup.push(Failed("prepare", "The disk is full"))
    assert not setup.refused


def test_the_list_says_that_its_order_is_still_to_come():
    setup = Setup(Step.MODEL)
    assert "still being measured" in words(setup).text
    setup.push(Done("doctor", {}))
    assert words(setup).text.startswith("What fits best comes first")
