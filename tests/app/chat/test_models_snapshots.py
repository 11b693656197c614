"""Pictures of the models screen. After a wanted change: pytest --snapshot-update."""

import shutil
from collections import namedtuple

import pytest

from app.chat.app import ChatApp
from app.chat.screens.model_details import ModelDetailsScreen
from app.chat.screens.models import ModelsScreen
from app.chat.widgets.library_list import LibraryList
from app.library.pulls import Pull, PullState
from app.session import Phase
from runtime import machine
from runtime.protocol.events import Progress
from tests.app.chat.helpers import until
from tests.app.conftest import MODEL, add_model
from tests.app.library.inspection import INSPECTION
from tests.app.library.test_facts import DETAILS

pytestmark = pytest.mark.usefixtures("model")
PULLS = (
    Pull("Qwen3-4B", "Qwen3-4B", PullState.RUNNING),
    Pull("Qwen3-8B", "Qwen3-8B", PullState.PAUSED),
    Pull("owner--odd", "owner/odd", PullState.FAILED, problem="The disk is full: 2 GB are needed."),
)


# What fits is told by a machine that is the same everywhere.
SMALL = {
    "devices": [{"name": "CPU", "kind": "cpu", "usable": True, "cores": 8}],
    "memory": {"total_bytes": 16_000_000_000, "available_bytes": 8_000_000_000},
    "disk": {"folder": "/models", "free_bytes": 50_000_000_000},
    "answering": "cpu",
}


@pytest.fixture(autouse=True)
def small_machine(monkeypatch):
    monkeypatch.setattr(machine, "glance", lambda: SMALL)


@pytest.fixture(autouse=True)
def disk(monkeypatch, worker):
    """A disk that is always as full, and quick jobs."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 9 * 10**11, 10**11))
    worker(jobs={"model_details": DETAILS, "int8x_inspect": INSPECTION}, ticks=1)


def at_models(*keys, until_shown=lambda screen: True):
    async def run(pilot):
        app = pilot.app
        await until(pilot, lambda: app.session.phase is Phase.READY)
        app.background.pulls._pulls = {pull.name: pull for pull in PULLS}
        PULLS[0].progress.push(Progress("prepare", "download", 3 * 10**9, 8 * 10**9, "bytes", 5e6, 1000.0))
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen) and app.screen.row is not None)
        app.screen.query_one(LibraryList).mark(f"ready:{MODEL}")
        await pilot.press(*keys)
        await until(pilot, lambda: until_shown(app.screen))
        await pilot.pause()

    return run


@pytest.mark.parametrize("size", [(60, 20), (100, 30), (180, 40)])
def test_the_list(snap_compare, size):
    add_model("another")
    assert snap_compare(ChatApp(), terminal_size=size, run_before=at_models())


@pytest.mark.parametrize("size", [(60, 20), (100, 40)])
def test_details(snap_compare, size):
    def shown(screen):
        return isinstance(screen, ModelDetailsScreen) and screen._details.inspection is not None

    assert snap_compare(ChatApp(), terminal_size=size, run_before=at_models("i", until_shown=shown))
