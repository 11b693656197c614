"""What can be done to questions and answers: by key, by slash, on a selected turn, and with the mouse."""

import pytest

from app.chat.screens.code_picker import CodePicker
from app.chat.widgets.ending import EndingView
from app.chat.widgets.prompt import Prompt
from app.chat.widgets.transcript import PAGE, Transcript
from app.chat.widgets.turn import TurnView
from app.conversation import Conversation, Turn, TurnState
from tests.app.chat.helpers import ask, running, seen, until

pytestmark = pytest.mark.usefixtures("model")

CODE = "One:\n\n```python\nx = 1\n```\n\nTwo:\n\n```sh\nls -l\n```\n"


@pytest.fixture(autouse=True)
def replies(worker):
    worker(replies=["First.", "Second.", "Third."])


def questions(app):
    return [turn.question for turn in app.session.conversation.turns]


def told(app):
    return [note.message for note in app._notifications]


async def do(app, pilot, way, key, slash):
    """An action by its key or by its slash command."""
    if way == "key":
        await pilot.press(key)
    else:
        await ask(app, pilot, slash, wait=False)
    await pilot.pause()


@pytest.mark.parametrize("way", ["key", "slash"])
async def test_regenerate_keeps_variants_and_one_steps_through_them(way):
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        await do(app, pilot, way, "ctrl+r", "/retry")
        await until(pilot, lambda: not app.session.busy)
        assert app.session.conversation.last.answer == "Second."
        await until(pilot, lambda: any("variant 2 of 2" in line for line in seen(app)))
        await do(app, pilot, way, "alt+up", "/previous")
        assert app.session.conversation.last.answer == "First."
        await until(pilot, lambda: any("First." in line for line in seen(app)))
        assert not any("Second." in line for line in seen(app))
        await do(app, pilot, way, "alt+down", "/next")
        assert app.session.conversation.last.answer == "Second."
        assert len(app.screen.query(TurnView)) == 1


@pytest.mark.parametrize("way", ["key", "slash"])
async def test_an_edited_question_is_asked_in_its_old_place(way):
    async with running() as (app, pilot):
        await ask(app, pilot, "what")
        await do(app, pilot, way, "ctrl+o", "/edit")
        prompt = app.screen.query_one(Prompt)
        assert prompt.text == "what"
        assert "Enter asks anew" in str(prompt.border_title)
        await pilot.press("?", "enter")
        await until(pilot, lambda: not app.session.busy)
        assert questions(app) == ["what?"]
        assert len(app.session.conversation.all_turns) == 2
        assert (prompt.text, prompt.border_title) == ("", "")
        await ask(app, pilot, "new")
        assert questions(app) == ["what?", "new"]


async def test_editing_is_left_with_escape_and_nothing_changed():
    async with running() as (app, pilot):
        await ask(app, pilot, "what")
        await pilot.press("ctrl+o", "x", "escape")
        await ask(app, pilot, "new")
        assert questions(app) == ["what", "new"]


@pytest.mark.parametrize("way", ["key", "slash"])
async def test_a_stopped_answer_goes_on(way, worker):
    worker(rate=200, replies=["First."])
    async with running() as (app, pilot):
        await ask(app, pilot, "!long", wait=False)
        await until(pilot, lambda: app.session.conversation.last.answer)
        await pilot.press("escape")
        await until(pilot, lambda: not app.session.busy)
        kept = app.session.conversation.last.answer
        assert kept.startswith("word0 ")
        app.session.conversation.last.question = "short"
        await do(app, pilot, way, "ctrl+g", "/continue")
        await until(pilot, lambda: not app.session.busy)
        assert app.session.conversation.last.answer == kept + "First."
        await until(pilot, lambda: any("First." in line for line in seen(app)))
        assert not any("stopped" in line for line in seen(app))
        await do(app, pilot, way, "ctrl+g", "/continue")
        assert "nothing to continue" in [*app._notifications][-1].message


@pytest.mark.parametrize("way", ["key", "slash"])
async def test_delete_and_undo(way):
    async with running() as (app, pilot):
        await ask(app, pilot, "one")
        await ask(app, pilot, "two")
        await do(app, pilot, way, "shift+delete", "/delete")
        assert questions(app) == ["one"]
        assert len(app.screen.query(TurnView)) == 1
        assert "Deleted 1 question with its answer. Alt+Z or /undo brings it back." in told(app)
        await do(app, pilot, way, "alt+z", "/undo")
        assert questions(app) == ["one", "two"]
        await until(pilot, lambda: any("Second." in line for line in seen(app)))
        assert "Brought back." in told(app)
        await do(app, pilot, way, "alt+z", "/undo")
        assert "Nothing was deleted" in [*app._notifications][-1].message


async def test_how_many_were_deleted_and_the_present_key_of_undo_are_told():
    async with running() as (app, pilot):
        app.remember(keys={"undo": "f11"})
        await ask(app, pilot, "one")
        await ask(app, pilot, "two")
        await pilot.press("up", "up", "shift+delete")
        await until(pilot, lambda: questions(app) == [])
        assert "Deleted 2 questions with their answers. F11 or /undo brings them back." in told(app)


async def test_a_note_that_is_still_shown_is_not_stacked():
    async with running() as (app, pilot):
        for _ in range(3):
            app.screen.warn("The same.")
            app.screen.tell("Another.")
        await pilot.pause()
        assert sorted(told(app)) == ["Another.", "The same."]


@pytest.mark.parametrize("way", ["key", "slash"])
async def test_copy_answer_without_its_thinking(way, worker):
    worker(replies=["<think>\nhm\n</think>\n\nParis."])
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        await do(app, pilot, way, "ctrl+y", "/copy")
        assert app.clipboard == "Paris."


@pytest.mark.parametrize("way", ["key", "slash"])
async def test_copy_code_asks_which_block(way, worker):
    worker(replies=[CODE, "plain"])
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        await do(app, pilot, way, "ctrl+b", "/code")
        await until(pilot, lambda: isinstance(app.screen, CodePicker))
        assert any("python" in line and "x = 1" in line for line in seen(app))
        await pilot.press("up", "enter")
        await until(pilot, lambda: app.clipboard == "x = 1\n")
        await ask(app, pilot, "q")
        await do(app, pilot, way, "ctrl+b", "/code")
        assert "no code block" in [*app._notifications][-1].message


@pytest.mark.parametrize("way", ["key", "slash"])
async def test_thinking_is_folded_and_counted(way, worker):
    worker(replies=["<think>\nquite some words\n</think>\n\nParis.", "plain"])
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        assert any("▸ thought 3 words" in line for line in seen(app))
        assert not any("quite some" in line for line in seen(app))
        await do(app, pilot, way, "ctrl+l", "/think")
        assert any("quite some words" in line for line in seen(app))
        await ask(app, pilot, "again")
        assert app.session.conversation.messages()[1].content == "Paris."
        await do(app, pilot, way, "ctrl+l", "/think")
        assert "no thinking" in [*app._notifications][-1].message


async def test_a_selected_turn_is_the_one_that_is_meant():
    async with running() as (app, pilot):
        for question in ("one", "two", "three"):
            await ask(app, pilot, question)
        await pilot.press("up", "up")
        await pilot.pause()
        assert app.screen.query_one(Transcript).selected.question == "two"
        assert any("c copy" in line and "e edit" in line for line in seen(app))
        await pilot.press("c")
        assert app.clipboard == "Second."
        await pilot.press("down", "down")
        await pilot.pause()
        assert isinstance(app.focused, Prompt)
        await pilot.press("up", "up", "delete")
        await pilot.pause()
        assert questions(app) == ["one"]
        assert isinstance(app.focused, Prompt)


async def test_a_selected_turns_variants_keep_the_keyboard():
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: not app.session.busy)
        await pilot.press("up", "left")
        await until(pilot, lambda: app.screen.query_one(Transcript).selected is not None)
        assert app.session.conversation.last.answer == "First."
        await pilot.press("right")
        await until(pilot, lambda: app.session.conversation.last.answer == "Second.")


async def test_the_mouse_finds_the_tools_and_leaves_the_keyboard_to_the_prompt():
    async with running() as (app, pilot):
        await ask(app, pilot, "q")
        ending = app.screen.query_one(EndingView)
        await pilot.hover(ending)
        await pilot.pause()
        x = next(line for line in seen(app) if "copy" in line).index("copy")
        await pilot.click(offset=(x + 1, ending.region.y))
        assert app.clipboard == "First."
        assert isinstance(app.focused, Prompt)


async def test_a_long_conversation_is_drawn_from_its_end_and_older_turns_come_when_wanted():
    turns, parent = [], ""
    for at in range(100):
        turns.append(Turn(f"q{at}", f"a{at}", TurnState.DONE, "stop", parent=parent))
        parent = turns[-1].id
    async with running() as (app, pilot):
        app.session.open(Conversation.of(turns, parent))
        app.screen.show_conversation()
        await until(pilot, lambda: any("a99" in line for line in seen(app)))
        transcript = app.screen.query_one(Transcript)
        assert len(transcript.query(TurnView)) == PAGE
        top = turns[-PAGE]
        transcript.scroll_home(animate=False)
        await until(pilot, lambda: len(transcript.query(TurnView)) == 2 * PAGE)
        await until(pilot, lambda: any(top.answer in line for line in seen(app)))
        while len(transcript.query(TurnView)) < 100:
            drawn = len(transcript.query(TurnView))
            transcript.scroll_home(animate=False)
            await until(pilot, lambda before=drawn: len(transcript.query(TurnView)) > before)
            await until(pilot, lambda: transcript.scroll_y > 0)


def long_conversation(count):
    turns, parent = [], ""
    for at in range(count):
        turns.append(Turn(f"q{at}", f"a{at}", TurnState.DONE, "stop", parent=parent))
        parent = turns[-1].id
    return Conversation.of(turns, parent)


async def test_a_tall_terminal_gets_as_many_turns_as_can_be_scrolled():
    async with running(size=(120, 100)) as (app, pilot):
        app.session.open(long_conversation(40))
        app.screen.show_conversation()
        transcript = app.screen.query_one(Transcript)
        await until(pilot, lambda: transcript.max_scroll_y > 0)
        assert len(transcript.query(TurnView)) > PAGE
        await until(pilot, lambda: any("a39" in line for line in seen(app)))


async def test_an_animated_scroll_to_the_top_draws_one_page():
    async with running() as (app, pilot):
        app.session.open(long_conversation(60))
        app.screen.show_conversation()
        await until(pilot, lambda: any("a59" in line for line in seen(app)))
        transcript = app.screen.query_one(Transcript)
        transcript.scroll_to(y=8, animate=False)
        await until(pilot, lambda: transcript.scroll_y == 8)
        transcript.scroll_home(animate=True, duration=0.3)
        await until(pilot, lambda: len(transcript.query(TurnView)) > PAGE)
        await pilot.pause(0.8)
        assert len(transcript.query(TurnView)) == 2 * PAGE
        first = transcript.query(TurnView)[PAGE]
        assert first.turn.question == "q48"
        assert transcript.scroll_y == first.virtual_region.y
