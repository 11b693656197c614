"""A terminal that was too small for a while gives the keyboard back."""

import pytest

from app.chat.screens.chat import ChatScreen
from app.chat.screens.comparison import ComparisonScreen
from app.chat.widgets.prompt import Prompt
from tests.app.chat.helpers import ask, running, seen, until

pytestmark = pytest.mark.usefixtures("worker", "model")


async def shrunk_and_grown(app, pilot):
    await pilot.resize_terminal(20, 5)
    await until(pilot, lambda: any("Too small" in line for line in seen(app)))
    await until(pilot, lambda: app.screen.focused is None)
    await pilot.resize_terminal(100, 30)
    await until(pilot, lambda: app.screen.focused is not None)


async def test_the_prompt_can_be_typed_into_again():
    async with running() as (app, pilot):
        for _ in range(2):
            await shrunk_and_grown(app, pilot)
            await pilot.press("x")
        assert app.screen.query_one(Prompt).text == "xx"


@pytest.mark.parametrize("key", ["f2", "f3", "f10"])
async def test_every_screen_gives_it_back_to_what_had_it(key):
    async with running() as (app, pilot):
        await ask(app, pilot, "hi")
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(app.screen, ChatScreen))
        await pilot.press("tab")
        had = app.screen.focused
        await shrunk_and_grown(app, pilot)
        assert app.screen.focused is had


async def test_a_picker_of_the_comparison_too():
    async with running() as (app, pilot):
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        await pilot.press("tab", "tab")
        had = app.screen.focused
        assert had.id == "picker-b"
        await shrunk_and_grown(app, pilot)
        assert app.screen.focused is had


async def test_one_that_began_too_small_gives_it_to_the_prompt():
    async with running(size=(20, 5)) as (app, pilot):
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: app.screen.focused is app.screen.query_one(Prompt))
