"""A tuned path and reports of an engine that follows it."""

import pytest

from app.slider import SliderState
from runtime.protocol.events import KChunk, Loaded, SlowdownPoint, Stats

PATH = (
    SlowdownPoint(0.0, KChunk(8, 0, 4, 0)),
    SlowdownPoint(1.8, KChunk(16, 0, 8, 0)),
    SlowdownPoint(6.0, KChunk(32, 8, 16, 8)),
)


def loaded(path=PATH, lossless=True, reason="", device="H200 (cuda:0)"):
    return Loaded("m", "rtn4", device, 2048, 1, path, reason, lossless)


def stats(target, measured=1.5, tokens=10, lossless=False, speed=70.0, prompt=5, channels=99):
    return Stats(
        speed, 0.1, prompt, 0, tokens, tokens + prompt, 2048, target, measured, KChunk(1), channels, lossless
    )


class Clock:
    """Seconds that pass when told."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def slider(clock):
    state = SliderState(clock=clock)
    state.loaded(loaded())
    return state
