"""BIG-Bench Hard as its authors publish it: questions in `bbh/TASK.json`, examples in `cot-prompts/TASK.txt`.

Source: Suzgun et al. 2022, github.com/suzgunmirac/BIG-Bench-Hard.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from runtime.errors import DecdecError
from runtime.tasks.given import read_json, read_text, wrong

Shots = Literal["cot", "none"]
MAX_QUESTIONS = 100_000
_NAME = re.compile(r"[a-z0-9_]{1,80}")
# The prompts begin with a warning against training on them, set off by this line.
_RULE = "\n-----\n"
_STEPS = "A: Let's think step by step."


class Question(msgspec.Struct, frozen=True):
    """One example: what is asked, and the answer that counts."""

    input: str
    target: str


class _File(msgspec.Struct, frozen=True):
    examples: list[Question]


@dataclass(frozen=True, slots=True)
class Task:
    """A task's questions, and the examples that are shown before each of them."""

    name: str
    examples: str
    questions: list[Question]

    def prompt(self, question: Question, shots: Shots) -> str:
        """The text to be continued: worked examples or only the task's first paragraph, then the question."""
        before = self.examples if shots == "cot" else self.examples.split("\n\n", 1)[0]
        return f"{before}\n\nQ: {question.input}\n{_STEPS}"


def read_tasks(folder: Path, wanted: Sequence[str] = ()) -> list[Task]:
    """The wanted tasks of a folder, all unless told. Raises DecdecError for what is no such folder."""
    known = sorted(p.stem for p in (folder / "bbh").glob("*.json") if _NAME.fullmatch(p.stem))
    if not known:
        raise wrong(folder, "it has no bbh folder with the tasks' JSON files")
    for name in wanted:
        if name not in known:
            raise DecdecError(f"There is no task {name!r}", f"known are {', '.join(known)}", code=2)
    return [_read(folder, name) for name in dict.fromkeys(wanted or known)]


def _read(folder: Path, name: str) -> Task:
    path = folder / "bbh" / f"{name}.json"
    questions = read_json(path, _File).examples
    if not 0 < len(questions) <= MAX_QUESTIONS:
        raise wrong(path, f"it has {len(questions)} examples")
    prompt = read_text(folder / "cot-prompts" / f"{name}.txt").replace("\r\n", "\n")
    return Task(name, prompt.partition(_RULE)[2].strip() or prompt.strip(), questions)
