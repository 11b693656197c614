"""The worker's entry for `eval mt-bench`: two-turn answers in FastChat's form, to be judged later."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import msgspec

from runtime.progress import JobContext
from runtime.protocol.commands import Message, Sampling
from runtime.protocol.events import KChunk
from runtime.tasks import asking
from runtime.tasks.asking import Chatter, Position
from runtime.tasks.mt_data import Answer, Choice, Question, read_questions
from runtime.tasks.records import Records

DEFAULT_TOKENS = 1024
SEED = 0
# FastChat's temperatures by category; others are answered at 0.7.
TEMPERATURES = {
    "writing": 0.7,
    "roleplay": 0.7,
    "extraction": 0.0,
    "math": 0.0,
    "coding": 0.0,
    "reasoning": 0.0,
    "stem": 0.1,
    "humanities": 0.1,
}
OTHER_TEMPERATURE = 0.7


def mt_bench(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Answer the questions in the folder `data` with the model of `args` (`Position`), into the file `out`.

    limit: so many questions, evenly over the file. max_tokens: of each answer. Answers that `out` has
    are not asked again. Result: {"model_id", "questions", "answered", "out"}.
    """
    questions = _spread(read_questions(Path(args["data"])), args.get("limit"))
    found = asking.load(Position.parse(args), ctx)
    model_id = _model_id(found.loaded.model, found.loaded.base, found.engine.slider().k_chunk)
    max_tokens = int(args.get("max_tokens") or DEFAULT_TOKENS)
    with Records(Path(args["out"]), Answer, lambda answer: _foreign(answer, model_id)) as records:
        known = {answer.question_id for answer in records.found}
        left = [question for question in questions if question.question_id not in known]
        chatter, done = asking.Chatter(found, ctx), len(questions) - len(left)
        for question in left:
            ctx.progress("mt_bench", done, len(questions), "questions", question.category)
            records.add(_answer(question, chatter, model_id, max_tokens))
            done += 1
        ctx.progress("mt_bench", done, len(questions), "questions")
        return {
            "model_id": model_id,
            "questions": len(questions),
            "answered": len(records.found),
            "out": str(args["out"]),
        }


def _answer(question: Question, chatter: Chatter, model_id: str, max_tokens: int) -> Answer:
    temperature = TEMPERATURES.get(question.category, OTHER_TEMPERATURE)
    messages: list[Message] = []
    for turn in question.turns:
        messages.append(Message("user", turn))
        answered = chatter.answer(messages, Sampling(temperature=temperature, seed=SEED), max_tokens)
        messages.append(Message("assistant", answered.text.strip()))
    turns = tuple(message.content for message in messages if message.role == "assistant")
    return Answer(question.question_id, uuid.uuid4().hex, model_id, (Choice(0, turns),), time.time())


def _spread(questions: list[Question], limit: int | None) -> list[Question]:
    """So many questions of all categories alike: the file is sorted by category."""
    count = min(limit or len(questions), len(questions))
    return [questions[i * len(questions) // count] for i in range(count)]


def _model_id(model: str, base: str, table: KChunk) -> str:
    """What FastChat's tables call this model, base and table."""
    if table == KChunk():
        return f"{model}-{base}"
    counts = msgspec.structs.astuple(table)
    same = len(set(counts)) == 1
    return f"{model}-{base}-k{counts[0] if same else '_'.join(map(str, counts))}"


def _foreign(answer: Answer, model_id: str) -> str:
    return "" if answer.model_id == model_id else f"it answers for {answer.model_id}, not for {model_id}"
