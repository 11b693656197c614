"""The worker's entry for `eval bbh`: greedy answers to BIG-Bench Hard, counted by task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.tasks import asking
from runtime.tasks.asking import Answered, Position
from runtime.tasks.bbh_answers import STOPS, extract, is_right
from runtime.tasks.bbh_data import Question, Shots, Task, read_tasks
from runtime.tasks.records import Records

DEFAULT_TOKENS = 512
Complete = Callable[[str, Sequence[str], int], Answered]


class Wish(msgspec.Struct, frozen=True):
    """What decides the answers: the records of one file share it."""

    position: Position
    shots: Shots = "cot"
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)] = DEFAULT_TOKENS


class Record(msgspec.Struct, frozen=True):
    """One answered question; finish_reason None: its prompt did not fit the context."""

    task: str
    index: int
    target: str
    answer: str
    announced: bool
    right: bool
    tokens: int
    finish_reason: str | None
    text: str
    wish: Wish


def bbh(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Accuracy by task of the model of `args` (`Position`), on the tasks in the folder `data`.

    tasks: names, all unless told. limit: questions of each. shots: "cot" or "none". max_tokens: of an answer.
    out: JSON lines; what is in there already is not asked again.
    Result: {"model", "base", "k_chunk", "shots", "max_tokens", "tasks": [{"task", "questions", "right",
    "accuracy", "announced", "too_long"}], "questions", "accuracy" (mean over tasks), "out"}; fractions.
    """
    tasks = read_tasks(Path(args["data"]), args.get("tasks") or ())
    found = asking.load(Position.parse(args), ctx)
    position = Position(found.loaded.model, found.loaded.base, found.engine.slider().k_chunk)
    wish = _wish(position, args)
    limit = args.get("limit")
    asked = [(task, index) for task in tasks for index in range(len(task.questions[:limit]))]
    with Records(Path(args["out"]), Record, lambda record: _foreign(record, wish)) as records:
        _ask(asked, records, wish, asking.Completer(found, ctx).complete, ctx)
        return _result(asked, records, wish, str(args["out"]))


def _wish(position: Position, args: dict[str, Any]) -> Wish:
    given = {key: args[key] for key in ("shots", "max_tokens") if args.get(key) is not None}
    try:
        return msgspec.convert({"position": position, **given}, Wish)
    except msgspec.ValidationError as error:
        raise DecdecError("This evaluation is not possible", str(error), code=2) from error


def _foreign(record: Record, wish: Wish) -> str:
    if record.wish == wish:
        return ""
    return f"its records are of {_words(record.wish)}, not of {_words(wish)}"


def _words(wish: Wish) -> str:
    table = wish.position.k_chunk
    channels = "no table" if table is None else "/".join(map(str, msgspec.structs.astuple(table)))
    base = f"{wish.position.model} {wish.position.base}"
    return f"{base} at k_chunk {channels}, shots {wish.shots}, {wish.max_tokens} tokens"


def _ask(
    asked: list[tuple[Task, int]], records: Records[Record], wish: Wish, complete: Complete, ctx: JobContext
) -> None:
    known = {(record.task, record.index) for record in records.found}
    left = [(task, index) for task, index in asked if (task.name, index) not in known]
    done = len(asked) - len(left)
    for task, index in left:
        ctx.progress("bbh", done, len(asked), "questions", task.name)
        prompt = task.prompt(task.questions[index], wish.shots)
        records.add(_record(task, index, complete(prompt, STOPS, wish.max_tokens), wish))
        done += 1
    ctx.progress("bbh", done, len(asked), "questions")


def _record(task: Task, index: int, answered: Answered, wish: Wish) -> Record:
    question: Question = task.questions[index]
    answer, announced = extract(answered.text)
    return Record(
        task=task.name,
        index=index,
        target=question.target,
        answer=answer,
        announced=announced,
        right=is_right(answer, question.target),
        tokens=answered.tokens,
        finish_reason=answered.finish_reason,
        text=answered.text,
        wish=wish,
    )


def _result(asked: list[tuple[Task, int]], records: Records[Record], wish: Wish, out: str) -> dict[str, Any]:
    wanted = {(task.name, index) for task, index in asked}
    found = [record for record in records.found if (record.task, record.index) in wanted]
    rows = [_row(name, [r for r in found if r.task == name]) for name in dict.fromkeys(r.task for r in found)]
    return {
        "model": wish.position.model,
        "base": wish.position.base,
        "k_chunk": msgspec.to_builtins(wish.position.k_chunk),
        "shots": wish.shots,
        "max_tokens": wish.max_tokens,
        "tasks": rows,
        "questions": len(found),
        "accuracy": sum(row["accuracy"] for row in rows) / len(rows),
        "out": out,
    }


def _row(name: str, records: list[Record]) -> dict[str, Any]:
    right = sum(record.right for record in records)
    return {
        "task": name,
        "questions": len(records),
        "right": right,
        "accuracy": right / len(records),
        "announced": sum(record.announced for record in records),
        "too_long": sum(record.finish_reason is None for record in records),
    }
