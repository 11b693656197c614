"""The line of facts: the context's meter warns before the context is full, with and without colours."""

import pytest

from app.chat.widgets.status_line import StatusLine
from runtime.protocol.events import KChunk, Stats
from tests.app.chat.helpers import running

pytestmark = pytest.mark.usefixtures("worker", "model")


def meter(app, used, limit):
    """The text of the meter, and whether it is bold, when so much is used."""
    app.session.stats = Stats(70.0, 0.1, 5, 3, 10, used, limit, 5.0, 1.0, KChunk(1), 99)
    line = app.screen.query_one(StatusLine).render()
    at = line.plain.index(f"{used}/")
    styles = [str(span.style) for span in line.spans if span.start <= at < span.end]
    return line.plain[at:].split()[0], any("bold" in style for style in styles)


@pytest.mark.parametrize("size", [(60, 20), (100, 30)])
async def test_the_meter_warns_from_four_fifths_on(size):
    async with running(size=size) as (app, _):
        limit = app.session.loaded.context_limit
        assert meter(app, int(limit * 0.79), limit) == (f"{int(limit * 0.79)}/{limit}", False)
        assert meter(app, int(limit * 0.81), limit) == (f"{int(limit * 0.81)}/{limit}!", True)
        assert meter(app, limit, limit) == (f"{limit}/{limit}!", True)
