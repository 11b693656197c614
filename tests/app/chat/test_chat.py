"""The chat screen, driven by keys and mouse, with the scripted worker."""

import tomllib

import pytest

from app.chat.screens.chat import ChatScreen
from app.chat.screens.system_prompt import SystemPromptScreen
from app.chat.widgets.prompt import Prompt
from app.chat.widgets.transcript import Transcript
from app.chat.widgets.turn import TurnView
from app.loading import Loading
from app.session import Phase
from runtime import locations
from tests.app.chat.helpers import ask, running, seen, until
from tests.app.conftest import add_model

pytestmark = pytest.mark.usefixtures("worker", "model")


async def test_straight_to_the_chat_and_an_answer():
    async with running() as (app, pilot):
        assert isinstance(app.screen, ChatScreen)
        await ask(app, pilot, "What is the capital of France?")
        screen = "\n".join(seen(app))
        assert "What is the capital of France?" in screen
        assert "The capital of France is Paris" in screen
        assert "CPU, no GPU used" in screen
        assert "tok/s" in screen
        assert app.screen.query_one(Prompt).text == ""


async def test_text_is_drawn_while_it_streams_and_the_finished_answer_is_one_block(worker):
    worker(rate=30, replies=["First paragraph.\n\n" + "- item\n" * 20 + "\nLast words."])
    async with running() as (app, pilot):
        await ask(app, pilot, "q", wait=False)
        await until(pilot, lambda: any("First paragraph." in line for line in seen(app)))
        assert app.session.phase is Phase.ANSWERING
        await until(pilot, lambda: not app.session.busy)
        assert len(app.screen.query(".answer-block")) == 1
        assert any("Last words." in line for line in seen(app))


async def test_escape_stops_and_the_partial_answer_stays_and_the_next_question_is_answered(worker):
    worker(rate=100)
    async with running() as (app, pilot):
        await ask(app, pilot, "!long", wait=False)
        await until(pilot, lambda: len(app.session.conversation.last.answer) > 50)
        await pilot.press("escape")
        await until(pilot, lambda: not app.session.busy)
        assert any("stopped" in line for line in seen(app))
        partial = app.session.conversation.last.answer
        assert partial.startswith("word0 ")
        await ask(app, pilot, "next")
        contents = [m.content for m in app.session.conversation.messages()]
        assert contents[:3] == ["!long", partial, "next"]
        assert contents[3].startswith("The capital")


async def test_ctrl_c_stops_an_answer_then_hints_then_quits(worker):
    worker(rate=100)
    async with running() as (app, pilot):
        await ask(app, pilot, "!long", wait=False)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.session.busy)
        assert app.is_running
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert any("again quits" in n.message for n in app._notifications)
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert not app.is_running or app._exit


@pytest.mark.parametrize("keys", [["ctrl+q"], ["ctrl+d"]])
async def test_quitting_ends_the_worker(keys):
    async with running() as (app, pilot):
        await pilot.press(*keys)
        await pilot.pause()
    assert not app.link.alive


async def test_slash_quit_and_unknown_slash():
    async with running() as (app, pilot):
        await ask(app, pilot, "/nonsense")
        assert app.screen.query_one(Prompt).text == "/nonsense"
        assert not app.session.conversation.turns
        await ask(app, pilot, "/quit")
    assert not app.link.alive


async def test_ctrl_d_deletes_while_something_is_typed():
    async with running() as (app, pilot):
        prompt = app.screen.query_one(Prompt)
        await pilot.press("a", "b", "home", "ctrl+d")
        assert prompt.text == "b"
        assert not app._exit


@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j"])
async def test_newline_keys(key):
    async with running() as (app, pilot):
        await pilot.press("a", key, "b")
        assert app.screen.query_one(Prompt).text == "a\nb"
        await pilot.press("enter")
        assert app.session.conversation.last.question == "a\nb"


async def test_a_crash_in_mid_answer_keeps_the_conversation_and_the_chat_goes_on():
    async with running() as (app, pilot):
        await ask(app, pilot, "one")
        await ask(app, pilot, "!crash", wait=False)
        await until(pilot, lambda: app.session.conversation.last.failure)
        await until(pilot, lambda: app.session.phase is Phase.READY)
        assert any("engine's process ended" in line for line in seen(app))
        await ask(app, pilot, "two")
        assert [t.question for t in app.session.conversation.turns] == ["one", "!crash", "two"]
        assert app.session.conversation.last.answer.startswith("The capital")


async def test_a_failed_answer_is_marked():
    async with running() as (app, pilot):
        await ask(app, pilot, "!fail")
        assert any("ran out of memory" in line for line in seen(app))


async def test_new_chat_by_key_and_slash():
    async with running() as (app, pilot):
        await ask(app, pilot, "one")
        await pilot.press("ctrl+n")
        await pilot.pause()
        assert not app.session.conversation.turns
        assert len(app.screen.query(TurnView)) == 0
        await ask(app, pilot, "two")
        await ask(app, pilot, "/new")
        await pilot.pause()
        assert not app.session.conversation.turns


async def test_system_prompt_is_edited_kept_and_sent():
    async with running() as (app, pilot):
        await pilot.press("f4")
        await pilot.pause()
        assert isinstance(app.screen, SystemPromptScreen)
        await pilot.press("B", "r", "i", "e", "f", "ctrl+s")
        await pilot.pause()
        await ask(app, pilot, "q")
        assert app.session.conversation.messages()[0].content == "Brief"
        await pilot.press("f4")
        await pilot.pause()
        await pilot.press("x", "escape")
        await pilot.pause()
        assert app.session.conversation.system_prompt == "Brief"
    assert tomllib.loads(locations.settings_file().read_text())["system_prompt"] == "Brief"


async def test_the_view_holds_when_scrolled_up_and_follows_again_at_the_end(worker):
    worker(rate=300)
    async with running(size=(60, 20)) as (app, pilot):
        transcript = app.screen.query_one(Transcript)
        await ask(app, pilot, "!long", wait=False)
        await until(pilot, lambda: transcript.max_scroll_y > 10)
        await pilot.press("pageup")
        await pilot.pause()
        held, end = transcript.scroll_y, transcript.max_scroll_y
        await until(pilot, lambda: transcript.max_scroll_y > end + 5)
        assert transcript.scroll_y == held
        assert app.screen.query_one("#more-below").display
        await pilot.press("ctrl+end")
        await pilot.pause()
        end = transcript.max_scroll_y
        await until(pilot, lambda: transcript.max_scroll_y > end + 5)
        await until(pilot, lambda: transcript.scroll_y >= transcript.max_scroll_y - 2)
        assert not app.screen.query_one("#more-below").display
        await pilot.press("escape")


async def test_escape_sequences_of_a_model_are_shown_not_obeyed(worker):
    worker(replies=["safe \x1b[31mred\x1b]0;title\x07 `\x1b[2J`"])
    async with running() as (app, pilot):
        await ask(app, pilot, "q\x1b[31m")
        text = "\n".join(seen(app))
        assert "\x1b" not in text
        assert "␛[31mred␛]0;title␇" in text


async def test_copy_last_answer():
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        await pilot.press("ctrl+y")
        assert app.clipboard == app.session.conversation.last_answer


async def test_a_question_before_the_model_is_loaded_waits(worker):
    worker(step_s=3)
    async with running(ready=False) as (app, pilot):
        await ask(app, pilot, "early", wait=False)
        assert app.session.phase is Phase.LOADING
        await until(pilot, lambda: not app.session.busy)
        assert app.session.conversation.last.answer.startswith("The capital")


@pytest.mark.parametrize("size", [(20, 6), (29, 30), (30, 8), (60, 20), (100, 30), (300, 100)])
async def test_any_size_draws(size):
    async with running(size=size) as (app, pilot):
        await ask(app, pilot, "q")
        screen = "\n".join(seen(app))
        if size[0] < 30 or size[1] < 8:
            assert "Too small" in screen
        else:
            assert "Too small" not in screen
            assert "target" in screen
            assert "CPU" in screen


async def test_resizing_while_streaming(worker):
    worker(rate=300)
    async with running() as (app, pilot):
        await ask(app, pilot, "!long", wait=False)
        for size in [(60, 20), (20, 5), (300, 90), (100, 30)]:
            await pilot.resize_terminal(*size)
            await pilot.pause(0.1)
        await pilot.press("escape")
        await until(pilot, lambda: not app.session.busy)
        await until(pilot, lambda: any("stopped" in line for line in seen(app)))


@pytest.mark.parametrize("theme", ["decdec-dark", "decdec-light", "ansi-dark", "ansi-light", "nord"])
async def test_themes(theme):
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        app.theme = theme
        await pilot.pause()
        assert any("The capital" in line for line in seen(app))


async def test_no_color(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        assert any("The capital" in line for line in seen(app))


async def test_every_action_is_in_the_palette():
    async with running() as (app, _):
        titles = {command.title for command in app.get_system_commands(app.screen)}
        assert {"Stop", "Faster", "Better", "New chat", "System prompt", "Models", "Tune", "Quit"} <= titles


async def test_settings_and_options_say_how_a_model_is_loaded_and_its_note_is_shown(worker):
    worker(note="context {load.context}, {load.kv_bits} bits [x]")
    locations.home().mkdir(exist_ok=True)
    locations.settings_file().write_text("context = 4096\nkv_bits = 8\n")
    async with running(given_loading={"context": 512}) as (app, pilot):
        assert any("context 512, 8 bits [x]" in line for line in seen(app))
        assert any("0/512" in line for line in seen(app))
        assert app.settings.context == 4096
        await ask(app, pilot, "!crash", wait=False)
        await until(pilot, lambda: app.session.conversation.last.failure)
        await until(pilot, lambda: app.session.phase is Phase.READY)
        assert "context 512, 8 bits [x]" in [notification.message for notification in app._notifications]


async def test_the_wanted_weights_are_loaded_where_a_model_has_them_and_others_are_told(worker):
    add_model("other")
    async with running(given_loading={"base": "int8"}) as (app, pilot):
        assert app.session.loaded.base == "int8"
        app.session.how_to_load = Loading(base="awq3")
        app.load_model("other")
        await until(pilot, lambda: app.session.loaded and app.session.loaded.model == "other")
        assert app.session.loaded.base == "awq4"
        assert any("other has no awq3: awq4 answers." in note.message for note in app._notifications)


async def test_a_copied_selection_is_told():
    async with running() as (app, pilot):
        await pilot.press("a", "b", "shift+left", "ctrl+c")
        await pilot.pause()
        assert app.clipboard == "b"
        told = [note.message for note in app._notifications]
        assert "Sent 1 characters to the terminal's clipboard." in told


async def test_ctrl_c_stops_the_answer_behind_a_dialog_too(worker):
    worker(rate=100)
    async with running() as (app, pilot):
        await ask(app, pilot, "!long", wait=False)
        await until(pilot, lambda: app.session.conversation.last.answer)
        await pilot.press("f1", "ctrl+c")
        await until(pilot, lambda: not app.session.busy)
        assert app.session.conversation.last.finish_reason == "stopped"
        assert not any("again quits" in note.message for note in app._notifications)
