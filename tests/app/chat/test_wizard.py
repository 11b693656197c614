"""The wizard from a bare machine to a chat."""

import subprocess
import sys
import tomllib

import pytest
from textual.widgets import Input

from app.chat.screens.chat import ChatScreen
from app.chat.screens.wizard import WizardScreen
from app.setup import Setup, Step
from runtime import locations
from runtime.protocol.events import Progress
from tests.app.chat.helpers import ask, recorded, running, seen, until
from tests.app.conftest import MODEL, add_model

pytestmark = pytest.mark.usefixtures("worker")

GPU = {
    "devices": [
        {"kind": "cpu", "name": "CPU", "usable": True, "cores": 8},
        {
            "kind": "cuda:0",
            "name": "NVIDIA RTX",
            "usable": True,
            "memory_bytes": 6_000_000_000,
            "free_bytes": 5_500_000_000,
            "memory_gb_s": 180.0,
            "link_gb_s": 12.0,
        },
    ],
    "memory": {"total_bytes": 16_000_000_000, "available_bytes": 12_000_000_000},
    "disk": {"folder": "/models", "free_bytes": 60_000_000_000},
    "answering": "cuda:0",
}


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
    worker(job_s={"prepare": 30}, ticks=300)
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
    worker("--untuned", job_s={"tune": 30}, ticks=300)
    add_model(MODEL)
    async with running(ready=False) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        assert app.screen.setup.step is Step.TUNE
        await pilot.press("enter")
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


async def preparing(app, pilot):
    await at_models(app, pilot)
    await pilot.press("enter")
    await until(pilot, lambda: app.screen.setup.progress.steps)


async def test_the_machine_is_there_before_the_engine(worker):
    worker(step_s=30)
    async with running(ready=False) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        assert not app.screen.setup.measured
        text = "\n".join(seen(app))
        assert "RAM" in text
        assert "memory speed measuring…" in text
        await pilot.press("enter")
        await pilot.pause()
        assert "SmolLM2 135M Instruct" in "\n".join(seen(app)), "nobody waits for the measurement"


async def test_models_are_ranked_by_what_was_measured(worker):
    worker(jobs={"doctor": GPU})
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot)
        lines = [line for line in seen(app) if "│" in line]
        assert "★ Qwen3 8B" in lines[0]
        assert "~" in lines[0]
        text = "\n".join(seen(app))
        assert "Recommended: the largest that fits and is fast." in text
        assert "Speeds are predicted" in text


async def test_a_model_that_does_not_fit_says_so_and_is_taken_the_second_time(worker):
    worker(jobs={"doctor": GPU}, job_s={"prepare": 30})
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("end", "enter")
        await pilot.pause()
        assert app.screen.setup.step is Step.MODEL
        assert any("does not fit" in line and "GPU's memory" in line for line in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.setup.step is Step.PREPARE)
        assert app.screen.setup.model == "Phi-3-medium-4k-instruct"


async def test_a_pause_keeps_the_step_and_enter_goes_on(worker):
    worker(job_s={"prepare": 30}, ticks=300)
    async with running(ready=False) as (app, pilot):
        await preparing(app, pilot)
        await pilot.press("p")
        await until(pilot, lambda: app.screen.setup.waiting)
        assert any("Paused" in line for line in seen(app))
        assert any("92.9 MB" in line for line in seen(app)), "how far it was stays on screen"
        await pilot.press("p")
        await until(pilot, lambda: app.screen.setup.running == "prepare")
        await until(pilot, lambda: app.screen.setup.progress.steps)


async def test_the_next_start_offers_to_go_on(worker):
    worker(job_s={"prepare": 30}, ticks=300)
    async with running(ready=False) as (app, pilot):
        await preparing(app, pilot)
    worker()
    async with running(ready=False) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        assert any(f"Continue preparing {MODEL}" in line for line in seen(app))
        await pilot.press("enter")
        await to_the_chat(app, pilot)
        assert app.session.model == MODEL
    add_model(MODEL)
    async with running() as (app, pilot):
        assert isinstance(app.screen, ChatScreen)
        await pilot.press("alt+w")
        await pilot.pause()
        assert not any("begun" in line for line in seen(app)), "it is prepared"


async def test_what_was_left_stands_in_front_of_the_list(worker):
    worker(job_s={"prepare": 30}, ticks=300)
    async with running(ready=False) as (app, pilot):
        await preparing(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen.setup.step is Step.MODEL)
        lines = [line for line in seen(app) if "│" in line]
        assert "◐ SmolLM2 135M Instruct" in lines[0]
        assert "begun: Enter goes on" in "\n".join(seen(app)) or "Continue preparing" in "\n".join(seen(app))
        assert [pull.name for pull in app.background.pulls] == [MODEL], "the list of models knows it too"


async def test_tuning_is_drawn_while_it_goes_on(worker):
    worker("--untuned", job_s={"tune": 10}, ticks=100)
    add_model(MODEL)
    async with running(ready=False) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.setup.findings.curve("down") is not None)
        await pilot.pause()
        text = "\n".join(seen(app))
        assert "gate/up  knee" in text
        assert any("\u2801" <= char <= "\u28ff" for char in text), "a curve"


async def test_the_last_card_can_tune_again(worker):
    worker("--untuned")
    add_model(MODEL)
    async with running(ready=False) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.setup.step is Step.READY)
        text = "\n".join(seen(app))
        assert "97.1 tok/s" in text
        assert "channels a token" in text
        assert "▸ 5 %" in text
        await pilot.press("r")
        await until(pilot, lambda: app.screen.setup.running == "tune" or app.screen.setup.step is Step.READY)
        await to_the_chat(app, pilot)
        await until(pilot, lambda: app.session.slider.enabled)


async def test_tuning_that_is_offered_waits_for_enter(worker):
    add_model(MODEL)
    async with running() as (app, pilot):
        app.push_screen(WizardScreen(Setup(Step.TUNE, MODEL, reason="since the last tuning driver changed")))
        await pilot.pause()
        text = "\n".join(seen(app))
        assert "Since the last tuning driver changed." in text
        assert not app.screen.setup.running
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.setup.step is Step.READY)


async def test_letters_belong_to_what_is_typed():
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("tab", "p", "r")
        assert app.screen.query_one(Input).value == "pr"
        assert app.screen.setup.step is Step.MODEL


@pytest.mark.parametrize("size", [(30, 8), (40, 10), (60, 20), (100, 30), (200, 50)])
async def test_the_list_shows_models_at_every_size(worker, size):
    worker(jobs={"doctor": GPU})
    async with running(size=size, ready=False) as (app, pilot):
        await at_models(app, pilot)
        text = "\n".join(seen(app))
        assert "Qwen3 8B" in text
        assert sum(name in text for name in ("Qwen3 4B", "Phi-3 mini", "Llama 3 8B")) == 3
        assert "or type" in text


async def test_tuning_is_not_offered_over_a_question_that_is_being_typed(worker):
    worker("--untuned", step_s=1, ticks=4)
    add_model(MODEL)
    async with running(ready=False) as (app, pilot):
        await pilot.press("h", "i")
        await until(pilot, lambda: app.session.loaded)
        assert isinstance(app.screen, ChatScreen)
        await pilot.press("enter")
        await until(pilot, lambda: app.session.conversation.last and not app.session.busy)
        assert app.session.conversation.last.question == "hi"
