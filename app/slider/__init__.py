"""The quality slider without a screen: where it stands, what a position costs, and who moves it."""

from app.slider.auto import Auto
from app.slider.path import FREE_PCT, Path
from app.slider.position import DEFAULT_SLOWDOWN_PCT, DETENTS, FINE_STEP, MAX_SLOWDOWN_PCT, Position
from app.slider.scale import Scale
from app.slider.speeds import Speeds
from app.slider.state import OVERRUN_PCT, SliderState
from app.slider.times import Sample, TokenTimes

__all__ = [
    "DEFAULT_SLOWDOWN_PCT",
    "DETENTS",
    "FINE_STEP",
    "FREE_PCT",
    "MAX_SLOWDOWN_PCT",
    "OVERRUN_PCT",
    "Auto",
    "Path",
    "Position",
    "Sample",
    "Scale",
    "SliderState",
    "Speeds",
    "TokenTimes",
]
