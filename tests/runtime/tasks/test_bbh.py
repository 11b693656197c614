"""BIG-Bench Hard: the folder, what counts as an answer, and a run that goes on where it stopped."""

import json
from types import SimpleNamespace

import msgspec
import pytest

from runtime.errors import DecdecError, Interrupted
from runtime.progress import JobContext
from runtime.protocol import KChunk, Loaded
from runtime.tasks import asking
from runtime.tasks.asking import Answered, Position
from runtime.tasks.bbh import bbh
from runtime.tasks.bbh_answers import extract, is_right
from runtime.tasks.bbh_data import read_tasks

PROMPT = "A warning.\n-----\nSay yes or no.\n\nQ: One?\nA: Let's think step by step.\nSo the answer is No.\n"


def write(folder, name, examples, prompt=PROMPT):
    (folder / "bbh").mkdir(exist_ok=True)
    (folder / "cot-prompts").mkdir(exist_ok=True)
    (folder / "bbh" / f"{name}.json").write_text(json.dumps({"canary": "x", "examples": examples}))
    (folder / "cot-prompts" / f"{name}.txt").write_text(prompt)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    write(folder, "navigate", [{"input": f"Go {i}?", "target": "Yes"} for i in range(3)])
    write(folder, "snarks", [{"input": "Which?\nOptions:\n(A) a\n(B) b", "target": "(B)"}])
    return folder


@pytest.mark.parametrize(
    ("text", "answer", "announced"),
    [
        ("Left, then right. So the answer is Yes.", "Yes", True),
        ("The answer is No. But then the answer is\n Yes.\nQ: more", "Yes", True),
        ("We sort. So the answer is apple bear cat", "apple bear cat", True),
        ("So the answer is ] ) }.", "] ) }", True),
        ("(4 + 5) = 9. So the answer is -3.5.", "-3.5", True),
        ("I think Yes", "I think Yes", False),
        ("So the answer is", "", True),
        ("", "", False),
    ],
)
def test_the_answer_is_what_the_examples_announce(text, answer, announced):
    assert extract(text) == (answer, announced)


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [
        ("Yes", "Yes", True),
        ("yes", "Yes", False),
        ("(B)", "(B)", True),
        ("(B) the second, not (A)", "(B)", True),
        ("(A) or (B)", "(B)", False),
        ("B", "(B)", True),
        ("the second", "(B)", False),
        ("12", "2", False),
    ],
)
def test_right_is_an_exact_match_or_the_first_option(answer, target, right):
    assert is_right(answer, target) is right


def test_prompts_hold_examples_or_the_first_paragraph(data):
    (task,) = read_tasks(data, ["navigate"])
    cot, none = (task.prompt(task.questions[0], shots) for shots in ("cot", "none"))
    assert cot == (
        "Say yes or no.\n\nQ: One?\nA: Let's think step by step.\nSo the answer is No.\n\n"
        "Q: Go 0?\nA: Let's think step by step."
    )
    assert none == "Say yes or no.\n\nQ: Go 0?\nA: Let's think step by step."


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bbh/snarks.json", b"[1, 2]", "object"),
        ("bbh/snarks.json", b'{"examples": [{"input": 3, "target": "a"}]}', "input"),
        ("bbh/snarks.json", b'{"examples": []}', "0 examples"),
        ("bbh/snarks.json", b"\xff\xfe", "UTF-8"),
        ("cot-prompts/snarks.txt", None, "no such file"),
    ],
)
def test_a_damaged_folder_is_refused_with_the_file_and_the_reason(data, name, content, words):
    (data / name).unlink() if content is None else (data / name).write_bytes(content)
    with pytest.raises(DecdecError, match=words) as caught:
        read_tasks(data)
    assert "snarks" in caught.value.sentence


def test_no_tasks_and_unknown_tasks_are_refused(data, tmp_path):
    with pytest.raises(DecdecError, match="bbh folder"):
        read_tasks(tmp_path / "nowhere")
    with pytest.raises(DecdecError, match="navigate, snarks"):
        read_tasks(data, ["../snarks"])


class Model:
    """Says what it is told to, question after question; remembers the prompts."""

    def __init__(self, replies):
        self.replies, self.prompts = iter(replies), []

    def complete(self, text, stops, max_tokens):
        self.prompts.append(text)
        return next(self.replies)


@pytest.fixture
def play(monkeypatch):
    def use(*replies):
        model = Model(replies)
        slider = SimpleNamespace(slider=lambda: SimpleNamespace(k_chunk=KChunk(8, 8, 8, 8)))
        found = SimpleNamespace(engine=slider, loaded=Loaded("m", "awq4", "cpu", 512, 1), folder=None)
        monkeypatch.setattr(asking, "load", lambda position, ctx: found)
        monkeypatch.setattr(asking, "Completer", lambda found, ctx: model)
        return model

    return use


def said(text):
    return Answered(f"So the answer is {text}.", 5, "stop")


def test_accuracy_by_task_and_mean(data, tmp_path, play):
    play(said("Yes"), said("No"), Answered("", 0, None), said("(B)"))
    args = {"data": str(data), "out": str(tmp_path / "out.jsonl"), "model": "m"}
    result = bbh(args, JobContext.silent())
    tasks = [(task["task"], task["right"], task["questions"]) for task in result["tasks"]]
    assert tasks == [("navigate", 1, 3), ("snarks", 1, 1)]
    assert result["accuracy"] == pytest.approx((1 / 3 + 1) / 2)
    assert (result["tasks"][0]["announced"], result["tasks"][0]["too_long"]) == (2, 1)
    assert result["k_chunk"] == {"qkv": 8, "o": 8, "gate_up": 8, "down": 8}
    assert (result["model"], result["base"], result["questions"]) == ("m", "awq4", 4)


def test_a_stopped_run_goes_on_and_a_cut_line_is_asked_again(data, tmp_path, play):
    out = tmp_path / "out.jsonl"
    args = {"data": str(data), "out": str(out), "model": "m"}
    model = play(said("Yes"), said("Yes"))
    with pytest.raises(Interrupted, match="continues where"):
        bbh(args, JobContext("eval_bbh", print, lambda: len(model.prompts) == 2))
    assert len(out.read_text().splitlines()) == 2
    with out.open("ab") as file:
        file.write(b'{"task": "navig')
    model = play(said("No"), said("(A)"))
    result = bbh(args, JobContext.silent())
    assert [prompt.rsplit("Q: ", 1)[1][:5] for prompt in model.prompts] == ["Go 2?", "Which"]
    assert [t["right"] for t in result["tasks"]] == [2, 0]
    play()
    assert bbh(args, JobContext.silent())["accuracy"] == result["accuracy"]


def test_limit_counts_per_task_and_longer_files_do_not_count(data, tmp_path, play):
    args = {"data": str(data), "out": str(tmp_path / "out.jsonl"), "model": "m"}
    play(said("Yes"), said("Yes"), said("No"), said("(B)"))
    bbh(args, JobContext.silent())
    play()
    result = bbh({**args, "limit": 1, "tasks": ["navigate"]}, JobContext.silent())
    assert [(t["task"], t["accuracy"], t["questions"]) for t in result["tasks"]] == [("navigate", 1.0, 1)]


def test_records_of_another_run_are_refused(data, tmp_path, play):
    args = {"data": str(data), "out": str(tmp_path / "out.jsonl"), "model": "m", "tasks": ["snarks"]}
    play(said("(B)"))
    bbh(args, JobContext.silent())
    play(said("(B)"))
    with pytest.raises(DecdecError, match="shots cot"):
        bbh({**args, "shots": "none"}, JobContext.silent())
    (tmp_path / "out.jsonl").write_text('{"task": 1}\n')
    with pytest.raises(DecdecError, match="line 1"):
        bbh(args, JobContext.silent())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"k_chunk": {"qkv": 2000}}, "1024"),
        ({"slowdown": 30.0}, "20"),
        ({"slowdown": 5.0, "k_chunk": {"qkv": 8}}, "one of"),
        ({}, "model"),
    ],
)
def test_impossible_positions_are_refused(args, words):
    with pytest.raises(DecdecError, match=words):
        Position.parse({**({"model": "m"} if args else {}), **args})


def test_a_position_reaches_the_engine_and_an_untuned_slider_is_an_error():
    tables = []
    engine = SimpleNamespace(set_k_chunk=tables.append)
    loaded = Loaded("m", "awq4", "cpu", 9, 1, (), "never tuned")
    found = SimpleNamespace(engine=engine, loaded=loaded, folder=None)
    asking.put(found, Position("m", k_chunk=KChunk(1, 2, 3, 4)))
    assert [msgspec.structs.astuple(table) for table in tables] == [(1, 2, 3, 4)]
    with pytest.raises(DecdecError, match="never tuned"):
        asking.put(found, Position("m", slowdown=5.0))
