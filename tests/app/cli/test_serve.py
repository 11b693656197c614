"""`serve` from outside: what it says while it starts, whom it lets in, and how it ends."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys

import openai
import pytest

from app.cli.serve import Console
from runtime import locations
from runtime.protocol import Failed, Loaded
from tests.app.conftest import MODEL, add_model

ROOT = __file__.rsplit("/tests/", 1)[0]
ANSWER = "The capital of France is **Paris**."


def command(*arguments):
    # A shell that starts tests in the background lets nobody hear Ctrl+C.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{listening}\nfrom app.cli.main import main\nmain()"
    return [sys.executable, "-c", code, "serve", "--port", "0", *arguments]


@contextlib.contextmanager
def serving(*arguments):
    """A running server's process, what it said until it served, and its address."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command(*arguments), text=True, cwd=ROOT, **pipes)
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("Serving "):
                break
        assert said, "it ended"
        assert said[-1].startswith("Serving "), said
        yield process, said, said[-1].split(" at ")[1].strip()
    finally:
        process.kill()
        process.communicate()


def refused(*arguments):
    """Exit code and words of a server that does not start."""
    done = subprocess.run(command(*arguments), text=True, cwd=ROOT, capture_output=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.returncode, done.stderr


def children(process):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def test_without_an_option_the_slider_is_where_the_chat_left_it(worker, model):
    locations.settings_file().parent.mkdir(parents=True, exist_ok=True)
    locations.settings_file().write_text("slowdown_pct = 2.5\n")
    with serving() as (_, said, _):
        assert "Answers take the slider at 2.5 % unless they say slowdown_pct.\n" in said


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_it_says_where_it_is_answers_and_ends_with_its_worker(worker, model, sign, code):
    worker(replies=[ANSWER], rate=100)
    with serving("--slowdown", "2.5") as (process, said, url):
        assert said[-1] == f"Serving {MODEL} at {url}\n"
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", url)
        assert any(line.startswith("Load: ") for line in said)
        with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
            done = client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "What is the capital of France?"}]
            )
            assert done.choices[0].message.content == ANSWER
            assert done.model_extra["decdec"]["slowdown_target_pct"] == 2.5
            stream = client.chat.completions.create(
                model="default", stream=True, messages=[{"role": "user", "content": "!long"}]
            )
            next(iter(stream))
            workers = children(process)
            process.send_signal(sign)
            assert process.wait(30) == code
        out, err = process.communicate()
    assert workers
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)
    assert out == ""
    assert err.strip() in ("", "Stopped.")


def test_what_is_missing_is_prepared_first(worker):
    worker("--untuned")
    with serving() as (_, said, _):
        assert said[0] == f"{MODEL} is not here yet: fetching and preparing it.\n"
        assert "Download: 92.9 MB of 92.9 MB (100 %)" in "".join(said)
        assert said[-2] == "The slider is off: not tuned on this device yet.\n"


def test_ctrl_c_while_it_loads_ends_it_and_the_worker(worker, model):
    worker(step_s=60)
    process = subprocess.Popen(command(), text=True, cwd=ROOT, stderr=subprocess.PIPE)
    assert process.stderr.readline().startswith("Load: ")
    workers = children(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.stderr.read().strip() == "Stopped."
    assert workers
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)


def test_a_port_in_use_is_one_sentence_before_anything_is_loaded(worker, model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, err = refused("--port", port)
    assert code == 1
    assert err.startswith(f"Port {port} of 127.0.0.1 cannot be used: address already in use.")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines: there is no API key."),
        (["--api-key-env", "NO_SUCH_VARIABLE"], "the variable NO_SUCH_VARIABLE is not set"),
        (["--api-key-env", "sk-key-itself"], "--api-key-env is no name of a variable."),
        (["--api-key-env", "SHORT_KEY"], "This API key cannot be used: it has fewer than 16 characters."),
        (["--api-key-env", "X", "--api-key-file", "pyproject.toml"], "give one of"),
        (["--allow-origin", "localhost"], "'localhost' is no origin"),
        (["--base", "awq9"], "not possible"),
        (["--slowdown", "30"], "30"),
    ],
)
def test_wrong_usage_is_refused(worker, model, monkeypatch, arguments, words):
    monkeypatch.setenv("SHORT_KEY", "secret")
    code, err = refused(*arguments)
    assert code == 2
    assert words in err
    assert "sk-key-itself" not in err
    assert "secret\n" not in err


def test_a_model_that_cannot_be_loaded_ends_it_with_a_sentence(worker, model):
    worker(broken=[MODEL])
    code, err = refused()
    assert (code, err) == (1, "The model cannot be loaded: it needs 900 GB.\n")


@pytest.mark.parametrize("how", ["file", "env"])
def test_a_key_opens_it_to_other_machines(worker, model, tmp_path, monkeypatch, how):
    key = "sk-local-of-the-tests-1"
    (tmp_path / "key").write_text(f"{key}\nnot this\n")
    monkeypatch.setenv("SERVE_KEY", f"{key}\n")
    given = {"file": ["--api-key-file", str(tmp_path / "key")], "env": ["--api-key-env", "SERVE_KEY"]}[how]
    with serving("--host", "0.0.0.0", *given) as (_, said, url):
        assert key not in "".join(said)
        local = url.replace("0.0.0.0", "127.0.0.1")
        with openai.OpenAI(base_url=local, api_key=key, max_retries=0) as client:
            assert [each.id for each in client.models.list().data] == [MODEL]
        with (
            openai.OpenAI(base_url=local, api_key="other", max_retries=0) as client,
            pytest.raises(openai.AuthenticationError),
        ):
            client.models.list()


def test_another_model_than_the_default_is_served(worker, model):
    add_model("mine")
    with serving("-m", "mine", "--insecure-no-key") as (_, said, _):
        assert said[-1].startswith("Serving mine at ")


def test_notes_and_ends_of_the_engine_are_lines_without_control_characters(capsys):
    console = Console()
    for _ in range(2):
        console(Loaded("m", "awq4", "CPU", 64, 1, note="Some \x1b[31mblocks\nstay"))
    console(Failed("worker", "The engine's process ended", "it was ended by SIGKILL", "try again"))
    assert capsys.readouterr().err == (
        "Some ␛[31mblocks stay\nThe engine's process ended: it was ended by SIGKILL. It is started again.\n"
    )
