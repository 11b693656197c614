"""How text and figures are portioned over time."""

from __future__ import annotations

import pytest

from runtime.generation.answer import AnswerText
from runtime.generation.cache import common_prefix
from runtime.generation.engine import SliderReading
from runtime.generation.meter import Meter
from runtime.protocol import KChunk
from runtime.text import Tokenizer
from tests.fakes.small_tokenizers import write_byte_level


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def tokenizer(tmp_path):
    write_byte_level(tmp_path)
    return Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(("step_s", "events"), [(0.05, 11), (0.001, 1)])
def test_slow_tokens_come_one_by_one_and_quick_ones_together(tokenizer, step_s, events):
    clock = Clock()
    text = AnswerText(tokenizer, (), clock=clock)
    seen = []
    for character in "hello there":
        seen.append(text.push(tokenizer.encode(character)[0]))
        clock.now += step_s
    sent = [event for event in seen if event]
    assert len(sent) == events
    last = text.finish()
    assert "".join(event.text for event in [*sent, last] if event) == text.text == "hello there"
    assert (last or sent[-1]).index == 11


def test_meter_follows_a_change_of_speed_and_reports_the_mean_at_the_end():
    clock = Clock()
    meter = Meter(100, clock)
    clock.now = 2.0
    meter.prefilled(50, 10)
    for step_s in [0.1] * 20 + [0.2] * 20:
        clock.now += step_s
        meter.token()
    slider = SliderReading(5.0, 4.5, KChunk(1, 2, 3, 4), 70)
    live, final = meter.stats(90, slider), meter.stats(90, slider, final=True)
    assert live.decode_tokens_per_s == pytest.approx(5.0)
    assert final.decode_tokens_per_s == pytest.approx(39 / (1.9 + 4.0))
    assert (live.prefill_s, live.prompt_tokens, live.reused_tokens) == (2.0, 50, 10)
    assert live.completion_tokens == 40
    assert (live.k_chunk, live.channels_corrected) == (KChunk(1, 2, 3, 4), 70)
    assert live.slowdown_measured_pct == 4.5


def test_stats_are_due_five_times_a_second():
    clock = Clock()
    meter = Meter(100, clock)
    due = 0
    for _ in range(1000):
        clock.now += 0.002
        due += meter.due()
    assert due in (9, 10)


def test_speed_of_nothing_is_zero():
    meter = Meter(10, Clock())
    assert meter.stats(0, SliderReading(0, None, KChunk())).decode_tokens_per_s == 0.0
    meter.token()
    assert meter.stats(0, SliderReading(0, None, KChunk()), final=True).decode_tokens_per_s == 0.0


@pytest.mark.parametrize(
    ("a", "b", "length"), [([], [1], 0), ([1, 2], [1, 2, 3], 2), ([1, 2, 3], [1, 9, 3], 1), ([1], [1], 1)]
)
def test_common_prefix(a, b, length):
    assert common_prefix(a, b) == length
