"""Pictures of the screens that users see most. After a wanted change: pytest --snapshot-update."""

import time

import pytest

from app.chat.app import ChatApp
from app.chat.screens.comparison import ComparisonScreen
from app.chat.screens.history import HistoryScreen
from app.chat.screens.settings import SettingsScreen
from app.conversation import Conversation, Turn, TurnState
from app.session import Phase
from runtime import locations
from tests.app.chat.helpers import ask, seen, until
from tests.app.conftest import MODEL, add_model

pytestmark = pytest.mark.usefixtures("worker")
SIZES = [(60, 20), (100, 30), (200, 50)]
ANSWER = """DecDEC keeps **low-bit weights** on the device.

## Steps

1. The base runs at `3` or `4` bits.
2. The largest channels are *corrected*.

```python
y = base(x) + residual[top].T @ x[top]
```

| part | bits |
|---|---|
| base | 3.3 |

> Selection costs about 5 µs.
"""


@pytest.fixture(autouse=True)
def greenwich(monkeypatch):
    """Times of day are drawn as they are there."""
    monkeypatch.setenv("TZ", "UTC")
    if hasattr(time, "tzset"):
        time.tzset()


@pytest.fixture
def chat_app(worker):
    def make(**script):
        worker(**{"replies": [ANSWER], "rate": 1000, **script})
        add_model(MODEL)
        return ChatApp()

    return make


async def ready(pilot, theme="decdec-dark"):
    app = pilot.app
    app.theme = theme
    await until(pilot, lambda: app.session.phase is Phase.READY)
    return app


async def still(pilot):
    """Leave out the curve, which is drawn by real times."""
    pilot.app.session.slider.times.clear()
    pilot.app.screen.refresh_facts()
    await pilot.pause()


def chatting(theme):
    async def run(pilot):
        app = await ready(pilot, theme)
        await pilot.press("f8", "f8")
        await until(pilot, lambda: app.session.slider.current is not None)
        await ask(app, pilot, "How does it work?")
        await still(pilot)

    return run


def fixed_history(app):
    """Two conversations of long ago."""
    for at, title in enumerate(["Why is the sky blue", "Ein Rezept für Brot"]):
        created = 1_700_000_000.0 + 86_400 * at
        turn = Turn("question", ANSWER, TurnState.DONE, "stop", model=MODEL, created=created)
        app.history.save(Conversation.of([turn], turn.id, title=title, created=created), updated=created)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["decdec-dark", "decdec-light"])
def test_chat(snap_compare, chat_app, size, theme):
    assert snap_compare(chat_app(), terminal_size=size, run_before=chatting(theme))


@pytest.mark.parametrize("theme", ["ansi-dark", "ansi-light", "decdec-contrast"])
def test_other_themes(snap_compare, chat_app, theme):
    assert snap_compare(chat_app(), terminal_size=(100, 30), run_before=chatting(theme))


@pytest.mark.parametrize("size", SIZES)
def test_untuned(snap_compare, chat_app, size):
    chat_app(untuned=True)
    locations.settings_file().write_text(f'untuned = ["{MODEL}"]\n')
    assert snap_compare(ChatApp(), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", SIZES[:2])
def test_a_selected_turn_with_thinking_and_variants(snap_compare, chat_app, size):
    async def run(pilot):
        app = await ready(pilot)
        await ask(app, pilot, "Is it free?")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: not app.session.busy)
        await pilot.press("up", "t")
        await still(pilot)

    replies = ["<think>\nA short thought.\n</think>\n\nIt is **free** up to 2 %."]
    assert snap_compare(chat_app(replies=replies), terminal_size=size, run_before=run)


@pytest.mark.parametrize("size", SIZES)
def test_history(snap_compare, chat_app, size):
    async def run(pilot):
        app = await ready(pilot)
        fixed_history(app)
        await pilot.press("f3")
        await until(pilot, lambda: isinstance(app.screen, HistoryScreen))
        await until(pilot, lambda: any("Brot" in line for line in seen(app)))

    assert snap_compare(chat_app(), terminal_size=size, run_before=run)


@pytest.mark.parametrize("size", SIZES)
def test_settings(snap_compare, chat_app, size):
    async def run(pilot):
        app = await ready(pilot, "decdec-light")
        await pilot.press("f10")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        await pilot.pause(0.2)

    assert snap_compare(chat_app(), terminal_size=size, run_before=run)


@pytest.mark.parametrize("size", SIZES)
def test_comparison(snap_compare, chat_app, size):
    async def run(pilot):
        app = await ready(pilot)
        await ask(app, pilot, "/ab Is it free?", wait=False)
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        await until(pilot, lambda: any("They part" in line for line in seen(app)))
        await pilot.pause(0.2)

    replies = ["It is free up to 2 %.", "It is free up to 3 %."]
    assert snap_compare(chat_app(replies=replies), terminal_size=size, run_before=run)
