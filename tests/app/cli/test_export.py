"""`export`: what the worker is asked for, and what is printed."""

import json

import pytest

from app.cli import export as module
from app.cli.guard import guarded
from app.cli.root import cli as root
from tests.app.conftest import MODEL

RESULT = {
    "model": "small",
    "folder": "/models/out\x1b[31m",
    "files": ["model.safetensors"],
    "format": "compressed-tensors, pack-quantized",
    "bytes": 173_441_088,
    "notes": ["180 matrices are INT8.", "Rounded to bfloat16: the embedding."],
}


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked = []

    def job(name, **args):
        asked.append((name, args))
        return json.loads(json.dumps(RESULT))

    monkeypatch.setattr(module.work, "job", job)

    def call(*arguments):
        code = guarded(lambda: root.main(["export", *arguments], "decdec-chat", standalone_mode=False))
        captured = capsys.readouterr()
        return code, captured.out, captured.err, asked

    return call


def test_one_place_is_the_destination_of_the_default_model(cli, tmp_path):
    code, _, _, asked = cli("out")
    assert code == 0
    assert asked == [
        (
            "export",
            {"model": None, "destination": str(tmp_path / "out"), "format": "compressed-tensors"},
        )
    ]


def test_a_model_by_name_and_an_int8x_folder_by_its_whole_path(cli, tmp_path):
    cli("small", "../out")
    (tmp_path / "folder").mkdir()
    _, _, _, asked = cli("folder", "out")
    assert [args["model"] for _, args in asked] == ["small", str(tmp_path / "folder")]
    assert asked[0][1]["destination"] == str(tmp_path.parent / "out")


def test_facts_notes_and_the_command_that_serves_it(cli):
    code, out, _, _ = cli("out")
    assert code == 0
    assert out.splitlines()[0].startswith("small is in /models/out")
    assert out.splitlines()[0].endswith(": one file, 173 MB.")
    assert out.splitlines()[1:3] == RESULT["notes"]
    assert out.splitlines()[3].startswith("Serve it with: vllm serve '/models/out")
    assert "\x1b" not in out


def test_json_is_the_job_s_result(cli):
    code, out, _, _ = cli("small", "out", "--json")
    assert (code, json.loads(out)) == (0, RESULT)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "Missing argument"),
        (("a", "b", "c"), "not 3 arguments"),
        (("a", "b", "--format", "gguf"), "'gguf' is not"),
    ],
)
def test_wrong_usage(cli, arguments, why):
    code, _, err, asked = cli(*arguments)
    assert (code, asked) == (2, [])
    assert why in err


def test_a_prepared_model_alone_is_no_destination(cli, model):
    code, _, err, asked = cli(MODEL)
    assert (code, asked) == (2, [])
    assert f"decdec-chat export {MODEL} DST" in err
