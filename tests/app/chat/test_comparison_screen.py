"""One question at two positions, in the app, with the scripted worker."""

import pytest
from textual.widgets import Input

from app.chat.screens.chat import ChatScreen
from app.chat.screens.comparison import ComparisonScreen
from app.chat.widgets.comparison_pane import ComparisonPane
from app.chat.widgets.position_picker import PositionPicker
from app.chat.widgets.prompt import Prompt
from app.comparison_texts import PARTED, SAME
from app.session import Phase
from app.slider import Position
from app.slider.position import LOSSLESS
from runtime.protocol.commands import Generate, SetSlowdown, Stop
from tests.app.chat.helpers import ask, running, seen, until

pytestmark = pytest.mark.usefixtures("worker", "model")

A = "The capital of France is Paris, on the Seine."
B = "The capital of France is Paris. It is known for the Louvre."
HOME = SetSlowdown(5.0)


def sent(app):
    """Commands that go to the engine from now on."""
    commands, post = [], app.link.post
    app.link.post = lambda command: (commands.append(command), post(command))
    return commands


async def opened(app, pilot, text):
    await ask(app, pilot, text, wait=False)
    await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
    return app.screen


async def finished(app, pilot, screen):
    await until(pilot, lambda: screen.comparison.running is None)
    await pilot.pause(0.15)


def screen_text(app):
    return "\n".join(seen(app))


@pytest.mark.parametrize("size", [(60, 20), (100, 30), (200, 50)])
async def test_both_answers_side_by_side_and_one_is_kept(worker, size):
    worker(replies=["Hello.", A, B], rate=400)
    async with running(size=size) as (app, pilot):
        await ask(app, pilot, "hi")
        commands = sent(app)
        screen = await opened(app, pilot, "/ab Capital of France?")
        await finished(app, pilot, screen)
        text = screen_text(app)
        assert text.count("▸Paris") == 2
        assert PARTED in text
        assert "a or b keeps one as a new question" in " ".join(text.split())
        lines = seen(app)
        rows = [row for row, line in enumerate(lines) if "tok/s" in line and "measured" in line]
        assert len(rows) == (2 if size[0] < 80 else 1)
        assert "measured 0 %" in text
        assert "measured 4.8 %" in text
        first, second = (command for command in commands if isinstance(command, Generate))
        assert first == second
        assert [message.content for message in first.messages] == ["hi", "Hello.", "Capital of France?"]
        assert first.sampling.seed is not None
        moves = [command for command in commands if not isinstance(command, Generate)]
        assert moves == [SetSlowdown(0.0), HOME, HOME]
        assert not app.session.busy
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        turns = app.session.conversation.turns
        assert [(turn.question, turn.answer) for turn in turns] == [
            ("hi", "Hello."),
            ("Capital of France?", B),
        ]
        assert turns[-1].stats.slowdown_target_pct == 5.0
        assert "Louvre" in screen_text(app)
        assert app.session.slider.position == Position(5.0)


async def test_f5_answers_the_last_question_again_as_a_variant(worker):
    worker(replies=["Hello.", "First.", A, B], rate=400)
    async with running() as (app, pilot):
        await ask(app, pilot, "hi")
        await ask(app, pilot, "and\nnow?")
        commands = sent(app)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        screen = app.screen
        assert screen.query_one(Input).value == "and now?"
        assert screen.comparison.running is None
        await pilot.press("enter")
        await finished(app, pilot, screen)
        asked = next(command for command in commands if isinstance(command, Generate))
        assert [message.content for message in asked.messages] == ["hi", "Hello.", "and\nnow?"]
        assert "a or b keeps one as a variant of the last question" in screen_text(app)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        last = app.session.conversation.last
        assert last.answer == A
        assert [turn.answer for turn in app.session.conversation.variants(last)] == ["First.", A]
        assert len(app.session.conversation.turns) == 2


async def test_another_question_than_the_last_is_told_it_and_comes_behind_it(worker):
    worker(replies=["Hello.", A, B], rate=400)
    async with running() as (app, pilot):
        await ask(app, pilot, "hi")
        commands = sent(app)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        screen = app.screen
        screen.query_one(Input).value = "other?"
        await pilot.press("enter")
        await finished(app, pilot, screen)
        asked = next(command for command in commands if isinstance(command, Generate))
        assert [message.content for message in asked.messages] == ["hi", "Hello.", "other?"]
        assert "a or b keeps one as a new question" in screen_text(app)
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        turns = app.session.conversation.turns
        assert [(turn.question, turn.answer) for turn in turns] == [("hi", "Hello."), ("other?", B)]


async def test_escape_stops_and_what_is_there_can_be_read_and_kept(worker):
    worker(rate=100)
    async with running() as (app, pilot):
        screen = await opened(app, pilot, "/ab !long")
        await until(pilot, lambda: len(screen.comparison.answer(0).text) > 30)
        assert screen.active_bindings["escape"].binding.description == "Stop"
        await pilot.press("escape")
        await finished(app, pilot, screen)
        assert app.screen is screen
        assert screen.active_bindings["escape"].binding.description == "Close"
        assert "Stopped · Enter writes it again · a keeps A as a new question" in screen_text(app)
        text = screen.comparison.answer(0).text
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        last = app.session.conversation.last
        assert (last.answer, last.finish_reason) == (text, "stopped")


async def test_what_is_typed_is_compared_and_leaves_the_prompt_when_it_is_kept(worker):
    worker(replies=[A, B], rate=400)
    async with running() as (app, pilot):
        app.screen.query_one(Prompt).text = "typed?"
        await pilot.press("f5", "enter")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        await finished(app, pilot, app.screen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert app.screen.query_one(Prompt).text == "typed?"
        assert not app.session.conversation.turns
        await pilot.press("f5", "enter")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        await finished(app, pilot, app.screen)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert app.screen.query_one(Prompt).text == ""
        assert app.session.conversation.last.question == "typed?"


async def test_escape_stops_at_once_and_the_slider_goes_home(worker):
    worker(rate=100)
    async with running() as (app, pilot):
        commands = sent(app)
        screen = await opened(app, pilot, "/ab !long")
        # The fake answers only what is its own question; any other text is a short answer.
        await until(pilot, lambda: len(screen.comparison.answer(0).text) > 30)
        assert app.session.busy
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        await until(pilot, lambda: app.session.phase is Phase.READY)
        assert [command for command in commands if not isinstance(command, Generate)] == [
            SetSlowdown(0.0), Stop(), HOME,
        ]  # fmt: skip
        assert not app.session.conversation.turns
        await ask(app, pilot, "next")
        assert app.session.conversation.last.answer.startswith("The capital")
        assert app.session.stats.slowdown_target_pct == 5.0


async def test_while_it_runs_nothing_else_moves_the_slider(worker):
    worker(rate=100)
    async with running() as (app, pilot):
        commands = sent(app)
        await pilot.press("f8")
        chat = app.screen
        screen = await opened(app, pilot, "/ab !long")
        await until(pilot, lambda: bool(screen.comparison.answer(0).text))
        before = len(commands)
        chat._send_slowdown()
        await pilot.press("shift+right")
        await pilot.pause()
        assert len(commands) == before
        assert "Positions stay" in screen_text(app)
        await pilot.press("escape")
        await finished(app, pilot, screen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert commands[-1] == SetSlowdown(10.0)


async def test_a_is_kept_while_b_is_still_being_written(worker):
    worker(replies=[A, "word " * 3000], rate=60)
    async with running() as (app, pilot):
        screen = await opened(app, pilot, "/ab q")
        await pilot.press("b")
        await until(
            pilot, lambda: screen.comparison.answer(1) is not None and screen.comparison.answer(1).text
        )
        assert screen.comparison.can_keep(0)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert app.session.conversation.last.answer == A
        await ask(app, pilot, "next")
        assert len(app.session.conversation.turns) == 2


async def test_positions_move_by_key_and_mouse_and_only_what_is_missing_is_written(worker):
    worker(replies=[A, B, "Third."], rate=400)
    async with running(size=(200, 50)) as (app, pilot):
        screen = await opened(app, pilot, "/ab q")
        await finished(app, pilot, screen)
        commands = sent(app)
        await pilot.press("shift+right")
        assert screen.comparison.sides == [Position(), Position(10.0)]
        picker = screen.query_one("#picker-b", PositionPicker)
        scale = picker._scale()
        await pilot.click(picker, offset=(2 + scale.cells - 1, 0))
        assert screen.comparison.sides[1] == LOSSLESS
        assert "lossless" in screen_text(app)
        await pilot.press("enter")
        await finished(app, pilot, screen)
        assert [type(command) for command in commands] == [SetSlowdown, Generate, SetSlowdown]
        assert commands[0] == SetSlowdown(20.0, lossless=True)
        assert [screen.comparison.answer(side).text for side in (0, 1)] == [A, "Third."]


async def test_a_crash_is_told_the_chat_goes_on_and_the_slider_stands_where_it_stood():
    async with running() as (app, pilot):
        screen = await opened(app, pilot, "/ab !crash")
        await until(pilot, lambda: screen.comparison.answer(0).failure)
        await until(pilot, lambda: "engine's process" in screen_text(app))
        await until(pilot, lambda: app.session.phase is Phase.READY)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        await ask(app, pilot, "next")
        assert app.session.conversation.last.answer.startswith("The capital")
        assert app.session.stats.slowdown_target_pct == 5.0


async def test_a_failure_is_told():
    async with running(size=(200, 50)) as (app, pilot):
        commands = sent(app)
        screen = await opened(app, pilot, "/ab !fail")
        await finished(app, pilot, screen)
        assert "the device ran out of memory" in screen_text(app)
        assert commands[-1] == HOME
        await pilot.press("a")
        assert isinstance(app.screen, ComparisonScreen)


async def test_two_answers_that_are_the_same_are_said_to_be(worker):
    worker(replies=[A], rate=400)
    async with running() as (app, pilot):
        screen = await opened(app, pilot, "/ab q")
        await finished(app, pilot, screen)
        assert SAME in screen_text(app)
        assert "▸" not in screen_text(app)


async def test_the_keys_scroll_both_texts_and_find_the_difference(worker):
    same = "".join(f"line {i}\n\n" for i in range(60))
    worker(replies=[f"{same}Paris" + "\n\nx" * 60, f"{same}Lyon" + "\n\ny" * 60], rate=0)
    async with running() as (app, pilot):
        screen = await opened(app, pilot, "/ab q")
        await finished(app, pilot, screen)
        await pilot.press("d")
        await until(pilot, lambda: "▸Paris" in screen_text(app) and "▸Lyon" in screen_text(app))
        await pilot.press("pageup", "pageup")
        await until(pilot, lambda: "▸" not in screen_text(app))


async def test_texts_of_a_model_do_not_drive_the_terminal(worker):
    worker(replies=["safe \x1b[31mred", "safe \x1b]0;title"], rate=400)
    async with running() as (app, pilot):
        screen = await opened(app, pilot, "/ab [bold]q\x1b[2J")
        await finished(app, pilot, screen)
        text = screen_text(app)
        assert "\x1b" not in text
        assert "[31mred" in text


@pytest.mark.parametrize("arguments", [("--untuned",), ()])
async def test_it_opens_only_when_it_can_compare(worker, arguments):
    from runtime import locations

    worker(*arguments, rate=100)
    locations.home().mkdir(exist_ok=True)
    locations.settings_file().write_text('untuned = ["SmolLM2-135M-Instruct"]')
    async with running() as (app, pilot):
        if not arguments:
            await ask(app, pilot, "!long", wait=False)
        await ask(app, pilot, "/ab q", wait=False)
        await pilot.pause()
        assert isinstance(app.screen, ChatScreen)
        said = [notification.message for notification in app._notifications]
        assert any(
            ("off" if arguments else "writing") in message or "answering" in message for message in said
        )
        await pilot.press("escape")


@pytest.mark.parametrize("size", [(30, 8), (60, 20), (300, 100)])
async def test_any_size_draws(worker, size):
    worker(replies=[A, B], rate=400)
    async with running(size=size) as (app, pilot):
        screen = await opened(app, pilot, "/ab q")
        await finished(app, pilot, screen)
        assert "A ●" in screen_text(app)
        await pilot.resize_terminal(20, 6)
        await until(pilot, lambda: "Too small" in screen_text(app))
        await pilot.resize_terminal(60, 20)
        await pilot.pause(0.15)
        assert len(screen.query(ComparisonPane)) == 2
        await pilot.press("escape")
