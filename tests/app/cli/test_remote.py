"""`--server`: another engine behind the same commands, as it looks from outside."""

import json
import signal
import subprocess
import threading

import pytest
from click.testing import CliRunner

from app.cli.root import cli as root
from tests.app.cli.test_cli import cli, start
from tests.fakes.chat_server import ChatServer, Reply, answer, chunk


def usage(*arguments):
    done = CliRunner().invoke(root, list(arguments), input="hello")
    assert done.exit_code == 2
    return done.output


def test_a_server_answers_run_and_stdin(home):
    with ChatServer(answer("Hel", "lo"), models=["a", "b"]) as fake:
        code, out, err = cli("run", "--server", fake.url, "--server-model", "b", "--temperature", "0", "hi")
        assert (code, out, err) == (0, "Hello\n", "")
        code, out, err = cli("--server", fake.host, stdin="piped")
        assert (code, out) == (0, "Hello\n")
        assert f"{fake.host} offers a, b" in err
        first, second = fake.questions()
    assert (first["model"], first["temperature"]) == ("b", 0)
    assert first["messages"] == [{"role": "user", "content": "hi"}]
    assert (second["model"], second["messages"][0]["content"]) == ("a", "piped")
    assert not (home / "models").exists()


def test_the_document_has_the_same_keys():
    with ChatServer(answer("Hi")) as fake:
        code, out, _ = cli("run", "--json", "--server", fake.url, "--max-tokens", "5", "hello")
        assert fake.questions()[0]["max_tokens"] == 5
    result = json.loads(out)
    assert code == 0
    assert list(result) == [
        "text", "model", "device", "finish_reason", "prompt_tokens", "completion_tokens", "prefill_s",
        "decode_tokens_per_s", "slowdown_target_pct", "slowdown_measured_pct", "k_chunk",
    ]  # fmt: skip
    assert (result["text"], result["model"], result["device"]) == ("Hi", "small", f"server {fake.host}")


def test_a_failure_is_one_sentence_below_the_text_that_came():
    with ChatServer(Reply((chunk("Half an \x1b[31m"),), cut=True)) as fake:
        code, out, err = cli("run", "--server", fake.url, "hello")
    assert (code, out) == (1, "Half an \x1b[31m\n")
    assert err.startswith(f"The connection to {fake.host} broke: ")
    assert err.count("\n") == 1


def test_a_server_that_is_not_there_is_one_sentence():
    with ChatServer() as fake:
        pass
    code, out, err = cli("run", "--server", fake.url, "hello")
    assert (code, out) == (1, "")
    assert f"{fake.host} cannot be reached: nothing listens there. Start the server" in err


def test_the_key_of_a_variable_is_sent_and_shows_nowhere(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-verysecret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-default")
    with ChatServer(Reply.json({"error": {"message": "bad key sk-verysecret"}}, 401)) as fake:
        code, out, err = cli("run", "--server", fake.url, "--api-key-env", "MY_KEY", "hello")
        assert code == 1
        assert "MY_KEY" in err
        assert "verysecret" not in out + err
        cli("--server", fake.url, "--api-key-env", stdin="hello")
        cli("run", "--server", fake.url, "hello")
        keys = [r.headers.get("Authorization") for r in fake.requests if r.method == "POST"]
    assert keys == ["Bearer sk-verysecret", "Bearer sk-default", None]


def test_ctrl_c_ends_the_answer_with_what_is_there():
    never = threading.Event()
    with ChatServer(Reply((chunk("one "), *([0.05, chunk("more ")] * 200), never))) as fake:
        process = start("run", "--server", fake.url, "hello", stdin=subprocess.DEVNULL)
        assert process.stdout.read(4) == "one "
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert fake.gone.wait(5)
    assert process.returncode == 130
    assert out.endswith("\n")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "--server-model", "m", "hi"], "--server-model needs --server URL"),
        (["run", "--api-key-env", "K", "hi"], "--api-key-env needs --server URL"),
        (["run", "--server", "http://h", "-m", "m", "hi"], "--model belongs to the local engine"),
        (["run", "--server", "http://h", "--base", "awq3", "hi"], "--base belongs to the local engine"),
        (["run", "--server", "http://h", "--slowdown", "5", "hi"], "--slowdown belongs to the local engine"),
        (["run", "--server", "http://h", "--kv-bits", "8", "hi"], "--kv-bits belongs to the local engine"),
        (["--server", "http://h", "--context", "64"], "--context belongs to the local engine"),
        (["--server", "http://h", "run", "hi"], "go behind the command"),
    ],
)
def test_options_that_a_server_would_not_obey_are_refused(arguments, sentence):
    assert sentence in usage(*arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--server", "ftp://h"], "no http or https address"),
        (["--server", "http://user:hunter2@h"], "it holds a password"),
        (["--server", "http://h", "--api-key-env", "sk-hunter2"], "no name of a variable"),
        (["--server", "http://h", "--api-key-env", "NOT_THERE"], "The variable NOT_THERE is not set"),
    ],
)
def test_addresses_and_keys_that_cannot_be_used(arguments, sentence):
    code, out, err = cli("run", *arguments, "hi")
    assert code in (1, 2)
    assert out == ""
    assert sentence.lower() in err.lower()
    assert "hunter2" not in err
