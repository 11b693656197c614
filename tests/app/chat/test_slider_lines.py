"""The slider's lines as they are drawn, at the widths of terminals of 60, 100 and 200 columns."""

import pytest

from app.chat.widgets.slider_lines import Fact, SliderLines, fitted
from app.slider import Position, SliderState
from app.slider.position import LOSSLESS
from app.slider.state import OVERRUN_REPORTS
from runtime.protocol.events import KChunk, SlowdownPoint
from tests.app.slider.conftest import Clock, loaded, stats

COSTS = (0.0, 1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0)
PATH = tuple(SlowdownPoint(pct, KChunk(4 * i, 2 * i, 8 * i, 4 * i)) for i, pct in enumerate(COSTS, 1))
NARROW, WIDE, WIDEST = (56, 2), (94, 4), (194, 7)


class Chat:
    """A slider whose engine writes answers."""

    def __init__(self, path=PATH, **fields):
        self.clock, self.tokens = Clock(), 0.0
        self.slider = SliderState(Position(5.0), clock=self.clock)
        self.slider.loaded(loaded(path, **fields))

    def write(self, reports, ms, measured):
        for _ in range(reports):
            self.clock.now += 0.4
            self.tokens += 400 / ms
            at = self.slider.position
            self.slider.measured(
                stats(at.pct, measured, round(self.tokens), at.lossless, 1000 / ms, channels=1620)
            )

    def drawn(self, size, ghost=None):
        width, height = size
        lines = SliderLines(self.slider, width, lambda part: "", ghost).lines(height)
        assert len(lines) <= height
        assert max(line.cell_len for line in lines) <= width
        return [line.plain.rstrip() for line in lines]


@pytest.fixture
def chat():
    return Chat()


def test_before_anything_was_measured(chat):
    assert chat.drawn(NARROW) == [
        "╪═════════━━━━┿━━━━━●────────┼───────────┼             ◇",
        "target 5 %   measured –   free to 1 %",
    ]
    assert chat.drawn(WIDE)[2:] == [
        "target 5 %   measured –   free to 1 %   k_chunk qkv 16 · o 8 · gate/up 32 · down 16",
        "ms/tok measured while an answer is written",
    ]


def test_60_columns(chat):
    chat.write(10, 12.5, 4.8)
    assert chat.drawn(NARROW)[1] == "target 5 %  about 80 tok/s   measured 4.8 %  80.0 tok/s"
    assert chat.drawn((56, 4)) == [
        "╪═════════━━━━┿━━━━━●────────┼───────────┼             ◇",
        "0            2.5    5       10         20 %     lossless",
        "target 5 %  about 80 tok/s   measured 4.8 %  80.0 tok/s",
        "ms/tok ▄▄▄▄▄▄▄▄▄                         12.5 ms a token",
    ]


def test_100_columns(chat):
    chat.write(10, 12.5, 4.8)
    assert chat.drawn(WIDE) == [
        "faster ╪══════════════━━━━━━━┿━━━━━━━━━●────────────┼─────────────────┼               ◇ better",
        "·tok/s 0 %·84            2.5 %·82   5 %·80       10 %·76           20 %·70     lossless",
        "target 5 %  about 80 tok/s   measured 4.8 %  80.0 tok/s   1 620 channels corrected",
        "ms/tok ▄▄▄▄▄▄▄▄▄                                                        12.5 ms a token",
    ]


def test_speeds_stand_beside_the_labels_lossless_too_once_it_ran(chat):
    chat.write(10, 12.5, 4.8)
    chat.slider.move_lossless()
    chat.write(8, 31.0, 0.0)
    assert chat.drawn(WIDE)[1].endswith("20 %·70  lossless·32")


def test_on_a_cpu_it_says_what_the_percentages_are_of():
    chat = Chat(device="CPU (2 threads)")
    assert chat.drawn(WIDE, Position(5.0))[1].strip() == "▲ 5 %  about 5 % of the products"
    chat.slider.move_to(20)
    chat.write(10, 12.5, 2.1)
    assert chat.drawn(WIDE)[2] == (
        "target 20 % of the products  about 80 tok/s   measured 2.1 % of the whole  80.0 tok/s"
    )
    assert chat.drawn(NARROW)[1] == "target 20 %  about 80 tok/s   measured 2.1 %  80.0 tok/s"
    chat.slider.move_lossless()
    assert chat.drawn(WIDE)[2].startswith("target lossless   measured")


def test_the_part_of_the_rail_that_changes_nothing_is_dim():
    chat = Chat((SlowdownPoint(0.0, KChunk()), SlowdownPoint(3.7, KChunk(8))))
    rail = "faster ┊┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┊┈┈┈┈━━━━━●────────────┼─────────────────┼               ◇ better"
    assert chat.drawn(WIDE)[0] == rail
    chat.slider.move_to(0)
    assert "●┈┈" in chat.drawn(WIDE)[0]


def test_another_answer_keeps_the_curve_and_not_the_figures(chat):
    chat.write(10, 12.5, 4.8)
    chat.tokens = 0
    chat.write(3, 25.0, 4.8)
    assert chat.drawn(WIDE)[3] == "ms/tok ▂▂▂▂▂▂▂▂▂ ██"
    chat.write(3, 25.0, 4.8)
    assert chat.drawn(WIDE)[3].endswith(" 25.0 ms a token")


def test_200_columns(chat):
    chat.write(10, 12.5, 4.8)
    chat.slider.move_to(20)
    chat.write(11, 14.0, 19.2)
    lines = chat.drawn(WIDEST)
    at = lines[1].index
    assert (lines[0][at("2.5") + 1], lines[0][at("20 %") + 2], lines[0][at("lossless") + 7]) == (
        "┿",
        "●",
        "◇",
    )
    assert lines[2].split() == ["about", "85", "83", "81", "77", "71", "tok/s"]
    assert [lines[2].index(speed) for speed in ("85", "71")] == [at("0"), at("20 %") + 1]
    assert lines[3] == (
        "target 20 %  about 71 tok/s   measured 19.2 %  71.4 tok/s   1 620 channels corrected   "
        "free to 1 %   k_chunk qkv 32 · o 16 · gate/up 64 · down 32"
    )
    assert lines[4:6] == [" 15.2 ┤         │▃ ▃ ▃  ▃ ▃", " 12.4 ┤▁▁▁▁▁▁▁▁▁│██████████"]
    assert lines[6].startswith("   ms └─────────┴20 % ───")
    assert lines[6].endswith("───  14.0 ms a token, 12.5 at 5 %")


def test_what_a_move_cost_is_seen_beside_its_mark(chat):
    chat.write(10, 12.5, 4.8)
    chat.slider.move_to(20)
    chat.write(3, 14.0, 19.2)
    assert chat.drawn(WIDE)[2:] == [
        "target 20 %  about 70 tok/s   measured settling   1 620 channels corrected   free to 1 %",
        "ms/tok ▄▄▄▄▄▄▄▄▄│█▇",
    ]
    chat.write(8, 14.0, 19.2)
    assert chat.drawn(WIDE)[3] == (
        "ms/tok ▁▁▁▁▁▁▁▁▁│▆▄▆▄▆▄▄▆▄▆                                14.0 ms a token, 12.5 at 5 %"
    )


def test_only_the_newest_times_fit(chat):
    chat.write(200, 12.5, 4.8)
    line = chat.drawn((56, 4))[3]
    assert line == "ms/tok " + "▄" * 32 + "  12.5 ms a token"


@pytest.mark.parametrize(
    ("ghost", "size", "line"),
    [
        (Position(2.5), NARROW, "              ▲ 2.5 %  about 82 tok/s"),
        (Position(14.2), NARROW, "            14.2 %  about 76 tok/s ▲"),
        (LOSSLESS, NARROW, "                         lossless  speed not known yet ▲"),
        (Position(2.5), WIDE, "                             ▲ 2.5 %  about 82 tok/s"),
    ],
)
def test_the_mouse_sees_what_a_click_would_bring(chat, ghost, size, line):
    chat.write(10, 12.5, 4.8)
    lines = chat.drawn(size, ghost)
    assert lines[1] == line
    assert lines[0][line.index("▲")] == ("◈" if ghost.lossless else "○")


def test_without_a_measured_speed_the_mouse_sees_the_share(chat):
    line = chat.drawn(WIDE, Position(5.0))[1]
    assert line.strip() == "▲ 5 %  about 5 % slower"


def test_lossless_shows_its_speed_and_no_cost(chat):
    chat.write(10, 12.5, 4.8)
    chat.slider.move_lossless()
    chat.write(8, 31.0, 0.0)
    lines = chat.drawn(WIDEST)
    assert lines[0].endswith("┿               ◆ better")
    assert lines[2].split()[-2:] == ["32", "tok/s"]
    assert lines[3].startswith("target lossless  about 32 tok/s   measured 32.3 tok/s   free to 1 %")
    assert "┴lossless ─" in lines[6]


def test_auto_shows_its_floor_and_whether_it_is_reached(chat):
    chat.write(10, 12.5, 4.8)
    chat.slider.keep_speed(20.0)
    assert chat.drawn(NARROW)[1] == "target lossless   measured settling   auto ≥ 20 tok/s"
    chat.slider.keep_speed(500.0)
    chat.write(30, 12.5, 0.0)
    assert "auto ≥ 500 tok/s is not reached" in chat.drawn(WIDE)[2]


def test_above_target_the_tuner_is_offered(chat):
    chat.write(OVERRUN_REPORTS + 1, 12.5, 9.0)
    assert "measured 9 %  80.0 tok/s   above target, F9 tunes again" in chat.drawn(WIDE)[2]


@pytest.mark.parametrize(
    ("reason", "size", "lines"),
    [
        (
            "m was not tuned on this machine yet",
            NARROW,
            ["Slider off: m was not tuned on this machine… F9 tunes."],
        ),
        (
            "m was not tuned on this machine yet",
            (56, 4),
            ["Slider off: m was not tuned on this machine", "yet. F9 tunes."],
        ),
        (
            "since the last tuning the driver changed",
            WIDE,
            ["Slider off: since the last tuning the driver changed. F9 tunes."],
        ),
        ("a server\x1b[2J answers here", WIDE, ["Slider off: a server␛[2J answers here."]),
    ],
)
def test_off_it_says_why_and_what_helps(reason, size, lines):
    drawn = Chat((), reason=reason).drawn(size)
    assert drawn[1:] == lines
    assert "●" not in drawn[0]


@pytest.mark.parametrize("width", range(20, 70, 7))
@pytest.mark.parametrize("height", [1, 2, 4, 7])
def test_any_room_will_do(chat, width, height):
    chat.write(30, 12.5, 4.8)
    chat.drawn((width, max(height, 2)))
    chat.drawn((width, max(height, 2)), Position(10.0))
    Chat((), reason="m was not tuned").drawn((width, max(height, 2)))


def test_facts_of_low_rank_stay_and_keep_their_order():
    facts = [Fact(0, "", "aaaa"), Fact(2, "", "bbbb"), Fact(1, "", "cccc"), Fact(3, "", "d")]
    assert [fact.value for fact in fitted(facts, 11)] == ["aaaa", "cccc"]
    assert [fact.value for fact in fitted(facts, 15)] == ["aaaa", "cccc", "d"]
    assert [fact.value for fact in fitted(facts, 22)] == ["aaaa", "bbbb", "cccc", "d"]
