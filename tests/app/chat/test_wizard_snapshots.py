"""Pictures of the wizard's steps. After a wanted change: pytest --snapshot-update."""

import pytest

from app.chat.app import ChatApp
from app.chat.screens.wizard import WizardScreen
from app.job_progress import JobProgress
from app.setup import Step
from runtime import machine
from runtime.protocol.events import Done, Failed, Progress
from tests.app.chat.helpers import until
from tests.app.conftest import MODEL
from tests.fakes.scripted_worker import BASE_US, INPUTS, KNEES, PATH, RUNGS, curve_us

pytestmark = pytest.mark.usefixtures("worker")
SMALL, USUAL, LARGE = (60, 20), (100, 30), (200, 50)
LIGHT, DARK = "decdec-light", "decdec-dark"

LAPTOP = {
    "devices": [
        {
            "name": "Intel(R) Core(TM) i7-13700H",
            "kind": "cpu",
            "usable": True,
            "cores": 14,
            "instructions": "AVX2",
        },
        {
            "name": "NVIDIA GeForce RTX 4050 Laptop GPU",
            "kind": "cuda:0",
            "usable": True,
            "memory_bytes": 6_140_000_000,
            "free_bytes": 5_500_000_000,
            "compute_capability": "8.9",
            "driver": "570.133.07",
            "memory_gb_s": 178.0,
            "link_gb_s": 12.4,
        },
    ],
    "memory": {
        "total_bytes": 16_700_000_000,
        "available_bytes": 12_100_000_000,
        "lock_limit_bytes": 8_388_608,
        "pinnable_bytes": 11_000_000_000,
    },
    "disk": {"folder": "/home/user/.cache/decdec-chat/models", "free_bytes": 24_700_000_000},
    "answering": "cuda:0",
    "checks": [
        {
            "name": "device",
            "ok": True,
            "note": "answers come from NVIDIA GeForce RTX 4050 Laptop GPU (cuda:0)",
        },
        {
            "name": "model hub",
            "ok": None,
            "note": "huggingface.co, not checked; no access token for gated models",
        },
    ],
}
NO_GPU = {
    **LAPTOP,
    "devices": [
        {**LAPTOP["devices"][0], "memory_gb_s": 48.2, "int4_gb_s": 31.0, "int8_gb_s": 40.0},
        {
            "name": "NVIDIA GPU",
            "kind": "cuda",
            "usable": False,
            "why": "the driver is too old for CUDA 13.0, or no device is visible to this process",
            "fix": "update NVIDIA's driver",
        },
    ],
    "answering": "cpu",
}


@pytest.fixture
def picture(snap_compare, worker, monkeypatch):
    """Compare a step, reached by events alone, at a size and in a theme."""
    monkeypatch.setattr(machine, "glance", dict)
    monkeypatch.setattr(JobProgress, "left_s", 95.0)

    def compare(reach, size, theme=DARK, report=LAPTOP):
        worker(jobs={"doctor": report})

        async def run(pilot):
            app = pilot.app
            app.theme = theme
            await until(pilot, lambda: isinstance(app.screen, WizardScreen) and app.screen.setup.measured)
            app.send = lambda command: None
            await reach(app.screen, pilot)
            await pilot.pause()

        return snap_compare(ChatApp(), terminal_size=size, run_before=run)

    return compare


async def at_hardware(screen, pilot):
    """It begins there."""


async def at_models(screen, pilot):
    await pilot.press("enter")


async def at_prepare(screen, pilot):
    await pilot.press("enter")
    screen.setup.choose(MODEL)
    screen._enter()
    steps = [("download", 92_871_040, 92_871_040, "bytes"), ("extract", 1, 1, "files")]
    for step, done, total, unit in [*steps, ("sensitivity", 41, 60, "blocks")]:
        screen.engine_event(Progress("prepare", step, done, total, unit, 1.7, 12.0))


async def at_pause(screen, pilot):
    await at_prepare(screen, pilot)
    await pilot.press("p")
    screen.engine_event(Failed("prepare", "Stopped", code=130))


async def at_tune(screen, pilot):
    await at_prepare(screen, pilot)
    screen.engine_event(Done("prepare", {"name": MODEL}))
    points = [(kind, 0, k, us + curve_us(kind, k)) for k in RUNGS for kind, us in BASE_US.items()]
    data = {"base_us": BASE_US, "points": points}
    screen.engine_event(Progress("tune", "tune", 30, 40, "points", 2.0, 5.0, "", data))


async def at_ready(screen, pilot):
    await at_tune(screen, pilot)
    curves = {kind: [(k, us + curve_us(kind, k)) for k in RUNGS] for kind, us in BASE_US.items()}
    token = {"us": 10_000.0, "of_us": 10_000.0, "layers": 30, "inputs": INPUTS}
    report = {"base_us": BASE_US, "curves": curves, "knees": KNEES, "token": token}
    path = [
        {"slowdown_pct": p.slowdown_pct, "k_chunk": {kind: getattr(p.k_chunk, kind) for kind in BASE_US}}
        for p in PATH
    ]
    screen.engine_event(Done("tune", {"path": path, "report": report}))
    assert screen.setup.step is Step.READY


@pytest.mark.parametrize("size", [SMALL, USUAL])
def test_hardware(picture, size):
    assert picture(at_hardware, size)


@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_hardware_without_a_gpu(picture, theme):
    assert picture(at_hardware, USUAL, theme, NO_GPU)


@pytest.mark.parametrize(("size", "theme"), [((40, 10), DARK), (SMALL, DARK), (USUAL, LIGHT), (LARGE, DARK)])
def test_models(picture, size, theme):
    assert picture(at_models, size, theme)


@pytest.mark.parametrize(("size", "theme"), [(SMALL, LIGHT), (USUAL, DARK)])
def test_prepare(picture, size, theme):
    assert picture(at_prepare, size, theme)


def test_pause(picture):
    assert picture(at_pause, SMALL)


@pytest.mark.parametrize(("size", "theme"), [(SMALL, DARK), (USUAL, DARK), (USUAL, LIGHT), (LARGE, DARK)])
def test_tune(picture, size, theme):
    assert picture(at_tune, size, theme)


@pytest.mark.parametrize(("size", "theme"), [(SMALL, DARK), (USUAL, LIGHT), (LARGE, DARK)])
def test_ready(picture, size, theme):
    assert picture(at_ready, size, theme)
