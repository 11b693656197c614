"""The settings screen: what is changed counts at once, is kept, and says what it still needs."""

import tomllib

import pytest

from app import hints, settings_file
from app.chat.screens.choice import ChoiceScreen
from app.chat.screens.key import KeyScreen
from app.chat.screens.line import LineScreen
from app.chat.screens.moving import MovingScreen
from app.chat.screens.pick import PickScreen
from app.chat.screens.settings import SettingsScreen
from app.options import Applies
from app.session import Phase
from runtime import locations
from runtime.store import moving
from tests.app.chat.helpers import ask, running, seen, until
from tests.app.conftest import MODEL

pytestmark = pytest.mark.usefixtures("worker", "model")
ANSWERS, ENGINE, LOOK, KEYS, FOLDERS = range(5)


async def opened(app, pilot, page=0, row=0):
    await pilot.press("f10")
    await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
    await pilot.press(*["tab"] * page, *["down"] * row)
    await pilot.pause()


def text(app):
    return "\n".join(seen(app))


async def test_numbers_by_key_and_by_typing_count_at_once_and_are_kept():
    async with running() as (app, pilot):
        await opened(app, pilot)
        assert "the model's own" in text(app)
        await pilot.press("right", "right")
        assert app.session.sampling.temperature == pytest.approx(0.3)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LineScreen))
        assert app.screen.query_one("#line").value == "0.3"
        app.screen.query_one("#line").value = "5000"
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, LineScreen)
        assert "between 0 and 100" in text(app)
        app.screen.query_one("#line").value = "0,7"
        await pilot.press("enter")
        await pilot.pause()
        assert app.session.sampling.temperature == 0.7
        await pilot.press("down", "right", "delete")
        assert app.session.sampling.top_p is None
        await pilot.press("escape")
        await ask(app, pilot, "q")
    assert tomllib.loads(locations.settings_file().read_text())["sampling"] == {"temperature": 0.7}


async def test_what_needs_a_reload_says_so_and_does_it():
    async with running() as (app, pilot):
        await opened(app, pilot, ENGINE, 1)
        await pilot.press("right")
        assert app.settings.kv_bits == 8
        assert app.pending() is Applies.LOAD
        assert "Ctrl+R does that now" in text(app)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: app.session.phase is Phase.READY)
        assert app.last_load.kv_bits == 8
        assert app.pending() is Applies.NOW
        await pilot.press("right", "escape")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(app.screen, SettingsScreen | ChoiceScreen))
        await until(pilot, lambda: app.session.phase is Phase.READY)
        assert app.last_load.kv_bits == 16


async def test_a_device_needs_a_new_engine():
    async with running() as (app, pilot):
        await opened(app, pilot, ENGINE, 4)
        engine = app.link._client.pid
        await pilot.press("right")
        assert app.settings.device == "cpu"
        assert app.pending() is Applies.START
        await pilot.press("ctrl+r")
        await until(pilot, lambda: app.session.phase is Phase.READY and app.link._client.pid != engine)
        assert app.pending() is Applies.NOW
        await pilot.press("escape")
        await ask(app, pilot, "q")
        assert app.session.conversation.last.answer.startswith("The capital")


async def test_what_the_environment_decides_is_said(monkeypatch):
    monkeypatch.setenv("DECDEC_DEVICE", "cpu")
    async with running(size=(140, 40)) as (app, pilot):
        await opened(app, pilot, ENGINE, 4)
        assert "DECDEC_DEVICE is set to cpu" in text(app)
        await pilot.press("right", "right")
        assert app.pending() is Applies.NOW


async def test_the_command_line_goes_before_until_it_is_changed_here():
    async with running(size=(140, 40), given_loading={"context": 512}) as (app, pilot):
        await opened(app, pilot, ENGINE)
        assert "command line goes before it: 512" in text(app)
        await pilot.press("right")
        assert app.session.how_to_load.context == app.settings.context == 4096


async def test_themes_are_tried_while_the_mark_moves():
    async with running() as (app, pilot):
        await opened(app, pilot, LOOK)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))
        await pilot.press("down", "down")
        assert app.theme == "decdec-contrast"
        await pilot.press("escape")
        await pilot.pause()
        assert app.theme == app.settings.theme == "decdec-dark"
        await pilot.press("enter", "down", "enter")
        await pilot.pause()
        assert app.theme == app.settings.theme == "decdec-light"


async def test_a_key_by_pressing_it():
    async with running() as (app, pilot):
        await opened(app, pilot, KEYS, 1)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, KeyScreen))
        await pilot.press("f1")
        await pilot.pause()
        assert app.settings.keys == {}
        assert any("F1 is the key of Help" in note.message for note in app._notifications)
        await pilot.press("enter", "tab")
        await pilot.pause()
        assert any("needed for typing" in note.message for note in app._notifications)
        await pilot.press("enter", "f11")
        await pilot.pause()
        assert app.settings.keys == {"regenerate": "f11"}
        assert "• Regenerate" in text(app)
        assert "F11" in text(app)
        await pilot.press("enter", "escape", "delete")
        assert app.settings.keys == {}


async def test_all_keys_as_usual():
    async with running() as (app, pilot):
        app.remember(keys={"stop": "f11", "theme": "f13"})
        await opened(app, pilot, KEYS)
        await pilot.press("end", "enter")
        assert app.settings.keys == {}


async def test_keys_that_clash_in_the_file_are_told():
    locations.home().mkdir(exist_ok=True)
    locations.settings_file().write_text('[keys]\nstop = "f1"\nedit = "f11"\n')
    async with running() as (app, pilot):
        assert any("F1 is the key of Help" in note.message for note in app._notifications)
        assert app.keymap.own == {"edit": "f11"}
        await pilot.press("f1")
        assert type(app.screen).__name__ == "HelpScreen"


async def test_hints_come_once_are_remembered_and_can_come_again(monkeypatch):
    monkeypatch.setattr(hints, "HINTS", (hints.Hint("first", "{stop} stops.", lambda event, _: True),))
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        assert [note.message for note in app._notifications if note.title == "Hint"] == ["Esc stops."]
        await opened(app, pilot, LOOK, 2)
        assert "1 were shown" in text(app)
        await pilot.press("enter")
        assert app.settings.hints == ()
    assert settings_file.load()[0].hints == ()


async def test_no_hints_where_none_are_wanted(monkeypatch):
    monkeypatch.setattr(hints, "HINTS", (hints.Hint("first", "x", lambda event, _: True),))
    locations.home().mkdir(exist_ok=True)
    locations.settings_file().write_text("show_hints = false\n")
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        assert [note for note in app._notifications if note.title == "Hint"] == []


# Moving the models


async def to_the_question(app, pilot, target):
    await opened(app, pilot, FOLDERS)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, LineScreen))
    app.screen.query_one("#line").value = str(target)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))


async def back_in_the_settings(app, pilot):
    await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
    await until(pilot, lambda: app.session.phase is Phase.READY)


async def test_models_move_and_the_chat_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(moving, "_same_disk", lambda *_: False)
    target = tmp_path / "far"
    async with running() as (app, pilot):
        await to_the_question(app, pilot, target)
        await pilot.press("enter")
        await back_in_the_settings(app, pilot)
        assert locations.home() == target
        assert (target / "models" / MODEL / "weights.bin").exists()
        assert not moving.holds_models(locations.usual_home())
        assert app.ready_models == [MODEL]
        assert "far" in text(app)
        await pilot.press("escape")
        await ask(app, pilot, "q")
        assert app.session.conversation.last.answer.startswith("The capital")
    assert settings_file.load()[0].cache_folder == str(target)


async def test_a_move_that_is_stopped_leaves_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(moving, "_same_disk", lambda *_: False)
    copy = moving._copy_file

    async with running() as (app, pilot):

        def slowly(path, there, count):
            app.call_from_thread(app.screen.action_leave)
            copy(path, there, count)

        monkeypatch.setattr(moving, "_copy_file", slowly)
        await to_the_question(app, pilot, tmp_path / "far")
        await pilot.press("enter")
        await back_in_the_settings(app, pilot)
        assert any("lie where they did" in note.message for note in app._notifications)
        assert locations.home() == locations.usual_home()
        assert app.ready_models == [MODEL]
        assert not (tmp_path / "far").exists()
    assert settings_file.load()[0].cache_folder == ""


async def test_a_folder_that_holds_models_is_used_as_it_is(tmp_path):
    (tmp_path / "other" / "models" / "x").mkdir(parents=True)
    async with running() as (app, pilot):
        await to_the_question(app, pilot, tmp_path / "other")
        assert "holds models already" in text(app)
        await pilot.press("down", "enter")
        await until(pilot, lambda: locations.home() == tmp_path / "other")
        await until(pilot, lambda: app.session.phase is Phase.READY)
    assert moving.holds_models(locations.usual_home())


async def test_a_whole_path_is_needed_and_the_environment_decides(tmp_path, monkeypatch):
    async with running() as (app, pilot):
        await opened(app, pilot, FOLDERS)
        await pilot.press("enter")
        await pilot.pause()
        app.screen.query_one("#line").value = "here"
        await pilot.press("enter")
        await pilot.pause()
        assert "whole path" in text(app)
        await pilot.press("escape")
        monkeypatch.setenv("DECDEC_CACHE", str(locations.home()))
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, SettingsScreen)
        assert any("decides" in note.message for note in app._notifications)


@pytest.mark.parametrize("size", [(30, 8), (60, 20), (100, 30), (200, 50)])
async def test_any_size_draws_every_page(size):
    async with running(size=size) as (app, pilot):
        await opened(app, pilot)
        for page in ("Temperature", "Context", "Theme", "Stop", "Models"):
            assert page in text(app)
            await pilot.press("tab")
            await pilot.pause()
        await app.push_screen(MovingScreen(locations.home()))
        await pilot.pause()
