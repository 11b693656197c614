"""`eval bbh`, `mt-bench` and `judge`: arguments that reach the worker, files, exit codes."""

import json

import pytest

from app.cli.guard import guarded
from app.cli.root import cli as root
from app.cli.tasks import _default_file, _table

BBH = {
    "model": "m",
    "tasks": [
        {"task": "navigate", "questions": 2, "right": 1, "accuracy": 0.5, "announced": 2, "too_long": 0}
    ],
    "accuracy": 0.5,
    "questions": 2,
    "out": "answers.jsonl",
}
JUDGED = {
    "model": "m",
    "score": 4.5,
    "turns": [5.0, 4.0],
    "categories": [{"category": "math", "first": 4.25}],
}


@pytest.fixture
def cli(capsys):
    def call(*arguments):
        code = guarded(lambda: root.main(list(arguments), prog_name="decdec-chat", standalone_mode=False))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def files(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "answers.jsonl").write_text("{}\n")
    return tmp_path


def test_results_are_printed_and_are_json(cli, worker, model, files):
    worker(jobs={"eval_bbh": BBH, "eval_mt_bench": {"model_id": "m-awq4"}, "eval_judge": JUDGED})
    data = ("--data", str(files / "data"))
    assert "50.0 %" in cli("eval", "bbh", *data)[1]
    code, out, _ = cli("eval", "bbh", *data, "--k-chunk", "8", "--json")
    assert (code, json.loads(out)) == (0, BBH)
    assert "m-awq4" in cli("eval", "mt-bench", *data, "--out", str(files / "new.jsonl"))[1]
    judge = (
        "eval",
        "judge",
        str(files / "answers.jsonl"),
        *data,
        "--endpoint",
        "http://x/v1",
        "--judge-model",
        "j",
    )
    assert "4.25" in cli(*judge)[1]
    assert json.loads(cli(*judge, "--json")[1]) == JUDGED


def test_a_table_is_one_number_or_four():
    assert _table([8], None) == {"qkv": 8, "o": 8, "gate_up": 8, "down": 8}
    assert _table([1, 2, 3, 4], None) == {"qkv": 1, "o": 2, "gate_up": 3, "down": 4}
    assert _table(None, 5.0) is None


def test_every_position_has_a_file_of_its_own(home):
    wishes = [
        ({"base": "awq4", "k_chunk": None, "slowdown": None}, {"shots": "cot"}),
        ({"base": "awq3", "k_chunk": None, "slowdown": None}, {"shots": "cot"}),
        ({"base": "awq4", "k_chunk": {"qkv": 8}, "slowdown": None}, {"shots": "cot"}),
        ({"base": "awq4", "k_chunk": None, "slowdown": 2.5}, {"shots": "cot"}),
        ({"base": "awq4", "k_chunk": None, "slowdown": None}, {"shots": "none"}),
        ({"base": "awq4", "k_chunk": None, "slowdown": None}, {"shots": "cot", "max_tokens": 9}),
    ]
    found = {_default_file("bbh", "m", position, wish) for position, wish in wishes}
    assert len(found) == len(wishes)
    assert {path.parent for path in found} == {home / "evaluations"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bbh", "--data", "/nowhere"], "/nowhere"),
        (["bbh", "--data", ".", "--k-chunk", "1,2"], "one number, or four"),
        (["bbh", "--data", ".", "--k-chunk", "8", "--slowdown", "5"], "one of"),
        (["bbh", "--data", ".", "--base", "awq9"], "awq"),
        (["mt-bench", "--data", "."], "--out"),
        (["judge", "/nowhere.jsonl", "--data", "."], "nowhere"),
        (["judge", __file__, "--data", ".", "--judge-model", "x"], "--endpoint"),
    ],
)
def test_wrong_usage_is_code_2(cli, worker, model, arguments, words):
    code, out, err = cli("eval", *arguments)
    assert (code, out) == (2, "")
    assert words in err
