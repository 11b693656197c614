"""The prompt moves, deletes and breaks lines by whole characters, whatever they are made of."""

import pytest
from textual.app import App

from app.chat.widgets.prompt import Prompt
from app.graphemes import breaks

FAMILY, FLAG, ACCENT = "👨‍👩‍👧", "🇩🇪", "e\u0301"


class Alone(App):
    """A prompt and nothing else."""

    def compose(self):
        yield Prompt()


@pytest.fixture
async def typed():
    """The prompt and its pilot."""
    async with Alone().run_test(size=(30, 12)) as pilot:
        yield pilot.app.query_one(Prompt), pilot


async def test_deleting_takes_whole_characters(typed):
    prompt, pilot = typed
    for one in (FAMILY, FLAG, ACCENT, "👍🏽", "क्षि", "東"):
        before = 1 + len(one)
        for key, at in (("backspace", before), ("delete", 1)):
            prompt.text = f"a{one}b"
            prompt.move_cursor((0, at))
            await pilot.press(key)
            assert (prompt.text, prompt.cursor_location) == ("ab", (0, 1)), (key, one)


async def test_the_cursor_steps_over_whole_characters_and_lines(typed):
    prompt, pilot = typed
    prompt.text = f"{FAMILY}{FLAG}\nx"
    prompt.move_cursor((0, 0))
    seen = []
    for key in ("right", "right", "right", "right", "left", "left", "left", "left", "left"):
        await pilot.press(key)
        seen.append(prompt.cursor_location)
    flag, end = len(FAMILY), len(FAMILY + FLAG)
    assert seen == [(0, flag), (0, end), (1, 0), (1, 1), (1, 0), (0, end), (0, flag), (0, 0), (0, 0)]


async def test_selections_words_mouse_and_up_end_between_characters(typed):
    prompt, pilot = typed
    prompt.text = f"{FAMILY}x\nab"
    prompt.move_cursor((0, 0))
    await pilot.press("shift+right")
    assert prompt.selected_text == FAMILY
    prompt.move_cursor((0, 3))
    assert prompt.cursor_location == (0, 0), "not into it"
    prompt.move_cursor((1, 1))
    await pilot.press("up")
    assert prompt.cursor_location == (0, 0)
    await pilot.click(prompt, offset=(prompt.gutter.left + 2, prompt.gutter.top))
    assert prompt.cursor_location == (0, len(FAMILY)), "its two cells are one character"
    prompt.text = f"{ACCENT}{ACCENT}"
    prompt.move_cursor((0, 4))
    await pilot.press("ctrl+w")
    assert prompt.text in ("", ACCENT)


async def test_lines_break_between_characters_also_while_typing(typed):
    prompt, pilot = typed
    text = f"a {FAMILY * 30}"
    prompt.text = text
    await pilot.pause()
    for _ in range(3):
        sections = prompt.wrapped_document.get_sections(0)
        assert all(section in ("a ", FAMILY * (len(section) // len(FAMILY))) for section in sections)
        assert len(sections) == len(breaks(prompt.text, prompt.wrap_width)) + 1
        prompt.move_cursor(prompt.document.end)
        await pilot.press("backspace")
    assert prompt.text == text.removesuffix(FAMILY * 3)
    assert prompt.virtual_size.height == prompt.wrapped_document.height == len(sections)


async def test_tabs_and_many_lines_are_found_by_the_mouse(typed):
    prompt, pilot = typed
    prompt.text = "one\n\ttab東\nlast " + "w" * 40
    await pilot.pause()
    left, top = prompt.gutter.left, prompt.gutter.top
    for offset, location in (((0, 0), (0, 0)), ((4, 1), (1, 1)), ((8, 1), (1, 4)), ((1, 3), (2, 6))):
        await pilot.click(prompt, offset=(left + offset[0], top + offset[1]))
        assert prompt.cursor_location == location, offset
