"""What stands on screen when an answer is complete is what is stored, however it came."""

import pytest
from textual.widgets import Static

from app.chat.widgets.transcript import Transcript
from app.chat.widgets.turn import TurnView
from app.conversation import Conversation
from tests.app.chat.helpers import ask, running, seen, until

pytestmark = pytest.mark.usefixtures("worker", "model")

ANSWER = (
    "# Über 東京\n\nFamilies 👨‍👩‍👧 and flags 🇩🇪, `List<String>` and <b>tags</b>.\n\n"
    + "".join(f"{at}. item *{at}*\n" for at in range(1, 50))
    + "\n```python\n"
    + "".join(f"line_{at} = '<x>'  # {at}\n" for at in range(100))
    + "```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\nLast words"
)


def drawn(app):
    """Every line of the conversation, also those out of view."""
    views = app.screen.query_one(Transcript).query(TurnView)
    return [
        [strip.text.rstrip() for strip in block.render_lines(block.size.region)]
        for view in views
        for block in view.query(".answer-block")
    ]


@pytest.mark.parametrize("size", [(60, 20), (100, 30)])
async def test_a_streamed_answer_ends_as_it_is_drawn_from_the_history(worker, size):
    worker(replies=[ANSWER], rate=5000)
    async with running(size=size) as (app, pilot):
        await ask(app, pilot, "q", wait=False)
        await until(pilot, lambda: app.session.conversation.last.answer)
        await until(pilot, lambda: not app.session.busy, 20)
        await until(pilot, lambda: any("Last words" in line for line in seen(app)))
        turn = app.session.conversation.last
        assert turn.answer == ANSWER
        streamed = drawn(app)
        assert len(streamed) == 1
        kept = app.history.load(app.session.conversation.id)
        assert kept.last.answer == ANSWER
        app.session.open(Conversation())
        app.screen.show_conversation()
        await pilot.pause()
        app.session.open(kept)
        app.screen.show_conversation()
        await until(pilot, lambda: any("Last words" in line for line in seen(app)))
        assert drawn(app) == streamed
        text = " ".join(" ".join(streamed[0]).split())
        assert all(f"line_{at} = '<x>' # {at}" in text for at in range(100))
        assert "Families 👨‍👩‍👧 and flags 🇩🇪, List<String> and <b>tags</b>." in text


async def test_what_grows_only_after_the_view_went_to_the_end_is_followed_too():
    async with running(size=(60, 20)) as (app, pilot):
        await ask(app, pilot, "q")
        transcript = app.screen.query_one(Transcript)
        last = transcript.query(".answer-block").last(Static)

        async def grow(lines):
            last.update("\n".join(f"late {at}" for at in range(lines)))
            await until(pilot, lambda: transcript.virtual_size.height > lines)
            await pilot.pause()

        await grow(60)
        await until(pilot, lambda: any("late 59" in line for line in seen(app)))
        assert transcript.scroll_y == transcript.max_scroll_y > 30
        transcript.scroll_to(y=10, animate=False)
        await until(pilot, lambda: app.screen.query_one("#more-below").display)
        await grow(90)
        assert transcript.scroll_y == 10
