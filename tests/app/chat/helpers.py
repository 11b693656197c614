"""Driving the app without a terminal."""

import asyncio
from contextlib import asynccontextmanager

from app.chat.app import ChatApp
from app.chat.screens.chat import ChatScreen
from app.chat.widgets.prompt import Prompt
from app.session import Phase


@asynccontextmanager
async def running(size=(100, 30), ready=True, given_loading=None):
    """The app; with `ready`, its chat screen with a loaded model."""
    app = ChatApp(given_loading)
    async with app.run_test(size=size) as pilot:
        if ready:
            await until(pilot, lambda: app.session.phase is Phase.READY)
        yield app, pilot


async def until(pilot, condition, seconds=20.0):
    """Let the app work until something holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await pilot.pause(0.01)
    await pilot.pause()


async def ask(app, pilot, text, wait=True):
    """Type a message and send it; wait for its answer's end."""
    app.screen.query_one(Prompt).text = text
    await pilot.press("enter")
    await pilot.pause()
    if wait:
        await until(pilot, lambda: not app.session.busy)


def seen(app):
    """All text on screen, line by line."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


def chat(app):
    """The chat screen, wherever it is in the stack."""
    return next(screen for screen in app.screen_stack if isinstance(screen, ChatScreen))


def recorded(app):
    """Every event from now on."""
    events, push = [], app.session.push

    def record(event):
        events.append(event)
        push(event)

    app.session.push = record
    return events
