"""The worker's entry for `eval judge`: every answer of an MT-Bench file graded from 1 to 10 by another model.

Single-answer grading as in FastChat's `gen_judgment.py`: each turn by itself, with a reference answer for
mathematics, reasoning and coding.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.tasks.judge_client import Endpoint
from runtime.tasks.mt_data import (
    REFERENCED,
    TURNS,
    Answer,
    JudgePrompt,
    Question,
    read_answers,
    read_prompts,
    read_questions,
    read_references,
)
from runtime.tasks.records import Records

PARALLEL = 4
POLL_S = 0.2
NO_SCORE = -1.0
_SCORES = (re.compile(r"\[\[(\d+\.?\d*)\]\]"), re.compile(r"\[(\d+\.?\d*)\]"))


class Judgment(msgspec.Struct, frozen=True):
    """A line of a judgment file, in FastChat's form. score -1: the judge named none."""

    question_id: int
    model: str
    judge: tuple[str, str]
    user_prompt: str
    judgment: str
    score: float
    turn: int
    tstamp: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to judge."""

    question: Question
    answer: Answer
    turn: int
    prompt: JudgePrompt
    reference: tuple[str, ...] = ()

    def text(self) -> str:
        """The prompt for the judge."""
        turns = self.answer.choices[0].turns
        values = {"question": self.question.turns[0], "answer": turns[0]}
        for number in range(1, TURNS + 1):
            values[f"question_{number}"] = self.question.turns[number - 1]
            values[f"answer_{number}"] = turns[number - 1]
            values[f"ref_answer_{number}"] = self.reference[number - 1] if self.reference else ""
        return self.prompt.filled(values)


def judge(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Grade the answer file `answers` by the questions and prompts in the folder `data`.

    endpoint, judge_model, api_key_env: who judges. out: judgments as JSON lines (else beside the answers);
    what is in there already is not judged again.
    Result: {"model", "judge", "score", "turns": [first, second], "categories": [{"category", "first",
    "second"}], "judged", "without_score", "out"}; scores are means.
    """
    answers = read_answers(Path(args["answers"]))
    cases = list(_cases(Path(args["data"]), answers))
    who = Endpoint.of(args["endpoint"], args["judge_model"], args.get("api_key_env"), _waiting(ctx))
    out = Path(args.get("out") or _beside(Path(args["answers"]), who.model))
    model = next(iter(answers.values())).model_id
    with Records(out, Judgment, lambda known: _foreign(known, model, who.model)) as records:
        _judge(cases, records, who, ctx)
        return _result(cases, records.found, model, who.model) | {"out": str(out)}


def score_of(judgment: str) -> float:
    """The rating in a judge's text, as FastChat finds it; NO_SCORE when there is none."""
    for pattern in _SCORES:
        if found := pattern.search(judgment):
            return float(found[1])
    return NO_SCORE


def _cases(folder: Path, answers: dict[int, Answer]) -> Iterator[Case]:
    questions = [q for q in read_questions(folder) if q.question_id in answers]
    if not questions:
        raise DecdecError("There is nothing to judge", "no answer belongs to a question of the folder")
    prompts = read_prompts(folder)
    needed = {q.question_id for q in questions if q.category in REFERENCED}
    references = read_references(folder, needed) if needed else {}
    for question in questions:
        referenced = question.question_id in needed
        for turn in range(1, TURNS + 1):
            name = f"single{'-math' if referenced else ''}-v1{'-multi-turn' if turn > 1 else ''}"
            if name not in prompts:
                raise DecdecError(f"{folder} cannot be used", f"it has no judge prompt {name}")
            reference = references[question.question_id] if referenced else ()
            yield Case(question, answers[question.question_id], turn, prompts[name], reference)


def _judge(cases: list[Case], records: Records[Judgment], who: Endpoint, ctx: JobContext) -> None:
    """Some requests at a time; each judgment is kept as it comes."""
    known = {(judgment.question_id, judgment.turn) for judgment in records.found}
    left = [case for case in cases if (case.question.question_id, case.turn) not in known]
    done = len(cases) - len(left)
    pool = ThreadPoolExecutor(PARALLEL)
    try:
        running: set[Future[Judgment]] = {pool.submit(_judgment, case, who) for case in left}
        while running:
            ctx.progress("judge", done, len(cases), "answers")
            finished, running = wait(running, POLL_S, FIRST_COMPLETED)
            for future in finished:
                records.add(future.result())
                done += 1
        ctx.progress("judge", done, len(cases), "answers")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _judgment(case: Case, who: Endpoint) -> Judgment:
    text = case.text()
    said = who.ask(case.prompt.system_prompt, text)
    return Judgment(
        question_id=case.question.question_id,
        model=case.answer.model_id,
        judge=(who.model, case.prompt.name),
        user_prompt=text,
        judgment=said,
        score=score_of(said),
        turn=case.turn,
        tstamp=time.time(),
    )


def _result(cases: list[Case], found: list[Judgment], model: str, who: str) -> dict[str, Any]:
    category = {case.question.question_id: case.question.category for case in cases}
    scored = [j for j in found if j.question_id in category and j.score != NO_SCORE]

    def mean(turn: int | None, of: str | None = None) -> float | None:
        scores = [j.score for j in scored if turn in (None, j.turn) and of in (None, category[j.question_id])]
        return fmean(scores) if scores else None

    return {
        "model": model,
        "judge": who,
        "score": mean(None),
        "turns": [mean(1), mean(2)],
        "categories": [
            {"category": name, "first": mean(1, name), "second": mean(2, name)}
            for name in dict.fromkeys(category.values())
        ],
        "judged": len(found),
        "without_score": sum(j.score == NO_SCORE for j in found),
    }


def _waiting(ctx: JobContext) -> Any:
    """Waiting between tries that ends when the job is stopped."""

    def wait_s(seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ctx.check()
            time.sleep(min(POLL_S, left))

    return wait_s


def _beside(answers: Path, who: str) -> Path:
    return answers.with_name(f"{answers.stem}.{re.sub(r'[^A-Za-z0-9._-]', '-', who)}.judgments.jsonl")


def _foreign(known: Judgment, model: str, who: str) -> str:
    if (known.model, known.judge[0]) == (model, who):
        return ""
    return f"it is a judgment of {known.model} by {known.judge[0]}, not of {model} by {who}"
