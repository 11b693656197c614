"""The chat on a server in the local engine's place."""

from contextlib import asynccontextmanager

from app.chat.app import ChatApp
from app.chat.screens.chat import ChatScreen
from app.chat.screens.server_models import ServerModelsScreen
from app.session import Phase
from runtime.client.remote import RemoteClient, Server
from tests.app.chat.helpers import ask, seen, until
from tests.fakes.chat_server import ChatServer, Reply, answer, chunk


@asynccontextmanager
async def chatting(fake, model="", size=(100, 30)):
    app = ChatApp(client=RemoteClient(Server.of(fake.url)), model=model)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.session.phase in (Phase.READY, Phase.BROKEN))
        yield app, pilot


async def test_a_server_needs_no_wizard_and_is_named(home):
    with ChatServer(answer("Hel", "lo"), models=["a", "b"]) as fake:
        async with chatting(fake, "b") as (app, pilot):
            assert isinstance(app.screen, ChatScreen)
            await ask(app, pilot, "hi")
            assert app.session.conversation.last.answer == "Hello"
            text = "\n".join(seen(app))
            assert f"server {fake.host}" in text
            assert "13/0" not in text
            assert "Slider off: it belongs to a local model" in text
            await pilot.press("f9")
            assert isinstance(app.screen, ChatScreen)


async def test_a_failure_keeps_the_partial_text_and_the_next_question_is_answered(home):
    with ChatServer(Reply((chunk("Half"),), cut=True), answer("Whole")) as fake:
        async with chatting(fake) as (app, pilot):
            await ask(app, pilot, "hi")
            turn = app.session.conversation.last
            assert turn.answer == "Half"
            assert "broke" in turn.failure
            await ask(app, pilot, "again")
            assert app.session.conversation.last.answer == "Whole"


async def test_a_server_that_comes_later_is_asked_again(home):
    with ChatServer(answer("x"), models=Reply.json({"error": "down"}, 500)) as fake:
        async with chatting(fake) as (app, pilot):
            assert app.session.phase is Phase.BROKEN
            fake.models = ["small"]
            await pilot.press("f12")
            await until(pilot, lambda: app.session.phase is Phase.READY)
            assert app.session.model == "small"


async def test_another_of_its_models_is_chosen(home):
    with ChatServer(answer("x"), models=["alpha-7b", "beta-7b", "beta-70b"]) as fake:
        async with chatting(fake) as (app, pilot):
            await pilot.press("f2")
            await until(pilot, lambda: isinstance(app.screen, ServerModelsScreen))
            await until(pilot, lambda: any("beta-70b" in line for line in seen(app)))
            await pilot.press(*"70b", "enter")
            await until(pilot, lambda: app.session.model == "beta-70b" and app.session.phase is Phase.READY)
            assert isinstance(app.screen, ChatScreen)
            await ask(app, pilot, "hi")
            assert fake.questions()[-1]["model"] == "beta-70b"
            assert app.settings.model == ""


async def test_a_list_that_fails_is_told_and_a_name_can_be_typed(home):
    with ChatServer(answer("x"), models=["small"]) as fake:
        async with chatting(fake, size=(60, 20)) as (app, pilot):
            fake.models = Reply.json({"error": "no list for you"}, 500)
            await pilot.press("f2")
            await until(pilot, lambda: any("no list for you" in line for line in seen(app)))
            fake.models = ["small"]
            await pilot.press(*"other", "enter")
            await until(pilot, lambda: app.session.model == "other" and app.session.phase is Phase.READY)


async def test_it_may_be_very_small(home):
    with ChatServer(answer("x"), models=["small"]) as fake:
        async with chatting(fake, size=(30, 8)) as (app, pilot):
            await pilot.press("f2")
            await until(pilot, lambda: any("small" in line for line in seen(app)))
            await pilot.press("escape")
            assert isinstance(app.screen, ChatScreen)
