"""Numbers as people read them."""

import pytest

from app import format
from runtime.protocol.events import Progress


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (92_871_040, "92.9 MB"),
        (999_960_000, "1.00 GB"),
        (16_060_000_000, "16.1 GB"),
    ],
)
def test_size(count, text):
    assert format.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_duration(seconds, text):
    assert format.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (3.14, "3.1"), (9512, "9 512"), (134_515_008, "134.5 M"), (2e9, "2.0 G")]
)
def test_compact(count, text):
    assert format.compact(count) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0 %"), (2.5, "2.5 %"), (10.0, "10 %"), (4.83, "4.8 %")])
def test_percent(value, text):
    assert format.percent(value) == text


def test_progress_line_with_everything():
    event = Progress(
        "prepare", "download", 41_200_000, 92_871_040, "bytes", 5_100_000, 10.1, "from the index"
    )
    assert format.progress_line(event) == (
        "Download: 41.2 MB of 92.9 MB (44 %) at 5.10 MB/s, 10 s left - from the index"
    )


def test_progress_line_with_nothing_known():
    assert format.progress_line(Progress("x", "some_step", 7, 0, "tensors")) == "Some step: 7 tensors"


@pytest.mark.parametrize(("speed", "text"), [(123.4, "123"), (9.96, "10"), (9.94, "9.9"), (0.52, "0.5")])
def test_a_speed_that_was_not_measured_claims_no_digit_it_does_not_know(speed, text):
    assert format.about(speed) == text


@pytest.mark.parametrize(
    ("ms", "text"), [(128.4, "128"), (99.96, "100"), (12.84, "12.8"), (9.996, "10.0"), (1.284, "1.28")]
)
def test_milliseconds_have_three_figures(ms, text):
    assert format.milliseconds(ms) == text
