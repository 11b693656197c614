"""A model as it is looked at."""

import dataclasses

import pytest

from app.library.details import Details
from runtime import store
from runtime.protocol.commands import Job
from runtime.protocol.events import Done, Failed, Progress
from tests.app.conftest import MODEL, add_model
from tests.app.library.inspection import INSPECTION

LOOK, MEASURE = (Job("model_details", {"model": MODEL}),), (Job("int8x_inspect", {"model": MODEL}),)
VERIFY = (Job("check_files", {"model": MODEL}), Job("int8x_verify", {"model": MODEL}))


@pytest.fixture
def record():
    add_model(MODEL)
    return store.find(MODEL)


def test_looking_fills_in_what_is_found(record):
    details = Details(record, {})
    assert (details.doing(), details.look(), details.measure()) == ("", LOOK, MEASURE)
    assert details.doing() == "Looking at the files…"
    details.push(Progress("int8x_inspect", "inspect", 25, 100, "weights", 50.0, 1.5))
    assert details.doing() == "Measuring the weights 25 % · 50 weights/s, 2 s left"
    details.push(Done("model_details", {"context": 8192}))
    assert details.files == {"context": 8192}
    details.push(Done("int8x_inspect", INSPECTION))
    assert details.inspection.total.bits_per_weight == 5.5
    assert [each.kind for each in details.inspection.kinds] == ["embed_tokens", "q_proj"]
    assert details.doing() == ""


def test_what_was_measured_is_known_until_the_files_change(record):
    known = {}
    Details(record, known).push(Done("int8x_inspect", INSPECTION))
    again = Details(record, known)
    assert again.inspection is not None
    assert again.measure() == ()
    other = Details(dataclasses.replace(record, bytes=record.bytes + 1), known)
    assert other.inspection is None
    assert other.measure() == MEASURE


def test_verifying_a_good_model(record):
    details = Details(record, {})
    assert details.verify() == VERIFY
    assert details.verifying
    details.push(Done("check_files", {"files": 38, "bytes": 208_517_271}))
    assert (details.verdict, details.verified) == (
        "38 files, 209 MB: every one has its recorded SHA-256",
        None,
    )
    details.push(
        Done("int8x_verify", {"lossless": True, "tensors": 211, "weights": 134_479_872, "mismatches": 0})
    )
    assert details.verdict.startswith("✓ 38 files")
    assert details.verdict.endswith("lossless: 134 479 872 weights in 211 tensors are right")
    assert (details.verified, details.verifying) == (True, False)


def test_wrong_weights_are_counted(record):
    details = Details(record, {})
    details.verify()
    details.push(Done("int8x_verify", {"lossless": False, "tensors": 2, "weights": 1000, "mismatches": 3}))
    assert (details.verdict, details.verified) == ("✗ 3 of 1 000 weights are wrong", False)


@pytest.mark.parametrize(
    ("failed", "verified", "problem"),
    [
        (Failed("check_files", "The model m is damaged", "x is bad", "fetch it"), False, "damaged"),
        (Failed("int8x_verify", "Stopped", code=130), None, ""),
        (Failed("model_details", "The file is gone"), None, "gone"),
        (Failed("worker", "The engine's process ended"), None, "ended"),
    ],
)
def test_failures(record, failed, verified, problem):
    details = Details(record, {})
    details.verify()
    details.push(failed)
    assert details.verified is verified
    assert problem in details.problem
    assert bool(details.problem) is bool(problem)
    assert details.verifying is (failed.job == "model_details")


def test_a_result_that_cannot_be_read_is_told(record):
    details = Details(record, {})
    details.push(Done("int8x_inspect", {"tensors": "many"}))
    assert details.inspection is None
    assert "could not be read" in details.problem
