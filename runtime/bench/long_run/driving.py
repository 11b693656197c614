"""The run itself: one answer to the end of the context, then a conversation, with the slider moved."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psutil

from runtime.bench.long_run.readings import Pieces, Reading, read
from runtime.bench.long_run.speakers import Speaker
from runtime.protocol.commands import MAX_SLOWDOWN_PCT, Generate, Message, Sampling, SetSlowdown
from runtime.protocol.events import Done, Stats, Token

EVERY = 1000
# A move comes about once in so many pieces; one in ten of them goes to the lossless stop.
MOVE_EVERY, LOSSLESS_EVERY = 20, 10
ANSWER_TOKENS = 700
# An answer that ended early is asked to go on; a model that says nothing more so often is let be.
SILENT_TRIES = 5
LONG_QUESTION = "Write a very long story about a lighthouse keeper, and never end it."
QUESTIONS = (
    "Tell me a long story about a lighthouse keeper and the sea.",
    "Go on with the story: what happens in the winter?",
    "Explain in detail how bread is made, from the field to the table.",
    "List twenty things that one should know about whales, with a sentence on each.",
    "Describe a walk through a large city at night.",
    "Write a letter to a friend about a journey by train.",
    "How do bees live through the year? Be thorough.",
)


@dataclass
class Run:
    """What happened: readings before and at every thousandth token, pieces, answers, moves."""

    name: str
    readings: list[Reading] = field(default_factory=list)
    pieces: Pieces = field(default_factory=Pieces)
    tokens: int = 0
    answers: int = 0
    moves: int = 0
    dropped: int = 0
    longest_context: int = 0


class Driver:
    """Asks a speaker again and again; `say` hears how far it is."""

    def __init__(self, speaker: Speaker, seed: int = 0, say: Callable[[str], object] = print) -> None:
        self._speaker, self._random, self._say = speaker, random.Random(seed), say
        self._process = psutil.Process(speaker.pid)

    def long_answer(self) -> Run:
        """One answer until the context is full, or until the model has nothing more to say."""
        run, text, silent = self._begin("one answer"), "", 0
        question = Message("user", LONG_QUESTION)
        while silent < SILENT_TRIES:
            begun = (Message("assistant", text),) if text else ()
            more, reason = self._ask(run, (question, *begun), self._speaker.loaded.context_limit)
            text += more
            silent = 0 if more.strip() else silent + 1
            if reason == "context":
                break
        return run

    def conversation(self, tokens: int) -> Run:
        """Questions and answers in one conversation until so many tokens were written."""
        run = self._begin("conversation")
        messages: list[Message] = [Message("system", "You are a helpful assistant who writes at length.")]
        while run.tokens < tokens:
            messages.append(Message("user", QUESTIONS[run.answers % len(QUESTIONS)]))
            text, _ = self._ask(run, tuple(messages), min(ANSWER_TOKENS, tokens - run.tokens))
            messages.append(Message("assistant", text or "…"))
        return run

    def _begin(self, name: str) -> Run:
        run = Run(name)
        run.readings.append(self._read(0))
        return run

    def _read(self, tokens: int) -> Reading:
        return read(self._process, tokens, self._speaker.device_bytes())

    def _ask(self, run: Run, messages: tuple[Message, ...], most: int) -> tuple[str, str]:
        """Text and reason of one answer; its tokens are counted."""
        run.answers += 1
        seed = self._random.randrange(1 << 31)
        command = Generate(messages, Sampling(temperature=0.9, top_k=50, top_p=0.95, seed=seed), most)
        run.pieces.begin()
        done = self._listen(run, command)
        run.pieces.placed(done.result["prompt_tokens"])
        used = done.result["prompt_tokens"] + done.result["completion_tokens"]
        run.longest_context = max(run.longest_context, used)
        run.dropped = max(run.dropped, done.result["dropped_messages"])
        return done.result["text"], done.result["finish_reason"]

    def _listen(self, run: Run, command: Generate) -> Done:
        before, shown = run.tokens, 0
        for index, seconds, done in self._pieces(command):
            if seconds is not None:
                run.pieces.add(index - shown, seconds, index)
            shown = index
            run.tokens = before + index
            self._look(run)
            if done is not None:
                return done
            self._move(run)
        raise RuntimeError("an answer ended without its Done")

    def _pieces(self, command: Generate) -> Iterator[tuple[int, float | None, Done | None]]:
        """(tokens so far, seconds since the piece before, Done at the end); the first has no seconds."""
        last: float | None = None
        index = 0
        for event in self._speaker.answer(command):
            if isinstance(event, Done):
                yield max(index, event.result["completion_tokens"]), None, event
            # Stats of a move made before this answer still count the answer before.
            if not isinstance(event, Token | Stats) or (isinstance(event, Stats) and last is None):
                continue
            found = event.index if isinstance(event, Token) else event.completion_tokens
            if found > index:
                now = time.perf_counter()
                index, seconds, last = found, None if last is None else now - last, now
                yield index, seconds, None

    def _look(self, run: Run) -> None:
        if run.tokens // EVERY > run.readings[-1].tokens // EVERY:
            run.readings.append(self._read(run.tokens))
            latest = run.readings[-1]
            spent = latest.wall_s - run.readings[-2].wall_s
            self._say(f"{run.name}: {run.tokens} tokens, {latest.resident >> 20} MB, {spent:.1f} s")

    def _move(self, run: Run) -> None:
        if self._speaker.loaded.path and not self._random.randrange(MOVE_EVERY):
            lossless = self._speaker.loaded.lossless and not self._random.randrange(LOSSLESS_EVERY)
            self._speaker.move(SetSlowdown(round(self._random.uniform(0, MAX_SLOWDOWN_PCT), 1), lossless))
            run.moves += 1
