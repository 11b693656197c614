"""`bench`: arguments that reach the worker, tables as text and as JSON, exit codes."""

import json

import pytest

from app.cli.guard import guarded
from app.cli.root import cli as root

TABLE = {
    "key": "2.3",
    "title": "Effective bits",
    "rows": [{"codec": "adaptive", "total": 4.5602, "paper total": None}],
    "notes": ["All in bits\x1b[31m per weight."],
}


@pytest.fixture
def cli(capsys):
    def call(*arguments):
        code = guarded(lambda: root.main(list(arguments), prog_name="decdec-chat", standalone_mode=False))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_tables_are_printed(cli, worker):
    names = ("tables", "int8x", "kernels", "decode")
    worker(jobs={f"bench_{name}": {"tables": [TABLE]} for name in names})
    for command in names:
        code, out, _ = cli("bench", command)
        assert code == 0
        assert "Effective bits" in out
        assert "4.56" in out
        assert "\x1b" not in out
        code, out, _ = cli("bench", command, "--json")
        assert (code, json.loads(out)["tables"]) == (0, [TABLE])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bench", "tables", "--out", __file__], "is a file"),
        (["bench", "int8x", "--model"], "--model"),
        (["bench", "nothing"], "nothing"),
    ],
)
def test_wrong_usage_is_code_2(cli, worker, arguments, words):
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_a_model_that_does_not_exist_is_a_sentence(cli, monkeypatch):
    monkeypatch.delenv("DECDEC_WORKER", raising=False)
    code, out, err = cli("bench", "tables", "--model", "./no/such/model")
    assert (code, out) == (1, "")
    assert "no/such/model" in err
    assert "Traceback" not in err
