"""The pictures in these documents, taken from the program with the default model: python docs/screenshots.py

Needs the default model prepared in DECDEC_HOME. Tunes it on this machine, asks it questions, and writes
docs/*.svg. What the model says is its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from app.chat.app import ChatApp
from app.chat.screens.comparison import ComparisonScreen
from app.chat.screens.wizard import WizardScreen
from app.chat.widgets.prompt import Prompt
from app.session import Phase
from app.setup import Step

FOLDER = Path(__file__).resolve().parent
QUESTION = "Write a Python function that reverses a string. Explain how it works."
PATIENCE_S = 300.0
# Until curves can be seen.
CURVES_S = 3.5


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Let the app work until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await pilot.pause(0.1)
    await pilot.pause(0.3)


def keep(app: ChatApp, name: str) -> None:
    """Write what is on screen."""
    (FOLDER / f"{name}.svg").write_text(app.export_screenshot(), encoding="utf-8")
    print(name, flush=True)


async def start(app: ChatApp, pilot: Pilot[None]) -> None:
    """To a chat that is ready, without hints and cursors in the picture."""
    await until(pilot, lambda: app.session.phase is Phase.READY or isinstance(app.screen, WizardScreen))
    app.remember(show_hints=False, slowdown_lossless=False)
    app.session.slider.move_to(5.0)
    if isinstance(app.screen, WizardScreen):
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, WizardScreen))
    app.screen.query_one(Prompt).cursor_blink = False


async def type_and_send(pilot: Pilot[None], text: str) -> None:
    """Ask as a person does."""
    pilot.app.screen.query_one(Prompt).text = text
    await pilot.press("enter")


async def tuning(size: tuple[int, int]) -> None:
    """Curves while they grow, and the closing card."""
    app = ChatApp()
    async with app.run_test(size=size) as pilot:
        await start(app, pilot)
        await pilot.press("f9")
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        wizard = app.screen
        assert isinstance(wizard, WizardScreen)
        if wizard.setup.waiting:
            await pilot.press("enter")
        await until(pilot, lambda: wizard.setup.findings.curve("down") is not None)
        await pilot.pause(CURVES_S)
        keep(app, f"tuning-{size[0]}x{size[1]}")
        await until(pilot, lambda: wizard.setup.step is Step.READY)
        keep(app, f"tuned-{size[0]}x{size[1]}")
        await pilot.press("enter")
        await until(pilot, lambda: app.session.slider.enabled)


async def chatting(size: tuple[int, int], theme: str, name: str) -> None:
    """An answer, with a move of the slider in it."""
    app = ChatApp()
    async with app.run_test(size=size) as pilot:
        await start(app, pilot)
        app.theme = theme
        await type_and_send(pilot, QUESTION)
        await until(pilot, lambda: len(app.session.conversation.last.answer) > 150 or not app.session.busy)
        await pilot.press("f8")
        await until(pilot, lambda: not app.session.busy)
        keep(app, name)
        app.theme = "decdec-dark"


async def comparing(size: tuple[int, int]) -> None:
    """One question at two positions."""
    app = ChatApp()
    async with app.run_test(size=size) as pilot:
        await start(app, pilot)
        await type_and_send(pilot, "/ab Why is the sky blue? Answer in three sentences.")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        screen = app.screen
        assert isinstance(screen, ComparisonScreen)
        await until(pilot, lambda: screen.comparison.running is None and len(screen.comparison.answers) == 2)
        keep(app, f"comparison-{size[0]}x{size[1]}")


async def main() -> None:
    """All pictures."""
    await tuning((100, 30))
    await chatting((100, 30), "decdec-dark", "chat-100x30")
    await chatting((100, 30), "decdec-light", "chat-light-100x30")
    await chatting((60, 20), "decdec-dark", "chat-60x20")
    await chatting((200, 50), "decdec-dark", "chat-200x50")
    await comparing((100, 30))


if __name__ == "__main__":
    asyncio.run(main())
