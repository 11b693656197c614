"""Pictures of the screens that users see first. After a wanted change: pytest --snapshot-update."""

import pytest

from app.chat.app import ChatApp
from app.chat.screens.wizard import WizardScreen
from app.chat.widgets.prompt import Prompt
from app.session import Phase
from runtime import locations
from tests.app.chat.helpers import ask, until
from tests.app.conftest import MODEL, add_model

pytestmark = pytest.mark.usefixtures("worker")
SIZES = [(60, 20), (100, 30)]
ANSWER = """DecDEC keeps **low-bit weights** on the device.

## Steps

1. The base runs at `3` or `4` bits.
2. The largest channels are *corrected*.

```python
y = base(x) + residual[top].T @ x[top]
```

> Selection costs about 5 µs.
"""


def chatting(theme="decdec-dark", slides=("f8", "f8")):
    async def run(pilot):
        app = pilot.app
        app.theme = theme
        app.screen.query_one(Prompt).cursor_blink = False
        await until(pilot, lambda: app.session.phase is Phase.READY)
        await pilot.press(*slides)
        await until(pilot, lambda: app.session.slider.current is not None)
        await ask(app, pilot, "How does it work?")

    return run


@pytest.fixture
def chat_app(worker):
    def make(**script):
        worker(replies=[ANSWER], rate=1000, **script)
        add_model(MODEL)
        return ChatApp()

    return make


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["decdec-dark", "decdec-light", "ansi-dark"])
def test_chat(snap_compare, chat_app, size, theme):
    assert snap_compare(chat_app(), terminal_size=size, run_before=chatting(theme))


@pytest.mark.parametrize("size", SIZES)
def test_untuned(snap_compare, chat_app, size):
    chat_app(untuned=True)
    locations.settings_file().write_text(f'untuned = ["{MODEL}"]')

    async def run(pilot):
        app = pilot.app
        app.screen.query_one(Prompt).cursor_blink = False
        await until(pilot, lambda: app.session.phase is Phase.READY)

    assert snap_compare(ChatApp(), terminal_size=size, run_before=run)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("keys", [[], ["enter"]], ids=["hardware", "models"])
def test_wizard(snap_compare, worker, size, keys):
    devices = [
        {"name": "CPU", "usable": True, "cores": 2, "memory_bytes": 8_000_000_000},
        {"name": "NVIDIA GPU", "usable": False, "why": "no driver was found; the CPU is used"},
    ]
    worker(jobs={"doctor": {"devices": devices, "versions": {"torch": "2.13.0"}}})

    async def run(pilot):
        app = pilot.app
        await until(
            pilot, lambda: isinstance(app.screen, WizardScreen) and app.screen.setup.hardware is not None
        )
        await pilot.press(*keys)
        await pilot.pause()

    assert snap_compare(ChatApp(), terminal_size=size, run_before=run)
