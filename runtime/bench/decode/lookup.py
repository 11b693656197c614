"""Whether guessing tokens from the prompt pays: `python -m runtime.bench.decode.lookup --prompts FILE --out
NAME`.

A prepared model answers the prompts, greedily and as the chat samples; those answers, and the ones written in
the file, are replayed (`lookup_steps`). Writes NAME.md and NAME.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch

from runtime.bench.decode.lookup_steps import BATCHES, Lookup, Step, Worth, steps
from runtime.bench.table import Row, Table, markdown
from runtime.generation import settings
from runtime.generation.engine import Engine
from runtime.protocol.bases import DEFAULT
from runtime.protocol.commands import Message, Sampling
from runtime.store import atomic
from runtime.text import PromptBuilder, Tokenizer
from runtime.text.endings import end_ids

DRAFTS = (1, 3, 7)
# Of these each for all tasks together, and the middle one for each task.
SHORTEST = (1, 2, 3)
# Steps of INT8-X over one of one vector: its products reach 2, 1.95, 1.55 and 0.93 times the speed of bf16.
COSTS = (1.0, 1.03, 1.29, 2.15)
MOST_TOKENS = 320
SEED = 1
ALL = "all"
NOTES = (
    "accepted: tokens of drafts that were right, a step. drafts: share of steps that had one. right: share of"
    " drafted tokens. even at: what steps with a draft may take, over a plain one, before lookup loses."
    " speed: tokens a second over those without lookup, if a step of 1, 2, 4 or 8 vectors takes the times"
    " given above; corrections are not counted, of which every further vector needs its own.",
    "written: by hand, as a capable model would answer. greedy, sampled: by the model named above; a small"
    " model falls into loops when greedy, and lookup guesses loops well.",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, what kind of task it is, and the answer written for it, if there is one."""

    kind: str
    prompt: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Token ids of a prompt and of an answer to it."""

    kind: str
    origin: str
    prompt: tuple[int, ...]
    answer: tuple[int, ...]


class Writer:
    """Answers of one loaded model as token ids, the ending token among them."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine, self._folder = engine, folder
        self._tokenizer = Tokenizer.from_folder(folder)
        self._builder = PromptBuilder.from_folder(folder, self._tokenizer)
        self._ends = end_ids(folder, self._tokenizer)

    def texts(self, question: Question) -> Iterator[Text]:
        """As written where it is, greedy, sampled."""
        prompt = self._builder.build([Message("user", question.prompt)]).ids
        if question.answer:
            written = (*self._tokenizer.encode_plain(question.answer), min(self._ends))
            yield Text(question.kind, "written", prompt, written)
        for origin, wish in (("greedy", Sampling(temperature=0.0)), ("sampled", Sampling(seed=SEED))):
            yield Text(question.kind, origin, prompt, tuple(self._answer(prompt, wish)))

    def _answer(self, prompt: Sequence[int], wish: Sampling) -> Iterator[int]:
        resolved = settings.resolve(wish, settings.model_defaults(self._folder))
        self._engine.truncate(0)
        answer = self._engine.continuation(self._engine.prefill(prompt, lambda: None), resolved)
        for _ in range(min(MOST_TOKENS, self._engine.context_limit - len(prompt))):
            token = answer.next()
            yield token
            if token in self._ends:
                break
        answer.close()


def acceptance_rows(
    texts: Sequence[Text], cost: Mapping[int, float], lookups: Sequence[Lookup]
) -> Iterator[Row]:
    """A row for every origin, kind of task (and all of them) and way of making drafts."""
    for origin in dict.fromkeys(text.origin for text in texts):
        kinds = dict.fromkeys(text.kind for text in texts if text.origin == origin)
        for kind in (*kinds, ALL):
            chosen = [text for text in texts if text.origin == origin and kind in (text.kind, ALL)]
            for lookup in lookups:
                if kind == ALL or lookup.shortest == SHORTEST[1]:
                    yield {"answers": origin, "task": kind, **_figures(chosen, lookup, cost)}


def _figures(texts: Sequence[Text], lookup: Lookup, cost: Mapping[int, float]) -> Row:
    taken: list[Step] = [step for text in texts for step in steps(text.prompt, text.answer, lookup)]
    worth = Worth(tuple(taken), cost)
    return {
        "tokens": worth.tokens,
        "draft": lookup.draft,
        "looked for": f"{lookup.longest} to {lookup.shortest}",
        "drafts": worth.drafted_share,
        "right": worth.accepted_share,
        "accepted": worth.accepted_per_step,
        "even at": worth.even_cost,
        "speed": worth.speed,
    }


def questions(path: Path) -> list[Question]:
    """From JSON: a list of objects with kind, prompt and, where there is one, answer."""
    return [Question(**entry) for entry in json.loads(path.read_text())]


def collect(writer: Writer, asked: Sequence[Question], say: Callable[[str], None]) -> list[Text]:
    """All answers to all questions."""
    texts: list[Text] = []
    for number, question in enumerate(asked, 1):
        texts += writer.texts(question)
        say(f"{number} of {len(asked)} questions")
    return texts


def write(out: Path, about: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """NAME.md and NAME.json."""
    facts = ", ".join(f"{key} {value}" for key, value in about.items())
    table = Table("lookup", "Prompt lookup decoding", list(rows), list(NOTES))
    heading, _, rest = markdown(table).partition("\n")
    text = f"{heading.removeprefix('#')}\n\n{facts}.\n{rest}"
    atomic.write_bytes(out.with_suffix(".md"), text.encode())
    document = {"about": dict(about), **table.as_json()}
    atomic.write_bytes(out.with_suffix(".json"), (json.dumps(document, indent=1) + "\n").encode())


def main() -> None:
    """Parse the arguments, let the model answer, replay."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--prompts", type=Path, required=True, help="JSON: see `questions`")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="prepared")
    parser.add_argument("--base", default=DEFAULT.name)
    parser.add_argument("--costs", type=float, nargs=4, default=COSTS, help="steps of 1, 2, 4, 8 vectors")
    arguments = parser.parse_args()
    from runtime.tuner.profile import processor_name

    texts = collect(_writer(arguments.model, arguments.base), questions(arguments.prompts), _say)
    lookups = [Lookup(draft, shortest=shortest) for shortest in SHORTEST for draft in DRAFTS]
    about = {
        "model": f"{arguments.model} {arguments.base}",
        "machine": f"{processor_name()} ({os.cpu_count()} cores)",
        "torch": torch.__version__,
        "date": str(date.today()),
        "step times": " / ".join(f"{cost:g}" for cost in arguments.costs),
        "measured by": f"`python -m runtime.bench.decode.lookup --prompts {arguments.prompts}`",
    }
    cost = dict(zip(BATCHES, arguments.costs, strict=True))
    write(arguments.out, about, list(acceptance_rows(texts, cost, lookups)))


def _writer(model: str, base: str) -> Writer:
    from runtime.engine.load import load_engine
    from runtime.progress import JobContext
    from runtime.protocol.commands import Load

    loaded = load_engine(Load(model, base), JobContext.silent())
    return Writer(loaded.engine, loaded.folder)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
