"""MT-Bench answers in FastChat's form."""

import json
from types import SimpleNamespace

import pytest

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.protocol import KChunk, Loaded
from runtime.tasks import asking
from runtime.tasks.asking import Answered
from runtime.tasks.mt_bench import mt_bench

CATEGORIES = ["writing", "writing", "math", "math", "stem", "else"]


@pytest.fixture
def data(tmp_path):
    lines = [
        json.dumps({"question_id": 81 + i, "category": c, "turns": [f"first {i}", f"second {i}"], "more": 1})
        for i, c in enumerate(CATEGORIES)
    ]
    (tmp_path / "question.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def chats(monkeypatch):
    """What the model was asked: (contents, temperature, max_tokens) of each answer."""
    asked = []

    class Model:
        def __init__(self, found, ctx):
            pass

        def answer(self, messages, sampling, max_tokens):
            asked.append(([m.content for m in messages], sampling.temperature, max_tokens))
            return Answered(f" answer {len(asked)}\n", 3, "stop")

    slider = SimpleNamespace(slider=lambda: SimpleNamespace(k_chunk=KChunk(32, 32, 32, 32)))
    found = SimpleNamespace(engine=slider, loaded=Loaded("m", "awq3", "cpu", 512, 1), folder=None)
    monkeypatch.setattr(asking, "load", lambda position, ctx: found)
    monkeypatch.setattr("runtime.tasks.mt_bench.asking.Chatter", Model)
    return asked


def run(data, out, **args):
    return mt_bench({"data": str(data), "out": str(out), "model": "m", **args}, JobContext.silent())


def test_both_turns_are_asked_with_the_category_s_temperature(data, tmp_path, chats):
    out = tmp_path / "answers.jsonl"
    result = run(data, out)
    assert chats[0] == (["first 0"], 0.7, 1024)
    assert chats[1] == (["first 0", "answer 1", "second 0"], 0.7, 1024)
    assert [temperature for _, temperature, _ in chats[::2]] == [0.7, 0.7, 0.0, 0.0, 0.1, 0.7]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines[2]["choices"] == [{"index": 0, "turns": ["answer 5", "answer 6"]}]
    assert {line["model_id"] for line in lines} == {"m-awq3-k32"}
    assert [line["question_id"] for line in lines] == list(range(81, 87))
    assert len({line["answer_id"] for line in lines}) == 6
    assert result == {"model_id": "m-awq3-k32", "questions": 6, "answered": 6, "out": str(out)}


def test_a_limit_takes_questions_of_all_categories_and_the_rest_comes_later(data, tmp_path, chats):
    out = tmp_path / "answers.jsonl"
    run(data, out, limit=3, max_tokens=7)
    assert [(contents[0], tokens) for contents, _, tokens in chats[::2]] == [
        ("first 0", 7),
        ("first 2", 7),
        ("first 4", 7),
    ]
    chats.clear()
    run(data, out)
    assert [contents[0] for contents, _, _ in chats[::2]] == ["first 1", "first 3", "first 5"]


def test_answers_of_another_model_are_not_continued(data, tmp_path, chats):
    out = tmp_path / "answers.jsonl"
    run(data, out, limit=1)
    out.write_text(out.read_text().replace("m-awq3-k32", "other"))
    with pytest.raises(DecdecError, match="it answers for other, not for m-awq3-k32"):
        run(data, out)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"question_id": 1, "category": "math", "turns": ["one"]}', "2 turns"),
        ('{"question_id": 1, "turns": ["one", "two"]}', "line 1"),
        ("", "2 turns"),
        ('{"question_id": 1, "category": "a", "turns": ["x", "y"]}\n' * 2, "twice"),
    ],
)
def test_damaged_questions_are_refused(data, tmp_path, chats, content, words):
    (data / "question.jsonl").write_text(content)
    with pytest.raises(DecdecError, match=words):
        run(data, tmp_path / "answers.jsonl")
