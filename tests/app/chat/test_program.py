"""System prompts, themes and help, from the chat."""

import pytest

from app.chat import themes
from app.chat.screens.chat import ChatScreen
from app.chat.screens.help import HelpScreen
from app.chat.screens.line import LineScreen
from app.chat.screens.system_prompt import SystemPromptScreen
from app.settings_file import load
from tests.app.chat.helpers import ask, running, seen, until

pytestmark = pytest.mark.usefixtures("worker", "model")


def text(app):
    return "\n".join(seen(app))


async def test_a_prompt_by_slash_counts_from_the_next_question_on():
    async with running() as (app, pilot):
        await ask(app, pilot, "/system Be brief [/b].", wait=False)
        await pilot.pause()
        await ask(app, pilot, "q")
        assert app.session.conversation.messages()[0].content == "Be brief [/b]."
    assert load()[0].system_prompt == "Be brief [/b]."


async def test_prompts_are_kept_under_names_chosen_and_deleted():
    async with running() as (app, pilot):
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, SystemPromptScreen))
        await pilot.press(*"One", "f2")
        await until(pilot, lambda: isinstance(app.screen, LineScreen))
        await pilot.press(*"short", "enter")
        await until(pilot, lambda: isinstance(app.screen, SystemPromptScreen))
        assert "short" in text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert app.settings.system_prompts == {"short": "One"}
        assert app.session.conversation.system_prompt == ""
        await pilot.press("f4")
        await pilot.pause()
        app.screen.query_one("#prompt-names").focus()
        await pilot.press("down", "enter", "ctrl+s")
        await pilot.pause()
        assert app.session.conversation.system_prompt == "One"
        await pilot.press("f4")
        await pilot.pause()
        app.screen.query_one("#prompt-names").focus()
        await pilot.press("down", "shift+delete", "escape")
        await pilot.pause()
    assert load()[0].system_prompts == {}
    assert load()[0].system_prompt == "One"


async def test_themes_by_key_name_and_beginning():
    async with running() as (app, pilot):
        await pilot.press("alt+t")
        assert app.theme == "decdec-light"
        for typed, theme in (("nord", "nord"), ("decdec-c", "decdec-contrast"), ("ansi-l", "ansi-light")):
            await ask(app, pilot, f"/theme {typed}", wait=False)
            await pilot.pause()
            assert app.theme == theme
        await ask(app, pilot, "/theme decdec", wait=False)
        await pilot.pause()
        assert app.theme == "ansi-light"
        assert any("decdec-dark, decdec-light" in note.message for note in app._notifications)
        await pilot.press("alt+t")
        assert app.theme == "decdec-dark"
    assert load()[0].theme == "decdec-dark"


def test_the_round_of_themes():
    names = [*themes.ROUND, "nord", "dracula"]
    assert themes.ordered(names) == [*themes.ROUND, "dracula", "nord"]
    seen_themes = ["decdec-dark"]
    for _ in themes.ROUND:
        seen_themes.append(themes.following(seen_themes[-1], names))
    assert seen_themes == [*themes.ROUND, "decdec-dark"]
    assert themes.following("nord", names) == "decdec-dark"
    for wanted, theme in (("NORD", "nord"), ("dra", "dracula"), ("light", ""), ("", ""), ("x", "")):
        assert themes.meant(wanted, names) == theme


async def test_a_theme_that_is_gone_is_told():
    async with running() as (app, _):
        app.remember(theme="gone")
    async with running() as (app, _):
        assert app.theme == "decdec-dark"
        assert any("no theme 'gone'" in note.message for note in app._notifications)


async def test_no_color_is_told_with_a_theme(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with running() as (app, pilot):
        await pilot.press("alt+t")
        assert any("NO_COLOR" in note.message for note in app._notifications)


async def test_help_searches_shows_keys_of_now_and_closes():
    async with running(size=(100, 30)) as (app, pilot):
        app.remember(keys={"regenerate": "f11"})
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press(*"retry")
        await pilot.pause()
        assert "F11" in text(app)
        assert "Ctrl+G" not in text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "Ctrl+J" in text(app)
        await pilot.press(*"zzz")
        await pilot.pause()
        assert "Nothing has these words" in text(app)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))


@pytest.mark.parametrize("size", [(30, 8), (60, 20), (200, 50)])
@pytest.mark.parametrize("key", ["f1", "f4"])
async def test_any_size_draws(size, key):
    async with running(size=size) as (app, pilot):
        app.remember(system_prompts={"name": "text"})
        await pilot.press(key)
        await pilot.pause()
        assert text(app).strip()
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
