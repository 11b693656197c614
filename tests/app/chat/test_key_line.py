"""The line of keys: what is shown, in which order, and that a click does it."""

import pytest

from app.chat.screens.help import HelpScreen
from app.chat.widgets.key_line import KeyLine
from tests.app.chat.helpers import ask, running, seen, until

pytestmark = pytest.mark.usefixtures("model", "worker")


def line(app):
    return next(line for line in seen(app) if "F1 Help" in line).strip()


async def test_as_many_as_there_is_room_for_the_most_needed_first(worker):
    worker(rate=50)
    async with running() as (app, pilot):
        assert line(app) == (
            "F1 Help  F7 Faster  F8 Better  F3 History  F2 Models  ^N New chat  F4 System prompt  ^Q Quit"
        )
        await ask(app, pilot, "!long", wait=False)
        await until(pilot, lambda: "Esc Stop" in line(app))
        await pilot.resize_terminal(60, 30)
        await until(pilot, lambda: line(app) == "F1 Help  Esc Stop  F7 Faster  F8 Better  F3 History")
        await pilot.press("escape")
        await until(pilot, lambda: "Stop" not in line(app))


async def test_own_keys_are_shown_and_a_click_does_it():
    async with running() as (app, pilot):
        app.remember(keys={"history": "ctrl+f"})
        app.screen.refresh_facts()
        await until(pilot, lambda: "^F History" in line(app))
        await pilot.click(KeyLine, offset=(4, 0))
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
