"""Typing: the order of keys that come together."""

import pytest
from textual import events

from app.chat.widgets.prompt import Prompt
from tests.app.chat.helpers import running, until

pytestmark = pytest.mark.usefixtures("model", "worker")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (["a", "backspace", "b"], "b"),
        (["a", "b", "left", "c"], "acb"),
        (["a", "home", "b", "end", "c"], "bac"),
        (["a", "ctrl+j", "b", "up", "x"], "ax\nb"),
    ],
)
async def test_keys_that_come_together_count_in_their_order(keys, text):
    async with running() as (app, pilot):
        prompt = app.screen.query_one(Prompt)
        for key in keys:
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: prompt.text == text)
