"""The wizard's list of models keeps still under the eye."""

import pytest
from textual.app import App
from textual.widgets import OptionList

from app.chat.widgets.model_list import ModelList
from app.ranking import Offer

A, B, C = (Offer(name, name, name) for name in "abc")


class Shown(App):
    def compose(self):
        yield ModelList()


def order(listed):
    return [offer.name for offer in listed._offers]


@pytest.mark.parametrize(
    ("keys", "after", "marked"),
    [(["down"], "abc", "b"), ([], "cba", "c")],
    ids=["looked at", "not touched"],
)
async def test_a_measurement_sorts_only_what_nobody_has_moved_in(keys, after, marked):
    app = Shown()
    async with app.run_test() as pilot:
        listed = app.query_one(ModelList)
        listed.show([A, B, C])
        listed.focus_list()
        await pilot.press(*keys)
        await pilot.pause()
        listed.show([C, B, A])
        await pilot.pause()
        assert order(listed) == list(after)
        assert listed._offers[app.query_one(OptionList).highlighted].name == marked
        listed.sort_anew()
        listed.show([C, B, A])
        assert order(listed) == ["c", "b", "a"], "it is entered again"
