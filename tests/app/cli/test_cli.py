"""The command line from outside: what is on stdout, what on stderr, and the exit code."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from app.cli.main import main
from runtime import store
from tests.app.conftest import MODEL, add_model

ROOT = __file__.rsplit("/tests/", 1)[0]
ANSWER = "The capital of France is **Paris**."


def start(*arguments, **options):
    command = [sys.executable, "-m", "app.cli.main", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, cwd=ROOT, **{**pipes, **options})


def cli(*arguments, stdin=""):
    process = start(*arguments)
    out, err = process.communicate(stdin, timeout=30)
    assert "Traceback" not in err
    assert "\x1b" not in err
    return process.returncode, out, err


def test_help_is_instant_and_loads_no_engine():
    code = (
        "import sys, runpy; sys.argv = ['x', '--help']\n"
        "try: runpy.run_module('app.cli.main', run_name='__main__')\n"
        "except SystemExit as e: assert e.code == 0\n"
        "heavy = {'torch', 'transformers', 'numpy', 'textual', 'runtime.client', 'huggingface_hub', 'rich'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "import time; print(time.process_time(), file=sys.stderr)"
    )
    best = float("inf")
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        # Of the processor, interpreter included: what other programs take meanwhile does not count.
        best = min(best, float(done.stderr.split()[-1]))
    assert "eval" in done.stdout
    assert best < 0.3


def test_a_piped_question_is_answered_with_all_defaults(worker):
    worker("--untuned", replies=[ANSWER])
    code, out, err = cli(stdin="What is the capital of France?\n")
    assert (code, out) == (0, ANSWER + "\n")
    steps = [line.split(":")[0] for line in err.splitlines()]
    assert list(dict.fromkeys(s for s in steps if s in ("Download", "Encode INT8-X", "Tune", "Load"))) == [
        "Download", "Encode INT8-X", "Load", "Tune",
    ]  # fmt: skip
    assert "92.9 MB of 92.9 MB (100 %)" in err


def test_a_prepared_and_tuned_model_answers_at_once(worker, model):
    worker(replies=[ANSWER])
    code, out, err = cli(stdin="q")
    assert (code, out) == (0, ANSWER + "\n")
    assert "Download" not in err
    assert "Tune" not in err


def test_run_json_is_one_document_with_the_promised_keys(worker, model):
    worker(replies=["Hi there."])
    code, out, _ = cli("run", "--json", "--max-tokens", "1", "--seed", "3", "--slowdown", "5", "hello")
    result = json.loads(out)
    assert code == 0
    assert list(result) == [
        "text", "model", "device", "finish_reason", "prompt_tokens", "completion_tokens", "prefill_s",
        "decode_tokens_per_s", "slowdown_target_pct", "slowdown_measured_pct", "k_chunk",
    ]  # fmt: skip
    assert (result["text"], result["finish_reason"]) == ("Hi t", "length")
    assert result["slowdown_target_pct"] == 5.0
    assert list(result["k_chunk"]) == ["qkv", "o", "gate_up", "down"]


LOADING = ["--context", "64", "--kv-bits", "8", "--no-prompt-correction"]
NOTE = "context {load.context}, {load.kv_bits} bits, prompt {load.prompt_correction}"


@pytest.mark.parametrize("arguments", [["run", *LOADING, "q"], LOADING])
def test_options_of_loading_reach_the_engine_and_its_note_is_told(worker, model, arguments):
    worker(note=NOTE)
    code, _, err = cli(*arguments, stdin="hello")
    assert code == 0
    assert "context 64, 8 bits, prompt False" in err.splitlines()


def test_without_options_of_loading_the_engine_chooses(worker, model):
    worker(note=NOTE)
    assert "context None, 16 bits, prompt True" in cli("run", "hello")[2]


def test_prompt_and_stdin_are_joined(worker, model):
    worker()
    _, out, _ = cli("run", "--json", "summarise", stdin="a long text " * 50)
    assert json.loads(out)["prompt_tokens"] > 100


def test_run_prepares_a_model_that_is_not_there(worker):
    worker(replies=["Hi."])
    code, out, err = cli("run", "-m", "smollm2-360m-instruct", "hello")
    assert (code, out) == (0, "Hi.\n")
    assert "SmolLM2-360M-Instruct is not here yet" in err


def test_run_says_what_is_wrong_with_a_model_before_it_makes_it_again(worker, model):
    (store.find(model).path / "weights.bin").unlink()
    code, _, err = cli("run", "hello")
    assert code == 0
    assert err.startswith(f"{model} is damaged: making it again.\n")


def test_run_goes_on_with_a_half_made_model(worker):
    with store.building(MODEL) as staging:
        (staging / "weights.bin").write_bytes(b"x")
    code, _, err = cli("run", "hello")
    assert code == 0
    assert err.startswith(f"{MODEL} is half made: going on with it.\n")


def test_a_pipe_gets_an_answer_as_it_is(worker, model):
    worker(replies=["a\x1b[31mb\u2028"], note="Some \x1b[31mnote")
    _, out, err = cli("run", "hello")
    assert out == "a\x1b[31mb\u2028\n"
    assert "Some ␛[31mnote" in err
    _, out, _ = cli("run", "--json", "hello")
    assert "\x1b" not in out
    assert "\u2028" not in out
    assert json.loads(out)["text"] == "a\x1b[31mb\u2028"


def test_a_slowdown_tunes_first_where_it_must(worker, model):
    worker("--untuned")
    code, _, err = cli("run", "--slowdown", "5", "hello")
    assert code == 0
    assert "Tuning SmolLM2-135M-Instruct: not tuned on this device yet." in err


def test_models_and_rm(model):
    add_model("other")
    code, out, _ = cli("models", "--json")
    listed = json.loads(out)
    assert code == 0
    assert listed["default"] == MODEL
    assert [m["name"] for m in listed["models"]] == ["other", MODEL]
    assert set(listed["models"][0]) == {"name", "state", "bytes", "source", "bits_per_weight"}
    code, out, _ = cli("rm", "other")
    assert code == 0
    assert "free again" in out
    assert [m["name"] for m in json.loads(cli("models", "--json")[1])["models"]] == [MODEL]


def test_tune_json(worker, model):
    code, out, _ = cli("tune", "--json")
    assert code == 0
    assert {"model", "device", "base_us", "n_tb", "path", "detents"} <= set(json.loads(out))


PART = {
    "weights": 331776,
    "share": {"plane": 0.55, "byte": 0.1, "8": 0.35},
    "mean_widths": {"plane": 4.25, "short": 3.0},
    "bits_per_weight": 6.439,
    "entropy_bits_per_weight": 5.2,
    "huffman_bits_per_weight": 5.3,
}
GROUP = {**PART, "tensors": 30, "codecs": {"adaptive": 28, "raw": 2}}
INSPECTED = {
    "model": MODEL,
    "format_version": 2,
    "quality": "balanced",
    "tensors": [
        {
            **PART,
            "name": "model.layers.0.q",
            "kind": "q",
            "codec": "bitmap",
            "levels": [3, 8],
            "granularity": "row",
        }
    ],
    "kinds": [{**GROUP, "kind": "q"}],
    "decoder_linears": {**GROUP, "kind": "decoder_linears"},
    "total": {**GROUP, "kind": "total"},
}


def test_jobs_get_their_arguments(worker, model, tmp_path):
    rows = [{"base": "rtn", "bits": 3, "k_chunk": 8, "select": "bucket", "ppl": 72.7}]
    worker(
        jobs={
            "eval_ppl": {"model": MODEL, "text": "t", "tokens": 9, "rows": rows},
            "int8x_verify": {"lossless": True, "tensors": 210, "mismatches": 0},
            "int8x_inspect": INSPECTED,
            "int8x_encode": {"quant_method": "int8x"},
            "doctor": {"devices": [{"name": "cpu", "usable": True}]},
        }
    )
    text = tmp_path / "t.txt"
    text.write_text("words")
    code, out, _ = cli("eval", "ppl", "--text", str(text), "--bits", "3", "--k-chunk", "0,8", "--json")
    assert code == 0
    assert json.loads(out)["rows"] == rows
    assert "72.7" in cli("eval", "ppl", "--text", str(text))[1]
    code, out, _ = cli("int8x", "verify", "--json")
    assert (code, json.loads(out)["lossless"]) == (0, True)
    by_kind, by_tensor = cli("int8x", "inspect")[1], cli("int8x", "inspect", "--tensors")[1]
    assert "plane 55.0 / byte 10.0 / 8 bit 35.0 %" in by_kind
    assert "4.25 / 3.00" in by_kind
    assert "adaptive × 28, raw × 2" in by_kind
    assert "6.439" in by_kind
    assert "quality: balanced" in by_kind
    assert "model.layers.0.q" in by_tensor
    assert "bitmap (3,8) per row" in by_tensor
    assert cli("int8x", "encode", MODEL, str(tmp_path / "dst"))[0] == 0
    assert "✓ cpu" in cli("doctor")[1]


def test_a_mismatch_is_a_failure(worker, model):
    worker(jobs={"int8x_verify": {"lossless": False, "mismatches": 3}})
    assert cli("int8x", "verify")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "-m", "smollm2-135m-instrct", "x"], 1, f"{MODEL}"),
        (["rm", "nothing-like-it"], 1, "nothing-like-it"),
        (["pull", ""], 1, "There is no model ''"),
        (["int8x", "verify"], 1, "There is no local model"),
        (["run"], 2, "nothing to answer"),
        (["run", "--slowdown", "21", "x"], 2, "slowdown"),
        (["eval", "ppl", "--text", "/nonexistent"], 2, "/nonexistent"),
        (["eval", "ppl", "--text", __file__, "--k-chunk", "1,x"], 2, "0,8,32"),
        (["import", "/nonexistent"], 2, "/nonexistent"),
        (["int8x", "encode", "a", "b", "--levels", "3,x"], 2, "3,5,8"),
        (["int8x", "encode", "a", "b", "--codec", "zip"], 2, "adaptive"),
        (["int8x", "encode", "a", "b", "--bits", "4", "--kl", "0.1"], 2, "one of"),
        (["int8x", "encode", "a", "b", "--bits", "0.3"], 2, "between 1.5 and 8"),
        (["int8x", "encode", "a", "b", "--preset", "small", "--scale", "row"], 2, "--preset and --scale"),
        (["pull", "a", "--size", "large"], 2, "1.2GB"),
        (["eval", "ppl", "--text", __file__, "--base", "rtn", "--kl", "0.1"], 2, "int8x"),
        (["eval", "ppl", "--text", __file__, "--base", "int8x", "--bits", "4", "--kl", "0.1"], 2, "one of"),
        (["eval", "ppl", "--text", __file__, "--base", "awq7"], 2, "3 to 4 bits"),
        (["eval", "ppl", "--text", __file__, "--select", "best"], 2, "bucket"),
        (["eval", "ppl", "--text", __file__, "--residual-bits", "4,5"], 2, "exact"),
        (["eval", "ppl", "--text", __file__, "--bits", "3,x"], 2, "3,3.5"),
        (["no-such-command"], 2, "no-such-command"),
        (["run", "--kv-bits", "4", "q"], 2, "16"),
        (["run", "--context", "1", "q"], 2, "context"),
        (["--context", "64", "models"], 2, "run --context"),
    ],
)
def test_bad_input_is_a_sentence(worker, arguments, code, words):
    returned, out, err = cli(*arguments)
    assert (returned, out) == (code, "")
    assert words in err


def test_failures_of_the_engine_are_sentences(worker, model):
    worker("--fail", "generate")
    code, _, err = cli("run", "hi")
    assert code == 1
    assert err.splitlines()[-1] == "It failed: the script says so. Change the script."
    worker("--crash", "generate")
    code, _, err = cli("run", "hi")
    assert code == 1
    assert err.splitlines()[-1].startswith("The engine's process ended")


def test_the_unexpected_is_a_sentence_and_a_log(home, monkeypatch, capsys):
    from app.cli.guard import guarded

    def broken():
        raise RuntimeError("two\nlines")

    assert guarded(broken) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "two lines" in err
    assert "RuntimeError" in (home / "logs" / "decdec-chat.log").read_text()


def test_ctrl_c_during_an_answer_keeps_the_text_and_exits_130(worker, model):
    worker(rate=50)
    process = start("run", "!long", stdin=subprocess.DEVNULL)
    assert process.stdout.read(20).startswith("word0")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out.endswith("\n")
    assert "Traceback" not in err


def test_ctrl_c_during_preparation(worker):
    worker(step_s=5, ticks=50)
    process = start("pull", MODEL, stdin=subprocess.DEVNULL)
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "continues where this one stopped" in err.splitlines()[-1]


def test_a_reader_that_leaves_is_no_error_message(worker, model):
    worker(rate=200)
    read, write = os.pipe()
    process = start("run", "!long", stdin=subprocess.DEVNULL, stdout=write)
    os.close(write)
    os.read(read, 5)
    os.close(read)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "Broken" not in err
    assert "Traceback" not in err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_empty_ones(model, closed):
    done = subprocess.run(
        f"{sys.executable} -m app.cli.main models {closed}",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_an_output_that_cannot_be_written_is_a_sentence(model):
    with open("/dev/full", "w") as full:
        process = start("models", stdout=full)
        err = process.communicate(timeout=30)[1]
    assert (process.returncode, err) == (1, "The output cannot be used: No space left on device.\n")


def test_ctrl_c_while_modules_load_is_silent():
    code = (
        "import sys, app.cli.main\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'app.cli.root': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting()); sys.argv = ['x', 'models']; app.cli.main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")


def test_names_from_outside_cannot_drive_the_terminal(home, monkeypatch, capsys):
    add_model("tame", source="folder /tmp/\x07red")
    for arguments in (["models"], ["rm", "\x07red"], ["pull", "/\x07red"]):
        monkeypatch.setattr(sys, "argv", ["decdec-chat", *arguments])
        with pytest.raises(SystemExit):
            main()
    shown = "".join(capsys.readouterr())
    assert "red" in shown
    assert "\x07" not in shown


def test_a_device_that_is_not_known_is_told_before_anything_is_fetched(worker, monkeypatch):
    monkeypatch.setenv("DECDEC_DEVICE", "banana")
    code, out, err = cli("run", "x")
    assert (code, out) == (1, "")
    assert "banana" in err
    assert "not here yet" not in err


@pytest.mark.parametrize("command", [[], ["run", "hi"], ["models"], ["doctor"], ["settings"]])
def test_a_folder_of_models_whose_disk_is_not_there_is_a_sentence(worker, home, tmp_path, command):
    home.mkdir()
    (home / "settings.toml").write_text(f'cache_folder = "{tmp_path}/disk/big"\n')
    code, _, err = cli(*command, stdin="hi")
    assert code == (0 if command == ["settings"] else 1)
    assert ("is not there. Mount its disk" in err) is (command != ["settings"])
    assert not (tmp_path / "disk").exists()


def test_a_prepared_model_of_a_hub_is_answered_without_asking_the_hub(worker, monkeypatch):
    worker(replies=["Hi."])
    add_model("o--m")
    with socket.create_server(("127.0.0.1", 0)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.getsockname()[1]}")
        code, out, err = cli("run", "-m", "o/m", "hello")
        hub.settimeout(0)
        with pytest.raises(BlockingIOError):
            hub.accept()
    assert (code, out) == (0, "Hi.\n")
    assert "fetching" not in err
