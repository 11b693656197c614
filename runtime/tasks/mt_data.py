"""MT-Bench as FastChat publishes it: questions, reference answers and judge prompts, and its form of answers.

Source: Zheng et al. 2023, github.com/lm-sys/FastChat, `fastchat/llm_judge`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from runtime.tasks.given import read_lines, wrong

TURNS = 2
# Categories whose answers are right or wrong: the judge gets a reference answer.
REFERENCED = frozenset({"math", "reasoning", "coding"})
_FIELD = re.compile(r"\{(\w+)\}")


class Question(msgspec.Struct, frozen=True):
    """A conversation's two questions."""

    question_id: int
    category: str
    turns: tuple[str, ...]


class Choice(msgspec.Struct, frozen=True):
    """One course of a conversation: an answer a turn."""

    index: int
    turns: tuple[str, ...]


class Answer(msgspec.Struct, frozen=True):
    """A line of an answer file."""

    question_id: int
    answer_id: str
    model_id: str
    choices: tuple[Choice, ...]
    tstamp: float = 0.0


class JudgePrompt(msgspec.Struct, frozen=True):
    """A judge prompt of the data folder; fields in braces stand for questions and answers."""

    name: str
    type: str
    system_prompt: str
    prompt_template: str

    def filled(self, values: Mapping[str, str]) -> str:
        """The template with its fields; a name that nothing is known for stays as it is."""
        return _FIELD.sub(lambda field: values.get(field[1], field[0]), self.prompt_template)


def read_questions(folder: Path) -> list[Question]:
    """`question.jsonl`, each with two turns. Raises DecdecError."""
    path = folder / "question.jsonl"
    questions = read_lines(path, Question)
    if not questions or any(len(question.turns) != TURNS for question in questions):
        raise wrong(path, f"it needs questions of {TURNS} turns each")
    return _unique(path, questions)


def read_answers(path: Path) -> dict[int, Answer]:
    """Answers of one model by question, each with two turns. Raises DecdecError."""
    answers = read_lines(path, Answer)
    if not answers or any(not a.choices or len(a.choices[0].turns) != TURNS for a in answers):
        raise wrong(path, f"it needs answers of {TURNS} turns each")
    if len({answer.model_id for answer in answers}) > 1:
        raise wrong(path, "it holds answers of several models")
    return {answer.question_id: answer for answer in answers}


def read_references(folder: Path, needed: set[int]) -> dict[int, tuple[str, ...]]:
    """Reference answers of `reference_*.jsonl` by question; DecdecError when a needed one is missing."""
    found = {
        answer.question_id: answer.choices[0].turns
        for path in sorted(folder.glob("reference_*.jsonl"))
        for answer in read_lines(path, Answer)
        if answer.choices and len(answer.choices[0].turns) == TURNS
    }
    if missing := sorted(needed - found.keys()):
        raise wrong(folder, f"it has no reference answer to question {missing[0]}")
    return found


def read_prompts(folder: Path) -> dict[str, JudgePrompt]:
    """`judge_prompts.jsonl` by name. Raises DecdecError."""
    return {prompt.name: prompt for prompt in read_lines(folder / "judge_prompts.jsonl", JudgePrompt)}


def _unique(path: Path, questions: list[Question]) -> list[Question]:
    if len({question.question_id for question in questions}) < len(questions):
        raise wrong(path, "a question_id comes twice")
    return questions
