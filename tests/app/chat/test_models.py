"""The models screen by key, slash and mouse, with the scripted worker."""

import pytest

from app.chat.screens.chat import ChatScreen
from app.chat.screens.choice import ChoiceScreen
from app.chat.screens.model_details import ModelDetailsScreen
from app.chat.screens.models import ModelsScreen
from app.chat.screens.wizard import WizardScreen
from app.chat.widgets.library_list import LibraryList
from app.chat.widgets.pull_line import PullLine
from app.library import records
from app.library.pulls import Pull, PullState
from app.setup import Step
from runtime import store
from runtime.sources import catalogue
from tests.app.chat import helpers
from tests.app.chat.helpers import ask, chat, running, seen
from tests.app.conftest import MODEL, add_model
from tests.app.library.inspection import INSPECTION
from tests.app.library.test_facts import DETAILS

pytestmark = pytest.mark.usefixtures("worker", "model")
OTHER = catalogue.load()[1]
SLOW = {"step_s": 20, "ticks": 200}
FOUND = {
    "words": "qwen",
    "hub": "http://hub",
    "models": [
        {"repo": "o/qwen-a", "downloads": 5_000_000, "bytes": 1_200_000_000},
        {"repo": "o/qwen-b", "gated": True},
    ],
    "left_out": 3,
}


async def until(pilot, condition):
    """As the helper, for a machine that starts several processes at once."""
    await helpers.until(pilot, condition, 30)


def text(app):
    return "\n".join(seen(app))


def notes(app):
    return [note.message for note in app._notifications]


async def at_models(app, pilot, mark=""):
    await pilot.press("f2")
    await until(pilot, lambda: isinstance(app.screen, ModelsScreen) and app.screen.row is not None)
    if mark:
        assert app.screen.query_one(LibraryList).mark(mark)
        await pilot.pause()
    return app.screen


async def fetching(app, pilot, name=OTHER.name):
    """A pull that was begun from the list and has figures."""
    screen = await at_models(app, pilot, f"catalogue:{name}")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
    await pilot.press("enter")
    await until(pilot, lambda: (pull := app.background.pulls.find(name)) and pull.newest)
    return screen


async def test_the_list_and_back():
    add_model("another")
    async with running() as (app, pilot):
        await at_models(app, pilot)
        shown = text(app)
        assert "2 here, 2.00 kB" in shown
        assert f"● {MODEL}" in shown
        assert "✓ another" in shown
        assert "6.40 bit/w" in shown
        assert "724 MB" in shown
        assert "needs a token" in shown
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))


async def test_enter_loads_and_remembers():
    add_model("another")
    async with running() as (app, pilot):
        await ask(app, pilot, "hi")
        await at_models(app, pilot, "ready:another")
        assert "Enter chats with another." in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: app.session.loaded and app.session.loaded.model == "another")
        assert isinstance(app.screen, ChatScreen)
        assert app.settings.model == "another"
        assert len(app.session.conversation.turns) == 1
    async with running() as (app, _):
        assert app.session.model == "another"


async def test_nothing_is_loaded_under_an_answer(worker):
    worker(rate=50)
    add_model("another")
    async with running() as (app, pilot):
        await ask(app, pilot, "!long", wait=False)
        await at_models(app, pilot, "ready:another")
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, ModelsScreen)
        assert any("still being written" in note for note in notes(app))
        assert app.session.model == MODEL


async def test_slash_loads_directly_by_any_part_of_a_name():
    add_model("another-one")
    async with running() as (app, pilot):
        await ask(app, pilot, "/model ANOTHER", wait=False)
        await until(pilot, lambda: app.session.loaded and app.session.loaded.model == "another-one")
        assert isinstance(app.screen, ChatScreen)
        await ask(app, pilot, "/model nonesuch", wait=False)
        await until(pilot, lambda: any("There is no model 'nonesuch'" in note for note in notes(app)))
        await ask(app, pilot, "/model", wait=False)
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))


async def test_slash_with_a_model_that_is_not_here_asks_how_to_fetch_it():
    async with running() as (app, pilot):
        await ask(app, pilot, f"/model {OTHER.name}", wait=False)
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        assert f"Fetch and prepare {OTHER.name}?" in text(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))
        assert app.screen.row.name == OTHER.name


async def test_fetching_beside_the_chat(worker):
    worker(step_s=1.5, ticks=10)
    async with running() as (app, pilot):
        screen = await fetching(app, pilot)
        assert screen.row.name == OTHER.name
        await until(pilot, lambda: "━" in text(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert chat(app).query_one(PullLine).display
        assert OTHER.name in seen(app)[-2]
        await ask(app, pilot, "hi")
        assert app.session.conversation.last.answer
        await pilot.click(PullLine)
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))
        await pilot.press("escape")
        await until(pilot, lambda: any(f"/model {OTHER.name} loads it" in note for note in notes(app)))
        await pilot.pause()
        assert not chat(app).query_one(PullLine).display
        assert records.unfinished() == []


async def test_pausing_going_on_and_cancelling(worker):
    worker(**SLOW)
    async with running(ready=False) as (app, pilot):
        await fetching(app, pilot)
        pull = app.background.pulls.find(OTHER.name)
        await pilot.press("p")
        await until(pilot, lambda: pull.state is PullState.PAUSED)
        assert "paused at Download" in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: pull.state is PullState.RUNNING)
        with store.building(OTHER.name) as staging:
            (staging / "part").write_bytes(b"x" * 5000)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        assert "5.00 kB are on disk" in text(app)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: any("5.00 kB are free again" in note for note in notes(app)))
        assert app.background.pulls.find(OTHER.name) is None
        await until(pilot, lambda: "On the way" not in text(app))
        assert records.unfinished() == []


async def test_a_failed_pull_tells_why_and_is_tried_again(worker):
    worker("--fail", "prepare")
    async with running() as (app, pilot):
        await at_models(app, pilot, f"catalogue:{OTHER.name}")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        await pilot.press("enter")
        await until(pilot, lambda: any("the script says so" in note for note in notes(app)))
        await until(pilot, lambda: "Enter tries again" in text(app))
        worker()
        await pilot.press("enter")
        await until(pilot, lambda: any("is ready" in note for note in notes(app)))


async def test_the_next_start_offers_to_go_on():
    records.keep(Pull(OTHER.name, OTHER.name))
    with store.building(OTHER.name) as staging:
        (staging / "part").write_bytes(b"x" * 5000)
    async with running() as (app, pilot):
        assert any("not fetched to the end" in note for note in notes(app))
        await at_models(app, pilot, f"pull:{OTHER.name}")
        assert "paused, 5.00 kB on disk" in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: any("is ready" in note for note in notes(app)))


async def test_what_became_ready_in_another_way_is_not_offered():
    records.keep(Pull(MODEL, MODEL))
    async with running() as (app, pilot):
        assert not any("not fetched to the end" in note for note in notes(app))
        await at_models(app, pilot)
        assert "On the way" not in text(app)
        assert records.unfinished() == []


async def test_the_first_model_that_is_ready_is_loaded_at_once(worker):
    store.remove(MODEL)
    async with running(ready=False) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        app.close_setup()
        await pilot.pause()
        await at_models(app, pilot, f"catalogue:{OTHER.name}")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        await pilot.press("enter")
        await until(pilot, lambda: app.session.loaded is not None)
        assert app.session.model == OTHER.name


async def test_the_set_up_can_do_it_instead(worker):
    worker(**SLOW)
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot, f"catalogue:{OTHER.name}")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        assert (app.screen.setup.step, app.screen.setup.model) == (Step.PREPARE, OTHER.name)
        assert app.background.pulls.running is None


async def test_searching_a_hub(worker):
    worker(jobs={"hub_search": FOUND})
    async with running(size=(130, 30)) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("slash", *"qwen", "enter")
        await until(pilot, lambda: "On the hub, 2 for" in text(app))
        shown = text(app)
        assert "3 more cannot be used here" in shown
        assert "o/qwen-a" in shown
        assert "1.20 GB" in shown
        assert "5.0 M downloads" in shown
        assert "Qwen3 0.6B" in shown, "the catalogue is filtered, not hidden"
        assert app.screen.query_one(LibraryList).has_focus
        assert app.screen.row.source == "o/qwen-a"
        assert app.screen.query_one(LibraryList).mark("hub:o/qwen-b")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        assert "HF_TOKEN" in text(app)


async def test_no_hub_is_one_sentence_and_what_is_here_goes_on(worker):
    failed = {
        "job": "hub_search",
        "what": "The hub cannot be reached",
        "why": "no network",
        "fix": "check it",
    }
    worker(fail={"hub_search": failed})
    add_model("another")
    async with running() as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("slash", *"smol", "enter")
        await until(pilot, lambda: "The hub cannot be reached: no network. Check it." in text(app))
        assert f"● {MODEL}" in text(app)
        await pilot.press("escape", "i")
        await until(pilot, lambda: isinstance(app.screen, ModelDetailsScreen))


async def test_a_path_is_imported(worker, tmp_path):
    file = tmp_path / "my model.gguf"
    file.write_bytes(b"GGUF")
    async with running() as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("slash")
        app.screen.query_one("#models-search").value = f"'{file}'"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        assert "Import my-model?" in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: any("my-model is ready" in note for note in notes(app)))
        await pilot.press("slash")
        app.screen.query_one("#models-search").value = "/none/such.gguf"
        await pilot.press("enter")
        await until(pilot, lambda: "There is no file or folder /none/such.gguf." in text(app))


async def test_deleting_asks_and_says_what_is_freed():
    add_model("another")
    async with running() as (app, pilot):
        await at_models(app, pilot, f"ready:{MODEL}")
        assert "is in use, so it cannot be deleted" in text(app)
        await until(pilot, lambda: "Del Delete" not in text(app))
        await pilot.press("delete")
        await pilot.pause()
        assert isinstance(app.screen, ModelsScreen)
        app.screen.query_one(LibraryList).mark("ready:another")
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        assert "1.00 kB are freed. This cannot be undone." in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))
        assert len(store.models()) == 2, "the first choice keeps it"
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: any("another is deleted" in note for note in notes(app)))
        assert [record.name for record in store.models()] == [MODEL]
        await until(pilot, lambda: "another" not in text(app).replace("another is deleted", ""))


async def test_details_with_the_histogram_and_a_verification(worker):
    verified = {"lossless": True, "tensors": 2, "weights": 1000, "mismatches": 0}
    jobs = {"model_details": DETAILS, "int8x_inspect": INSPECTION, "int8x_verify": verified}
    worker(jobs={**jobs, "check_files": {"files": 3, "bytes": 1000}})
    async with running(size=(110, 50)) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("i")
        await until(pilot, lambda: "Weights by the bits" in text(app))
        shown = text(app)
        for part in (
            "Apache-2.0",
            "134.5 M weights",
            "8 192 tokens",
            "█",
            "q proj",
            "entropy 4.50",
            "planes 90.0 %",
        ):
            assert part in shown, part
        await pilot.press("v")
        await until(pilot, lambda: "✓ 3 files, 1.00 kB" in text(app))
        assert "lossless: 1 000 weights in 2 tensors are right" in text(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))


async def test_leaving_the_details_ends_the_work(worker):
    worker(**SLOW)
    async with running(ready=False) as (app, pilot):
        await at_models(app, pilot)
        await pilot.press("v")
        await until(pilot, lambda: " %" in str(app.screen.query_one("#details-doing").content))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen) and not app.background._workers)


async def test_a_click_marks_and_a_second_one_chooses():
    add_model("another")
    async with running() as (app, pilot):
        await at_models(app, pilot, f"ready:{MODEL}")
        listed = app.screen.query_one(LibraryList)
        line = next(i for i, line in enumerate(seen(app)) if "✓ another" in line)
        offset = (10, line - listed.region.y)
        await pilot.click(LibraryList, offset=offset)
        assert isinstance(app.screen, ModelsScreen)
        assert app.screen.row.name == "another"
        await pilot.click(LibraryList, offset=offset)
        await until(pilot, lambda: app.session.loaded and app.session.loaded.model == "another")


async def test_a_damaged_model_is_offered_again(worker):
    add_model("bad", "hub o/bad")
    (store.find("bad").path / "weights.bin").write_bytes(b"short")
    async with running() as (app, pilot):
        await at_models(app, pilot, "left:bad")
        assert "Not whole" in text(app)
        assert "not known from what" in text(app)


async def test_tuning_waits_for_pulls(worker):
    worker(**SLOW)
    async with running(ready=False) as (app, pilot):
        await fetching(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        await pilot.press("f9")
        await until(pilot, lambda: any("would disturb the measurement" in note for note in notes(app)))


@pytest.mark.parametrize("size", [(20, 6), (30, 8), (60, 20), (100, 30), (200, 50)])
async def test_sizes(worker, size):
    worker(jobs={"model_details": DETAILS, "int8x_inspect": INSPECTION}, step_s=0.05)
    async with running(size=size) as (app, pilot):
        await at_models(app, pilot)
        small = size[0] < 30
        assert ("Too small" in text(app)) is small
        assert small or MODEL[:10] in text(app)
        await pilot.press("i")
        await until(
            pilot, lambda: isinstance(app.screen, ModelDetailsScreen) and app.screen._details.inspection
        )
        await pilot.press("escape", "delete")
        await pilot.pause()
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        assert MODEL[:10] in text(app)
