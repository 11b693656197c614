"""What may stand behind /auto."""

import pytest

from app.slider import Auto
from app.slider.floor import DEFAULT_FLOOR, wanted_floor
from runtime.errors import DecdecError


def auto(floor=0.0, on=False):
    made = Auto()
    made.floor, made.on = floor, on
    return made


@pytest.mark.parametrize(
    ("text", "floor"),
    [
        ("20", 20.0),
        ("12.5", 12.5),
        ("12,5", 12.5),
        ("20 tok/s", 20.0),
        ("0", 0.0),
        ("-3", -3.0),
        ("off", 0.0),
    ],
)
def test_a_speed_or_off(text, floor):
    assert wanted_floor(text, auto()) == floor


def test_without_a_speed_it_is_switched_with_the_floor_it_had():
    assert wanted_floor("", auto()) == DEFAULT_FLOOR
    assert wanted_floor("", auto(30.0, on=True)) == 0.0
    assert wanted_floor(" ", auto(30.0)) == 30.0


@pytest.mark.parametrize("text", ["fast", "nan", "inf", "1e9", "\x1b[31m"])
def test_what_is_no_speed_is_told(text):
    with pytest.raises(DecdecError, match="is no speed") as caught:
        wanted_floor(text, auto())
    assert "\x1b" not in caught.value.sentence
