"""The client against a server on the loopback: commands in, events out, as a worker would."""

import asyncio
import re
import socket
import threading

import pytest

from runtime.client import run_job
from runtime.client.remote import RemoteClient, Server, limits
from runtime.client.remote.blocking import RemoteWorker
from runtime.errors import DecdecError
from runtime.protocol import (
    Done,
    Event,
    Failed,
    Generate,
    Job,
    Load,
    Loaded,
    Message,
    Prepare,
    Quit,
    Ready,
    Sampling,
    SetSlowdown,
    Stats,
    Stop,
    Token,
    Tune,
)
from tests.fakes.chat_server import DONE, ChatServer, Reply, answer, chunk, event, usage

ASK = Generate((Message("user", "hello"),))
ELSEWHERE = "https://user:pw@evil.example/v1?k=1"
TALK = Generate(tuple(Message(role, role) for role in ("user", "assistant", "user")))


async def until(client, *kinds) -> list[Event]:
    """Events up to one of these kinds, or a failure."""
    seen: list[Event] = []
    async with asyncio.timeout(10):
        async for event in client.events():
            seen.append(event)
            if isinstance(event, (*kinds, Failed)):
                return seen
    raise AssertionError("the stream ended")


async def asked(fake):
    """Until a question is with the server."""
    async with asyncio.timeout(10):
        while not fake.questions():
            await asyncio.sleep(0.01)


class Chat:
    """A client that is started, with its model chosen."""

    def __init__(self, fake, model="", key_variable=None, load=True):
        self.client = RemoteClient(Server.of(fake.url, key_variable))
        self.model, self.load, self.loaded = model, load, None

    async def __aenter__(self):
        await self.client.start()
        assert isinstance((await until(self.client, Ready))[-1], Ready)
        if self.load:
            self.loaded = await self.ask(Load(self.model), Loaded)
        return self

    async def __aexit__(self, *_):
        await self.client.close()

    async def all(self, command, *kinds):
        await self.client.send(command)
        return await until(self.client, *kinds)

    async def ask(self, command, *kinds):
        return (await self.all(command, *(kinds or (Done,))))[-1]


def text(events):
    return "".join(event.text for event in events if isinstance(event, Token))


async def test_an_answer_arrives_whole_with_its_figures():
    with ChatServer(answer("Hel", "lo ", "\U0001f600")) as fake:
        async with Chat(fake) as chat:
            assert chat.loaded.model == "small"
            assert chat.loaded.device == f"server {fake.host}"
            assert chat.loaded.path == ()
            assert "belongs to a local model" in chat.loaded.untuned_reason
            events = await chat.all(ASK, Done)
        *_, stats, done = events
        assert text(events) == done.result["text"] == "Hello \U0001f600"
        assert (stats.prompt_tokens, stats.completion_tokens) == (11, 3)
        assert done.result["finish_reason"] == "stop"
        assert fake.questions()[0]["messages"] == [{"role": "user", "content": "hello"}]
        assert fake.questions()[0]["model"] == "small"
        assert "Authorization" not in fake.requests[0].headers


async def test_events_end_with_close_and_nothing_is_taken_then():
    with ChatServer(answer("x")) as fake:
        async with Chat(fake) as chat:
            assert chat.client.alive
        assert [e async for e in chat.client.events()] == []
        assert not chat.client.alive
        with pytest.raises(DecdecError, match="not connected"):
            await chat.client.send(ASK)


async def test_bytes_that_come_one_by_one_make_the_same_answer():
    stream = b"".join(answer("caf\u00e9 ", "\u6771\u4eac").parts).replace(b"\n\n", b"\r\n\r\n")
    parts = tuple(bytes([byte]) for byte in b": ping\r\n\r\n" + stream)
    with ChatServer(Reply(parts)) as fake:
        async with Chat(fake) as chat:
            assert (await chat.ask(ASK)).result["text"] == "caf\u00e9 \u6771\u4eac"


async def test_reasoning_is_thinking():
    parts = (chunk(reasoning="let me "), chunk(reasoning="see"), chunk("42"), chunk(finish="stop"), DONE)
    with ChatServer(Reply(parts)) as fake:
        async with Chat(fake) as chat:
            events = await chat.all(ASK, Done)
            assert text(events) == "<think>\nlet me see\n</think>\n\n42"


async def test_a_server_that_does_not_stream_answers_too():
    whole = {"choices": [{"message": {"content": "All"}, "finish_reason": "stop"}]}
    with ChatServer(Reply.json(whole)) as fake:
        async with Chat(fake) as chat:
            assert (await chat.ask(ASK)).result["text"] == "All"


async def test_a_stream_under_another_label_is_read():
    with ChatServer(
        Reply(answer("ok").parts, headers={"Content-Type": "text/plain; charset=latin-1"})
    ) as fake:
        async with Chat(fake) as chat:
            assert (await chat.ask(ASK)).result["text"] == "ok"


async def test_a_stop_ends_the_request_at_once_and_keeps_the_text():
    never = threading.Event()
    endless = Reply((chunk("one "), chunk("two "), *([0.02, chunk("more ")] * 500), never))
    with ChatServer(endless, answer("next")) as fake:
        async with Chat(fake) as chat:
            first = await chat.all(ASK, Token)
            await chat.client.send(Stop())
            events = first + await until(chat.client, Done)
            done = events[-1].result
            assert done["finish_reason"] == "stopped"
            assert done["text"] == text(events)
            assert done["text"].startswith("one ")
            assert await asyncio.to_thread(fake.gone.wait, 5)
            assert (await chat.ask(ASK)).result["text"] == "next"


async def test_a_stop_before_the_first_word_ends_it_too():
    never = threading.Event()
    with ChatServer(Reply((never,))) as fake:
        async with Chat(fake) as chat:
            await chat.client.send(ASK)
            await asked(fake)
            await chat.client.send(Stop())
            done = (await until(chat.client, Done))[-1]
            assert (done.result["text"], done.result["finish_reason"]) == ("", "stopped")
            never.set()


async def test_a_stop_reaches_what_waits_and_nothing_that_comes_later():
    with ChatServer(Reply((0.2, *answer("x").parts)), answer("x"), answer("later")) as fake:
        async with Chat(fake) as chat:
            await chat.client.send(ASK)
            await asked(fake)
            for command in (ASK, Stop(), ASK):
                await chat.client.send(command)
            first = (await until(chat.client, Done))[-1]
            second = (await until(chat.client, Done))[-1]
            third = (await until(chat.client, Done))[-1]
            assert first.result["finish_reason"] == "stopped"
            assert (second.job, second.code) == ("generate", 130)
            assert third.result["finish_reason"] == "stop"


async def test_a_stop_without_anything_running_changes_nothing():
    with ChatServer(answer("fine")) as fake:
        async with Chat(fake) as chat:
            await chat.client.send(Stop())
            assert (await chat.ask(ASK)).result["text"] == "fine"


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (Reply((chunk("one "), chunk("two")), cut=True), "connection to .* broke"),
        (Reply((chunk("one "), chunk("two"))), "broke off"),
        (Reply((chunk("one "), chunk("two"), b"data: {nonsense\n\n")), "something unreadable"),
        (Reply((chunk("one "), chunk("two"), event({"error": {"message": "GPU on fire"}}))), "GPU on fire"),
        (Reply((chunk("one "), chunk("two"), b"data: " + b"x" * (limits.MAX_EVENT_BYTES + 1))), "too large"),
    ],
)
async def test_a_stream_that_breaks_keeps_what_came(reply, sentence):
    with ChatServer(reply, answer("again")) as fake:
        async with Chat(fake) as chat:
            events = await chat.all(ASK, Done)
            assert text(events) == "one two"
            failed = events[-1]
            assert failed.job == "generate"
            told = DecdecError(failed.what, failed.why, failed.fix).sentence
            assert re.search(sentence, told)
            assert (await chat.ask(ASK)).result["text"] == "again"


@pytest.mark.parametrize(
    ("reply", "what", "why", "fix"),
    [
        (Reply.json({"error": {"message": "no key"}}, 401), "wants an API key", "no key", "--api-key-env"),
        (Reply.json({"error": "no model `x`"}, 404), "does not know", "no model `x`", "--server-model"),
        (Reply.json({"error": "slow"}, 429, **{"Retry-After": "7"}), "no more questions", "slow", "7 s"),
        (Reply.json({"error": "quota"}, 429), "no more questions", "quota", "wait a little"),
        (Reply.json({"detail": "boom"}, 500), "failed", "boom", "log"),
        (Reply.html(502), "failed", "web page", "log"),
        (Reply((), 503, {}), "failed", "its answer is 503", "log"),
        (Reply.json({"error": {"message": "Loading model"}}, 503), "not ready", "loads", "wait"),
        (Reply.json({"detail": "temperature: too hot"}, 422), "refused the request", "too hot", ""),
        (Reply((), 413, {}), "this long", "413", "new chat"),
        (Reply.html(), "no OpenAI-compatible API", "web page", "login"),
        (Reply.json(["what"]), "something unreadable", "no chat completion", "address"),
        (Reply((), 307, {"Location": ELSEWHERE}), "elsewhere", "to https://evil.example/v1", "--server"),
        (Reply((), 302, {"Location": "/login"}), "elsewhere", "/login", "--server"),
    ],
)  # fmt: skip
async def test_refusals_are_sentences_and_the_client_lives_on(reply, what, why, fix):
    with ChatServer(reply, answer("again")) as fake:
        async with Chat(fake) as chat:
            failed = await chat.ask(ASK)
            assert (failed.job, failed.code) == ("generate", 1)
            assert what in failed.what
            assert why in failed.why
            assert fix in failed.fix
            assert "pw" not in failed.why
            assert (await chat.ask(ASK)).result["text"] == "again"


async def test_the_key_goes_to_the_server_and_is_not_quoted(monkeypatch):
    monkeypatch.setenv("SOME_KEY", "sk-verysecret")
    refusal = Reply.json({"error": {"message": "Incorrect API key provided: sk-verysecret."}}, 401)
    with ChatServer(refusal) as fake:
        async with Chat(fake, key_variable="SOME_KEY") as chat:
            failed = await chat.ask(ASK)
            assert "refused the API key" in failed.what
            assert "SOME_KEY" in failed.fix
            assert "verysecret" not in DecdecError(failed.what, failed.why, failed.fix).sentence
        assert {r.headers["Authorization"] for r in fake.requests} == {"Bearer sk-verysecret"}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_redirect_carries_question_or_key_to_another_host(monkeypatch, status):
    monkeypatch.setenv("SOME_KEY", "sk-verysecret")
    with ChatServer(answer("stolen")) as other:
        with ChatServer(Reply((), status, {"Location": f"{other.url}/chat/completions"})) as fake:
            async with Chat(fake, key_variable="SOME_KEY") as chat:
                failed = await chat.ask(ASK)
                assert other.host in failed.why
        assert other.requests == []


async def test_what_the_server_does_not_take_is_left_out_from_then_on():
    refusal = Reply.json({"error": {"message": "Unknown parameter: 'stream_options'"}}, 400)
    with ChatServer(refusal, answer("ok")) as fake:
        async with Chat(fake) as chat:
            assert (await chat.ask(ASK)).result["text"] == "ok"
            await chat.ask(ASK)
        assert ["stream_options" in question for question in fake.questions()] == [True, False, False]


async def test_a_full_context_drops_the_oldest_messages_and_says_so():
    refusal = Reply.json({"error": {"message": "maximum context length is 10 tokens"}}, 400)
    with ChatServer(refusal, answer("short")) as fake:
        async with Chat(fake) as chat:
            done = await chat.ask(TALK)
            assert (done.result["text"], done.result["dropped_messages"]) == ("short", 2)


async def test_a_question_that_never_fits_is_a_sentence():
    refusal = Reply.json({"error": {"message": "maximum context length is 10 tokens"}}, 400)
    with ChatServer(refusal) as fake:
        async with Chat(fake) as chat:
            assert "maximum context length" in (await chat.ask(TALK)).why
            assert len(fake.questions()) == 2


async def test_a_silent_server_is_given_up(monkeypatch):
    monkeypatch.setattr(limits, "SILENCE_S", 0.3)
    never = threading.Event()
    with ChatServer(Reply((chunk("one"), b": ping\n\n", never))) as fake:
        async with Chat(fake) as chat:
            events = await chat.all(ASK, Done)
            assert text(events) == "one"
            assert "fell silent" in events[-1].what
            never.set()


async def test_counts_that_never_come_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(limits, "LINGER_S", 0.2)
    never = threading.Event()
    with ChatServer(Reply((chunk("one"), chunk(finish="stop"), never))) as fake:
        async with Chat(fake) as chat:
            done = await chat.ask(ASK)
            assert (done.result["text"], done.result["completion_tokens"]) == ("one", 1)
            never.set()


async def test_a_prompts_size_is_learnt_for_the_meter():
    with ChatServer(Reply((*answer("a").parts[:2], usage(50, 1), DONE)), answer("b")) as fake:
        async with Chat(fake) as chat:
            await chat.ask(ASK)
            chat.client._engine._connection.answer = _nothing
            await chat.client.send(ASK)
            events = await until(chat.client, Stats)
            # Ten tokens a letter, as the first prompt had.
            assert next(e for e in events if isinstance(e, Stats)).context_used == 50 + 1


async def _nothing(body):
    from runtime.client.remote.documents import Piece

    await asyncio.sleep(0.3)
    yield Piece("x")
    yield Piece(last=True)


@pytest.mark.parametrize(
    ("models", "wanted", "chosen", "context", "note"),
    [
        ([{"id": "only", "max_model_len": 4096}], "", "only", 4096, ""),
        (["a", "b"], "", "a", 0, "offers a, b"),
        (["text-embedding-3", "b"], "", "b", 0, "--server-model"),
        (["a", {"id": "b", "decdec": {"loaded": True, "context_limit": 2048}}], "", "b", 2048, "offers a, b"),
        (["a", "b"], "b", "b", 0, ""),
        (["llama3:latest"], "llama3", "llama3:latest", 0, ""),
        (["a"], "alias", "alias", 0, "does not list alias"),
        (Reply.json({"error": "nothing here"}, 404), "named", "named", 0, ""),
    ],
)
async def test_the_model_is_chosen(models, wanted, chosen, context, note):
    with ChatServer(answer("x"), models=models) as fake:
        async with Chat(fake, wanted) as chat:
            assert (chat.loaded.model, chat.loaded.context_limit) == (chosen, context)
            assert note in chat.loaded.note
            assert bool(note) == bool(chat.loaded.note)
            await chat.ask(ASK)
            assert fake.questions()[0]["model"] == chosen


@pytest.mark.parametrize(
    ("models", "sentence"),
    [
        ([], "offers no model"),
        (Reply.json({"error": "nothing here"}, 404), "mostly ends in /v1"),
        (Reply.html(), "web page"),
        (Reply.json({"status": "ok"}), "no list of models"),
        (Reply.json({"error": "no"}, 401), "wants an API key"),
        (
            Reply((b"x" * 1000,), headers={"Content-Type": "application/json"}, cut=True),
            "was closed before everything had come",
        ),
    ],
)
async def test_a_load_that_fails_is_a_sentence_and_may_be_tried_again(models, sentence):
    with ChatServer(answer("x"), models=models) as fake:
        async with Chat(fake, load=False) as chat:
            failed = await chat.ask(Load(""), Loaded)
            assert failed.job == "load"
            assert sentence in DecdecError(failed.what, failed.why, failed.fix).sentence
            assert "no model is chosen" in (await chat.ask(ASK)).why
            fake.models = ["small"]
            assert (await chat.ask(Load(""), Loaded)).model == "small"


async def test_llama_cpp_tells_the_context_that_it_runs_with():
    entry = {"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}
    with ChatServer(models=[entry]) as fake:
        async with Chat(fake) as chat:
            assert chat.loaded.context_limit == 131072
        fake.pages["/props"] = Reply.json({"default_generation_settings": {"n_ctx": 4096}})
        async with Chat(fake) as chat:
            assert chat.loaded.context_limit == 4096


async def test_nothing_listens_there():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client = RemoteClient(Server.of(f"http://127.0.0.1:{port}"))
    await client.start()
    await client.send(Load(""))
    failed = (await until(client, Loaded))[-1]
    assert (failed.what, failed.why) == (f"127.0.0.1:{port} cannot be reached", "nothing listens there")
    await client.close()


async def test_https_to_a_server_without_it_is_named():
    with ChatServer() as fake:
        client = RemoteClient(Server.of(fake.url.replace("http://", "https://")))
        await client.start()
        await client.send(Load(""))
        assert "does not speak TLS" in (await until(client, Loaded))[-1].what
        await client.close()


async def test_what_needs_the_local_engine_says_so():
    with ChatServer() as fake:
        async with Chat(fake) as chat:
            for command, job in ((Prepare("m"), "prepare"), (Tune("m"), "tune"), (Job("doctor"), "doctor")):
                failed = await chat.ask(command)
                assert failed.job == job
                assert "local engine" in failed.why
                assert "without --server" in failed.fix


async def test_the_slider_is_accepted_and_does_nothing():
    with ChatServer(answer("x")) as fake:
        async with Chat(fake) as chat:
            stats = await chat.ask(SetSlowdown(10.0), Stats)
            assert (stats.slowdown_target_pct, stats.slowdown_measured_pct) == (0.0, None)
            await chat.ask(Generate(ASK.messages, Sampling(temperature=0.0)))
        assert "slowdown_pct" not in fake.questions()[0]


async def test_the_servers_models_can_be_listed():
    with ChatServer(models=["a", {"id": "b", "max_model_len": 64}]) as fake:
        async with Chat(fake) as chat:
            done = await chat.ask(Job("server_models"))
            assert done.result == {"models": [{"id": "a", "context": 0}, {"id": "b", "context": 64}]}


async def test_a_kill_is_reported_and_start_begins_anew():
    with ChatServer(answer("x")) as fake:
        async with Chat(fake) as chat:
            await chat.client.kill()
            assert (await until(chat.client, Failed))[-1].job == "worker"
            assert not chat.client.alive
            await chat.client.start()
            assert isinstance((await chat.all(Load(""), Loaded))[-1], Loaded)
            await chat.client.send(Quit())
            assert not chat.client.alive


async def test_close_ends_a_running_answer():
    never = threading.Event()
    with ChatServer(Reply((chunk("x"), *([0.02, chunk("more ")] * 500), never))) as fake:
        async with Chat(fake) as chat:
            await chat.all(ASK, Token)
        assert await asyncio.to_thread(fake.gone.wait, 5)


def test_commands_one_after_the_other_for_the_command_line():
    events = []
    with ChatServer(answer("Hi", "!")) as fake:
        server = Server.of(fake.url)
        done = run_job([Load(""), SetSlowdown(5.0), ASK], events.append, lambda: RemoteWorker(server))
        assert done.result["text"] == text(events) == "Hi!"
        with pytest.raises(DecdecError, match="local engine"):
            run_job(Prepare("m"), events.append, lambda: RemoteWorker(server))


def test_a_proxy_setting_that_cannot_be_used_is_a_sentence(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "nonsense://proxy")
    server = Server.of("http://gpu-box.example")
    with pytest.raises(DecdecError, match="ALL_PROXY"):
        run_job(Load(""), lambda event: None, lambda: RemoteWorker(server))


def test_this_machine_is_asked_without_a_proxy(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with ChatServer(answer("direct")) as fake:
        server = Server.of(fake.url)
        assert (
            run_job([Load(""), ASK], lambda event: None, lambda: RemoteWorker(server)).result["text"]
            == "direct"
        )
