"""The history's screen, driven by keys, mouse and slash commands, with the scripted worker."""

import contextlib
import json
import re

import pytest
from textual.events import Key
from textual.widgets import Input

from app.chat.screens.chat import ChatScreen
from app.chat.screens.history import FIRST, HistoryScreen
from app.chat.screens.line import LineScreen
from app.chat.widgets.conversation_list import ConversationList
from app.chat.widgets.conversation_preview import ConversationPreview
from app.history import History
from runtime import locations
from tests.app.chat.helpers import ask, chat, running, seen, until
from tests.app.history.conversations import said

pytestmark = pytest.mark.usefixtures("worker", "model")

NOW = 1_700_000_000


def fill(*conversations):
    with contextlib.closing(History(locations.history_file())) as history:
        for place, conversation in enumerate(conversations):
            history.save(conversation, updated=NOW - 1000 * place)


def listed(app):
    """Ids in the list, headings left out."""
    options = app.screen.query_one(ConversationList).options
    return [option.id for option in options if not option.disabled]


def on_screen(app, text):
    return any(text in line for line in seen(app))


def told(app):
    return [notification.message for notification in app._notifications]


async def test_a_chat_is_kept_found_by_its_words_and_opened_again():
    fill(said(("Grüße aus Tokyo", "東京の天気は晴れ"), title="Weather", system_prompt="Be sunny."))
    async with running() as (app, pilot):
        await ask(app, pilot, "What is the capital of France?")
        first = app.session.conversation
        await pilot.press("f3")
        assert len(listed(app)) == 2
        assert on_screen(app, "● What is the capital of France?")
        await pilot.press(*"grusse")
        await until(pilot, lambda: len(listed(app)) == 1)
        app.screen.query_one(Input).value = "天気"
        await until(pilot, lambda: on_screen(app, "東京の天気は晴れ"))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert app.session.conversation.title == "Weather"
        assert app.session.conversation.system_prompt == "Be sunny."
        assert on_screen(app, "Grüße aus Tokyo")
        await ask(app, pilot, "And tomorrow?")
        await ask(app, pilot, "/history what capit", wait=False)
        await until(pilot, lambda: isinstance(app.screen, HistoryScreen) and listed(app) == [first.id])
        await pilot.press("enter")
        await until(pilot, lambda: app.session.conversation.id == first.id)
        assert on_screen(app, "The capital of France is Paris")
    with contextlib.closing(History(locations.history_file())) as history:
        assert [entry.messages for entry in history.page().entries] == [4, 2]


async def test_delete_is_taken_back_and_the_open_chat_makes_room():
    one, two = said(("one", "1")), said(("two", "2"))
    fill(one, two)
    async with running() as (app, pilot):
        await pilot.press("f3", "tab", "d")
        await pilot.pause()
        assert listed(app) == [two.id]
        assert any("“one” is deleted. u brings it back." in message for message in told(app))
        await pilot.press("delete")
        assert listed(app) == []
        assert on_screen(app, "No conversations yet")
        await pilot.press("u")
        assert listed(app) == [two.id]
        await pilot.press("u", "u")
        assert listed(app) == [one.id, two.id]
        assert app.screen.query_one(ConversationList).chosen.id == one.id
        await pilot.press("enter")
        await until(pilot, lambda: app.session.conversation.id == one.id)
        await pilot.press("f3", "tab", "d", "escape")
        await pilot.pause()
        assert app.session.conversation.id != one.id
        assert not app.session.conversation.turns
        assert not on_screen(app, "one")


def footer(app):
    return {
        active.binding.description for active in app.screen.active_bindings.values() if active.binding.show
    }


async def test_letters_search_from_the_first_one_and_are_commands_only_in_the_list():
    clock, other = said(("a clock with drums", "1")), said(("two", "2"))
    fill(clock, other)
    async with running() as (app, pilot):
        chat(app).action_history()
        for letter in "/dxru clock":
            app.post_message(Key("slash" if letter == "/" else letter, letter))
        await until(pilot, lambda: isinstance(app.screen, HistoryScreen))
        await until(pilot, lambda: app.screen.query_one(Input).value == "/dxru clock")
        app.screen.query_one(Input).value = "/clock"
        await until(pilot, lambda: listed(app) == [clock.id])
        assert {"List", "Delete"} <= footer(app)
        assert "Search" not in footer(app)
        await pilot.press("escape")
        await until(pilot, lambda: listed(app) == [clock.id, other.id])
        await pilot.press("down")
        assert app.screen.query_one(ConversationList).has_focus
        assert "Search" in footer(app)
        assert "List" not in footer(app)
        await pilot.press("d")
        await until(pilot, lambda: len(listed(app)) == 1)
        await pilot.press("slash", "d")
        assert app.screen.query_one(Input).value == "d"


async def test_titles_by_key_and_by_slash():
    fill(said(("one", "1")))
    async with running() as (app, pilot):
        await pilot.press("f3", "tab", "r")
        assert isinstance(app.screen, LineScreen)
        app.screen.query_one(Input).value = "A better [b]name"
        await pilot.press("enter")
        await pilot.pause()
        assert on_screen(app, "A better [b]name")
        await pilot.press("r")
        app.screen.query_one(Input).value = "never"
        await pilot.press("escape")
        await pilot.pause()
        assert not on_screen(app, "never")
        await pilot.press("escape")
        await ask(app, pilot, "hello")
        await ask(app, pilot, "/rename My chat")
        assert app.history.load(app.session.conversation.id).title == "My chat"
        await ask(app, pilot, "/rename", wait=False)
        await until(pilot, lambda: isinstance(app.screen, LineScreen))
        assert app.screen.query_one(Input).value == "My chat"
        app.screen.query_one(Input).value = ""
        await pilot.press("enter")
        await pilot.pause()
        assert app.history.page().entries[0].title == "hello"


async def test_export_and_import_by_key_and_by_slash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with running() as (app, pilot):
        await ask(app, pilot, "/export x.md", wait=False)
        await until(pilot, lambda: any("nothing to export" in message for message in told(app)))
        await ask(app, pilot, "hello")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, LineScreen))
        assert app.screen.query_one(Input).value == str(tmp_path / "chat-hello.md")
        await pilot.press("enter")
        await until(pilot, (tmp_path / "chat-hello.md").exists)
        assert f"Saved as {tmp_path / 'chat-hello.md'}." in told(app)
        await ask(app, pilot, f"/export {tmp_path}/all.json", wait=False)
        await until(pilot, (tmp_path / "all.json").exists)
        kept = app.session.conversation
        await ask(app, pilot, "/import all.json", wait=False)
        await until(pilot, lambda: app.session.conversation.id != kept.id)
        assert [turn.answer for turn in app.session.conversation.turns] == [kept.last.answer]
        assert on_screen(app, "The capital of France")
        (tmp_path / "bad.json").write_text(json.dumps({"format": "x", "version": 1}))
        await ask(app, pilot, "/import bad.json", wait=False)
        await until(pilot, lambda: any("holds no conversations" in message for message in told(app)))
        await pilot.press("f3", "tab", "x")
        assert app.screen.query_one(Input).value == str(tmp_path / "chat-hello-2.md")


async def test_many_conversations_come_in_pages_and_the_mouse_opens(worker):
    fill(*[said((f"question {n}", "answer")) for n in range(FIRST + 30)])
    async with running(size=(60, 20)) as (app, pilot):
        await pilot.press("f3", "tab")
        assert on_screen(app, f"{FIRST + 30}")
        assert len(listed(app)) == FIRST + 1
        await pilot.press("end")
        await until(pilot, lambda: len(listed(app)) == FIRST + 30)
        assert app.screen.query_one(ConversationList).chosen.title == f"question {FIRST}"
        await pilot.press("home")
        row = next(n for n, line in enumerate(seen(app)) if "question 3 " in line)
        await pilot.click(offset=(10, row))
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert app.session.conversation.turns[0].question == "question 3"


async def test_opening_another_chat_stops_the_answer_and_keeps_it(worker):
    worker(rate=100)
    other = said(("other", "1"))
    fill(other)
    async with running() as (app, pilot):
        await ask(app, pilot, "!long", wait=False)
        await until(pilot, lambda: len(app.session.conversation.last.answer) > 30)
        left = app.session.conversation
        await pilot.press("f3", "down", "enter")
        await until(pilot, lambda: app.session.conversation.id == other.id and not app.session.busy)
        stored = app.history.load(left.id).last
        assert (stored.answer, stored.finish_reason) == (left.last.answer, "stopped")
        assert app.session.conversation.last.answer == "1"


@pytest.mark.parametrize("size", [(30, 8), (60, 20), (200, 50)])
async def test_any_size_and_hostile_titles(size):
    fill(
        said(("needle \x1b[31m[b]red\u202e", "x\x1b]0;y\x07 needle"), title="t" * 300),
        said(("東京" * 60 + " needle", "👩‍🚀" * 50)),
    )
    async with running(size=size) as (app, pilot):
        await ask(app, pilot, "/history needle", wait=False)
        await until(pilot, lambda: isinstance(app.screen, HistoryScreen) and len(listed(app)) == 2)
        await pilot.press("down")
        await pilot.pause(0.3)
        app.theme = "textual-light"
        await pilot.pause()
        assert not any("\x1b" in line or "\u202e" in line for line in seen(app))
        assert app.screen.query_one(ConversationPreview).display is (size[0] >= 120)
        await pilot.resize_terminal(20, 5)
        await pilot.pause()
        assert on_screen(app, "Too small")
        await pilot.press("escape")
        assert isinstance(app.screen, HistoryScreen)
        assert app.screen.query_one(Input).value == ""
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))


async def test_a_history_that_cannot_be_used_is_told_and_the_chat_goes_on(home):
    home.mkdir(exist_ok=True)
    (home / "history.db").mkdir()
    async with running() as (app, pilot):
        await until(pilot, lambda: any("Conversations could not be read" in text for text in told(app)))
        await ask(app, pilot, "hello")
        assert app.session.conversation.last.answer
        await pilot.press("f3")
        assert on_screen(app, "could not be read")
        await pilot.press("escape")
        await ask(app, pilot, "again")
        assert len([text for text in told(app) if "not kept" in text]) == 1


async def test_what_is_on_screen_is_in_the_file_first(worker, monkeypatch):
    worker(rate=40)
    monkeypatch.setattr("app.history.recorder.WritePace.wrote", lambda self, started, ended: None)
    async with running() as (app, pilot):
        await ask(app, pilot, "!long", wait=False)
        app._recorder._pace.due_at = float("inf")
        await until(pilot, lambda: any("word9" in line for line in seen(app)))
        shown = max(int(n) for line in seen(app) for n in re.findall(r"word(\d+)", line))
        with contextlib.closing(History()) as history:
            kept = history.load(app.session.conversation.id).last.answer
        assert f"word{shown}" in kept.split()
