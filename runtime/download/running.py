"""Downloads run in an event loop of their own, for code that knows none; a tick can stop them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

TICK_S = 0.1
T = TypeVar("T")


def run(work: Coroutine[Any, Any, T], tick: Callable[[], None]) -> T:
    """The result of `work`. `tick` is called in this thread every TICK_S and once at the end.

    An exception of `tick` cancels the work, also while it connects or waits, and is raised when it has ended.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_watched(work, tick))
    finally:
        try:
            _cancel_rest(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            # Not asyncio.run: that waits for a look-up of a name that nobody waits for any more.
            loop.close()


async def _watched(work: Coroutine[Any, Any, T], tick: Callable[[], None]) -> T:
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=TICK_S)
            if not task.done():
                tick()
    except BaseException:
        task.cancel()
        # Its own end is of no interest any more, and is not to be told on stderr either.
        await asyncio.gather(task, return_exceptions=True)
        raise
    result = task.result()
    tick()
    return result


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
