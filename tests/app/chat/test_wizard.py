"""The wizard from a bare machine to a chat."""

import subprocess
import sys
import tomllib

import pytest

from app.chat.screens.chat import ChatScreen
from app.chat.screens.wizard import WizardScreen
from app.setup import Step
from runtime import locations
from runtime.protocol.events import Progress
from tests.app.chat.helpers import ask, recorded, running, seen, until
from tests.app.conftest import MODEL, add_model

pytestmark = pytest.mark.usefixtures("worker")


async def at_models(app, pilot):
    await until(pilot, lambda: isinstance(app.screen, WizardScreen) and app.screen.setup.measured)
    await pilot.press("enter")
    await pilot.pause()
    assert app.screen.setup.step is Step.MODEL


async def to_the_chat(app, pilot):
    await until(pilot, lambda: app.screen.setup.step is Step.READY)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, ChatScreen))


async def test_from_nothing_to_an_answer(worker):
    worker("--untuned", jobs={"doctor": {"devices": [{"name": "cpu", "usable": True, "cores": 2}]}})
    async with running(ready=False) as (app, pilot):
        events = recorded(app)
        await until(pilot, lambda: isinstance(app.screen, WizardScreen) and app.screen.setup.measured)
        assert any("✓ cpu" in line for line in seen(app))
        await pilot.press("enter")
        await pilot.pause()
        listed = "\n".join(seen(app))
        assert "SmolLM2 135M Instruct" in listed
        assert "92.9 MB" in listed
        assert "Apache-2.0" in listed
        await pilot.press("enter")
        await to_the_chat(app, pilot)
        steps = [e.step for e in events if isinstance(e, Progress) and e.job != "doctor"]
        assert list(dict.fromkeys(steps))[:4] == ["download", "sensitivity", "encode", "quantise"]
        assert steps.index("quantise") < steps.index("tune")
        await until(pilot, lambda: app.session.slider.enabled)
        await ask(app, pilot, "hi")
        assert app.session.model == MODEL
    assert tomllib.loads(locations.settings_file().read_text())["model"] == MODEL


async def test_progress_shows_rate_and_time_left(worker):
    worker(step_s=2, ticks=10)
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: any("left" in line for line in seen(app)))
        line = next(line for line in seen(app) if "left" in line)
        assert "of 92.9 MB" in line
        assert "MB/s" in line
        assert any("Esc" in line for line in seen(app))


async def test_escape_leaves_the_download_and_it_is_continued_later(worker):
    worker(step_s=3, ticks=30)
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.setup.progress.steps)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen.setup.step is Step.MODEL)
        assert any("What is on disk is kept" in line for line in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.setup.progress.steps)
        assert app.screen.setup.step is Step.PREPARE


async def test_escape_in_tuning_leaves_a_working_chat_and_is_not_asked_again(worker):
    worker("--untuned", step_s=3, ticks=60)
    add_model(MODEL)
    async with running(ready=False) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        assert app.screen.setup.step is Step.TUNE
        await until(pilot, lambda: app.screen.setup.progress.steps)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        await ask(app, pilot, "hi")
        assert app.session.conversation.last.answer
        assert not app.session.slider.enabled
    async with running() as (app, pilot):
        assert isinstance(app.screen, ChatScreen)


async def test_escape_all_the_way_out_and_back_in():
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen.setup.step is Step.HARDWARE
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, ChatScreen)
        assert any("No model yet" in line for line in seen(app))
        await ask(app, pilot, "hello?")
        assert not app.session.conversation.turns
        await pilot.press("alt+w")
        await pilot.pause()
        assert isinstance(app.screen, WizardScreen)


async def test_a_failed_preparation_is_told_and_tried_again(worker):
    worker("--fail", "prepare")
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.setup.problem)
        assert any("the script says so" in line for line in seen(app))
        assert any("Enter tries again" in line for line in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.setup.problem)


async def test_a_crash_while_preparing_is_told(worker):
    worker("--crash", "prepare")
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.setup.problem)
        assert any("process ended" in line for line in seen(app))


async def test_another_model_can_be_typed():
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("tab", *"o/m", "enter")
        await to_the_chat(app, pilot)
        assert app.session.model == "o/m"


async def test_changing_the_model_in_the_set_up():
    add_model(MODEL)
    async with running() as (app, pilot):
        await ask(app, pilot, "hi")
        await ask(app, pilot, "/setup")
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        assert app.screen.setup.step is Step.MODEL, "this machine is known, the models are wanted"
        await pilot.press("down", "enter")
        await to_the_chat(app, pilot)
        await until(pilot, lambda: app.session.loaded)
        assert app.session.model != MODEL
        assert len(app.session.conversation.turns) == 1


@pytest.mark.parametrize("size", [(20, 6), (60, 20), (100, 30), (200, 50)])
async def test_sizes(size):
    async with running(size=size, ready=False) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WizardScreen) and app.screen.setup.measured)
        assert any(("Too small" if size[0] < 30 else "This machine") in line for line in seen(app))


def test_the_first_paint_waits_for_no_engine(home):
    """Nothing heavy is imported before something is on screen."""
    heavy = "torch", "numpy", "numba", "transformers", "triton"
    code = (
        "import sys; from app.chat.app import ChatApp; ChatApp();"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
