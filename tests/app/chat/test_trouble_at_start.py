"""What is damaged or gone when the chat starts: told, kept aside, and the chat is there all the same."""

import pytest

from app.chat.screens.chat import ChatScreen
from app.chat.screens.wizard import WizardScreen
from app.settings import Settings
from runtime import locations
from tests.app.chat.helpers import ask, running, seen, until
from tests.app.conftest import MODEL, add_model

pytestmark = pytest.mark.usefixtures("worker")


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def told(app, words):
    return any(words in notification.message for notification in app._notifications)


async def test_damaged_settings_are_set_aside_and_the_usual_ones_hold(model):
    write(locations.settings_file(), b'theme = "nord\n')
    async with running() as (app, pilot):
        assert isinstance(app.screen, ChatScreen)
        assert told(app, "damaged")
        assert app.settings == Settings()
        await ask(app, pilot, "hi")
        assert app.session.conversation.last.answer
    assert locations.settings_file().with_suffix(".bad").read_bytes() == b'theme = "nord\n'


async def test_a_damaged_history_is_set_aside_and_a_new_one_begun(model):
    damaged = b"SQLite format 3\0" + b"\xff" * 5000
    write(locations.history_file(), damaged)
    async with running() as (app, pilot):
        assert told(app, "history-1.bad")
        await ask(app, pilot, "hi")
        assert [entry.title for entry in app.history.page().entries] == ["hi"]
    assert locations.history_file().with_name("history-1.bad").read_bytes() == damaged


async def test_a_damaged_model_of_last_time_is_told_and_another_answers(model):
    add_model("other")
    write(locations.settings_file(), f'model = "{MODEL}"\n'.encode())
    (locations.models() / MODEL / "weights.bin").unlink()
    async with running() as (app, _):
        assert told(app, f"The model {MODEL} is damaged: weights.bin")
        assert app.session.model == "other"
    assert MODEL in locations.settings_file().read_text(), "the choice is not forgotten"


async def test_models_on_a_disk_that_is_not_there_are_told_and_not_forgotten():
    write(locations.settings_file(), b'model = "o--m"\n')
    async with running(ready=False) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        assert told(app, f"o--m, the model of last time, is not in {locations.models()}")
    assert locations.settings_file().read_text() == 'model = "o--m"\n'


async def test_nothing_is_told_where_all_is_well(model):
    write(locations.settings_file(), f'model = "{MODEL}"\n'.encode())
    async with running() as (app, _):
        assert not app._notifications


async def test_a_tuning_that_does_not_hold_is_told_with_the_reason_and_not_begun_unasked(worker, model):
    worker("--untuned")
    async with running(ready=False) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WizardScreen))
        await until(pilot, lambda: "Not tuned on this device yet." in "\n".join(seen(app)))
        assert app.session.slider.reason == "not tuned on this device yet"
        assert not app.screen.setup.running
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        await ask(app, pilot, "hi")
        assert app.session.conversation.last.answer, "the slider is off, and the chat is there"
