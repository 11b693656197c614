"""The slider in the chat, by key, mouse and slash command, with the scripted worker."""

import tomllib

import pytest

from app.chat.screens.chat import ChatScreen
from app.chat.screens.wizard import WizardScreen
from app.chat.widgets.prompt import Prompt
from app.chat.widgets.slider import QualitySlider
from app.session import Phase
from app.slider import DEFAULT_SLOWDOWN_PCT, Position
from app.slider.position import LOSSLESS
from runtime import locations
from runtime.protocol.commands import SetSlowdown
from runtime.protocol.events import Failed
from tests.app.chat.helpers import ask, running, seen, until

pytestmark = pytest.mark.usefixtures("worker", "model")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Figures settle and times are told apart without a wait."""
    monkeypatch.setattr("app.slider.state.SETTLE_S", 0.0)
    monkeypatch.setattr("app.slider.times.MIN_S", 0.01)


def readout(app):
    return next(line for line in seen(app) if "target" in line)


def noted(app):
    return [notification.message for notification in app._notifications]


def settings(text):
    locations.home().mkdir(exist_ok=True)
    locations.settings_file().write_text(text)


def kept():
    return tomllib.loads(locations.settings_file().read_text())


async def test_it_moves_during_an_answer_and_shows_what_was_measured(worker):
    worker(rate=100)
    async with running(size=(130, 30)) as (app, pilot):
        await pilot.press("f7", "f7")
        await ask(app, pilot, "!long", wait=False)
        await until(pilot, lambda: app.session.stats is not None)
        # What stood before the move is told only if it was measured.
        await until(pilot, lambda: app.session.slider.times.now_ms is not None)
        before = app.session.stats.channels_corrected
        await pilot.press("f8", "f8")
        await until(pilot, lambda: app.session.stats.slowdown_target_pct == 5.0)
        await until(pilot, lambda: app.session.stats.channels_corrected > before)
        length = len(app.session.conversation.last.answer)
        await until(pilot, lambda: len(app.session.conversation.last.answer) > length)
        await until(pilot, lambda: "measured 4.8 %" in readout(app))
        assert "target 5 % of the products  about 95 tok/s" in readout(app)
        assert "channels corrected" in readout(app)
        await until(pilot, lambda: app.session.slider.times.before is not None)
        await until(pilot, lambda: any("ms/tok" in line and " ms a token, " in line for line in seen(app)))
        await pilot.press("escape")


async def test_keys_from_anywhere_and_focused():
    async with running() as (app, pilot):
        slider = app.session.slider
        assert slider.position == Position(DEFAULT_SLOWDOWN_PCT)
        await pilot.press("f7", "f7", "ctrl+right", "ctrl+right", "ctrl+left")
        assert slider.position == Position(0.5)
        await pilot.press("f8", "f8", "f7")
        assert slider.position == Position(2.5)
        found = []
        for key in "012345":
            await pilot.press(f"alt+{key}")
            found.append(slider.position)
        assert found == [*map(Position, (0.0, 2.5, 5.0, 10.0, 20.0)), LOSSLESS]
        assert app.screen.query_one(Prompt).text == ""
        app.screen.query_one(QualitySlider).focus()
        await pilot.press("3")
        assert slider.position == Position(10.0)
        await pilot.press("right")
        assert slider.position == Position(10.5)
        await pilot.press("end")
        assert slider.position == LOSSLESS
        await pilot.press("left")
        assert slider.position == Position(20.0)
        await pilot.press("home")
        assert slider.position == Position(0.0)


@pytest.mark.parametrize(
    ("slash", "position"),
    [("/fastest", 0.0), ("/2.5", 2.5), ("/20", 20.0), ("/less", 4.5), ("/more", 5.5), ("/better", 10.0)],
)
async def test_slash_commands(slash, position):
    async with running() as (app, pilot):
        await ask(app, pilot, slash)
        assert app.session.slider.position == Position(position)


@pytest.mark.parametrize("size", [(60, 20), (100, 30), (200, 50)])
async def test_mouse_click_drag_wheel_and_hover(size):
    async with running(size=size) as (app, pilot):
        widget, slider = app.screen.query_one(QualitySlider), app.session.slider
        lines, top = widget._lines(), widget.gutter.top
        left, scale = widget.gutter.left + len(lines.captions[0]), lines.scale
        await pilot.click(widget, offset=(left + scale.cell(Position(10.0)), top))
        assert slider.position == Position(10.0)
        assert isinstance(app.focused, Prompt)
        await pilot.mouse_down(widget, offset=(left + scale.cell(Position(10.0)), top))
        aside = left + scale.cell(Position(1.0))
        await pilot.hover(widget, offset=(aside, top))
        await pilot.mouse_up(widget, offset=(aside, top))
        assert 0 < slider.position.pct < 2.5
        dragged = slider.position
        await pilot.hover(widget, offset=(left + scale.cell(Position(5.0)), top))
        await until(pilot, lambda: any("▲ 5 %" in line for line in seen(app)))
        assert slider.position == dragged
        await pilot.hover("#prompt")
        await until(pilot, lambda: not any("▲" in line for line in seen(app)))
        await pilot.click(widget, offset=(left + scale.cells - 1, top))
        assert slider.position == LOSSLESS
        await pilot._post_mouse_events([_scroll("Down")], widget, offset=(left, top))
        assert slider.position == Position(20.0)
        await pilot._post_mouse_events([_scroll("Down"), _scroll("Up"), _scroll("Down")], widget)
        assert slider.position == Position(19.5)


def _scroll(direction):
    from textual import events

    return getattr(events, f"MouseScroll{direction}")


@pytest.mark.parametrize(("size", "lines"), [((60, 20), 2), ((100, 30), 4), ((60, 30), 4), ((200, 50), 7)])
async def test_more_lines_in_a_higher_terminal(size, lines):
    async with running(size=size) as (app, pilot):
        widget = app.screen.query_one(QualitySlider)
        assert widget.content_size.height == lines
        await pilot.resize_terminal(60, 20)
        await until(pilot, lambda: widget.content_size.height == 2)


async def test_the_target_is_remembered():
    async with running() as (app, pilot):
        await pilot.press("f8")
        await until(pilot, lambda: locations.settings_file().exists())
    assert kept()["slowdown_pct"] == 10.0
    async with running() as (app, pilot):
        assert app.session.slider.position == Position(10.0)


async def test_lossless_is_remembered_and_auto_gives_back_what_the_hand_had():
    async with running() as (app, pilot):
        await pilot.press("alt+5")
        await until(pilot, lambda: locations.settings_file().exists())
    assert kept()["slowdown_lossless"] is True
    async with running() as (app, pilot):
        assert app.session.slider.position == LOSSLESS
        await ask(app, pilot, "hi")
        assert app.session.stats.lossless
        app.session.slider.keep_speed(1e4)
        app.session.slider._set(Position(2.5))
        await pilot.press("f6")
        assert app.session.slider.position == LOSSLESS
        await pilot.press("f7")
    assert kept().get("slowdown_lossless", False) is False


async def test_untuned_it_says_why_and_a_click_tunes(worker):
    worker("--untuned")
    settings('untuned = ["SmolLM2-135M-Instruct"]')
    async with running() as (app, pilot):
        assert isinstance(app.screen, ChatScreen)
        assert any("not tuned on this device yet. F9 tunes." in line for line in seen(app))
        await pilot.press("f8", "alt+3")
        assert app.session.slider.position == Position(0.0)
        assert "The slider is off: not tuned on this device yet. F9 tunes." in noted(app)
        await ask(app, pilot, "/auto 20")
        assert not app.session.slider.auto.on
        await pilot.click(QualitySlider, offset=(10, 2))
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))


async def test_where_lossless_does_not_fit_it_says_so(worker):
    worker(lossless=False)
    async with running() as (app, pilot):
        await ask(app, pilot, "/lossless")
        assert app.session.slider.position == Position(DEFAULT_SLOWDOWN_PCT)
        assert any("does not fit" in message for message in noted(app))


async def test_a_crash_keeps_the_target_and_the_new_engine_gets_it():
    async with running() as (app, pilot):
        await pilot.press("alt+5")
        await ask(app, pilot, "!crash", wait=False)
        await until(pilot, lambda: app.session.conversation.last.failure)
        await until(pilot, lambda: app.session.phase is Phase.READY)
        assert app.session.slider.position == LOSSLESS
        await ask(app, pilot, "again")
        assert app.session.stats.lossless


async def test_auto_by_slash_and_key_and_the_hand_switches_it_off():
    async with running() as (app, pilot):
        auto = app.session.slider.auto
        await ask(app, pilot, "/auto 20")
        assert (auto.on, auto.floor) == (True, 20.0)
        assert "auto ≥ 20 tok/s" in readout(app)
        await until(pilot, lambda: locations.settings_file().exists())
        await pilot.press("f6")
        assert (auto.on, auto.floor) == (False, 20.0)
        await pilot.press("f6")
        assert (auto.on, auto.floor) == (True, 20.0)
        await pilot.press("f7")
        await pilot.pause()
        assert not auto.on
        assert "auto" not in readout(app)
        assert any("Auto is off" in message for message in noted(app))
        await ask(app, pilot, "/auto quickly")
        assert any("is no speed" in message for message in noted(app))
        await ask(app, pilot, "/auto 33")
    assert kept()["auto_floor"] == 33.0
    async with running() as (app, pilot):
        assert (app.session.slider.auto.on, app.session.slider.auto.floor) == (True, 33.0)
        await ask(app, pilot, "/auto 0")
        assert not app.session.slider.auto.on
    assert kept().get("auto_floor", 0.0) == 0.0


async def test_auto_follows_the_settings():
    async with running() as (app, pilot):
        await pilot.press("f1")
        app.remember(auto_floor=12.0)
        await pilot.press("escape")
        await until(pilot, lambda: app.session.slider.auto.on)
        await pilot.press("f1")
        app.remember(auto_floor=0.0)
        await pilot.press("escape")
        await until(pilot, lambda: not app.session.slider.auto.on)


async def test_auto_sends_its_moves_to_the_engine(worker, monkeypatch):
    monkeypatch.setattr("app.slider.auto.FLUSH_S", 0.1)
    monkeypatch.setattr("app.slider.auto.UP_S", 0.2)
    worker(rate=100, lossless=False)
    async with running() as (app, pilot):
        await ask(app, pilot, "!long", wait=False)
        await ask(app, pilot, "/auto 30", wait=False)
        await until(pilot, lambda: app.session.slider.position == Position(20.0))
        await until(pilot, lambda: app.session.stats.slowdown_target_pct == 20.0)
        assert app.session.slider.auto.on
        await pilot.press("escape")
        await until(pilot, lambda: not app.session.busy)
    assert kept()["slowdown_pct"] == 20.0


async def test_a_drag_is_few_commands():
    async with running(size=(200, 50)) as (app, pilot):
        sent, post = [], app.link.post
        app.link.post = lambda command: (sent.append(command), post(command))
        for _ in range(10):
            await pilot.press("ctrl+right")
        await until(pilot, lambda: SetSlowdown(10.0) in sent)
        assert len(sent) <= 10
        assert all(isinstance(command, SetSlowdown) for command in sent)


async def test_a_position_that_the_engine_refuses_is_told_and_the_target_goes_back(worker):
    async with running() as (app, pilot):
        await ask(app, pilot, "hi")
        before = app.session.slider.position
        app.session.slider.move_to(20)
        app.session.push(failed := Failed("set_slowdown", "Memory ran out", "1 MB is free", "take less"))
        app.screen.engine_event(failed)
        await pilot.pause()
        assert app.session.slider.position == before
        assert "Memory ran out: 1 MB is free. Take less." in noted(app)
