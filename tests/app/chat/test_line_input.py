"""A line of text is moved through and deleted by whole characters."""

import pytest
from textual.app import App

from app.chat.widgets.line_input import LineInput

FAMILY, FLAG = "👨‍👩‍👧", "🇩🇪"


class Alone(App):
    """A line and nothing else."""

    def compose(self):
        yield LineInput()


@pytest.fixture
async def typed():
    """The line and its pilot."""
    async with Alone().run_test(size=(30, 5)) as pilot:
        yield pilot.app.query_one(LineInput), pilot


@pytest.mark.parametrize("one", [FAMILY, FLAG, "e\u0301", "👍🏽", "東", "a"])
async def test_one_character_is_one_step_and_one_deletion(typed, one):
    line, pilot = typed
    line.value = f"x{one}y"
    places = []
    await pilot.press("home")
    for key in ("right", "right", "right", "left", "left", "left"):
        await pilot.press(key)
        places.append(line.cursor_position)
    behind = 1 + len(one)
    assert places == [1, behind, behind + 1, behind, 1, 0]
    await pilot.press("right", "shift+right")
    assert line.selected_text == one
    await pilot.press("left", "delete")
    assert (line.value, line.cursor_position) == ("xy", 1)
    line.value = f"x{one}y"
    line.cursor_position = behind
    await pilot.press("backspace")
    assert (line.value, line.cursor_position) == ("xy", 1)


async def test_typing_and_pasting_come_behind_what_was_typed(typed):
    line, pilot = typed
    await pilot.press("a")
    line.insert_text_at_cursor(FAMILY)
    await pilot.press("b", "left", "left", "z")
    assert line.value == f"az{FAMILY}b"
