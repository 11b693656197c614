"""A prepared model as it is looked at: its details, what its weights take, and whether all is right."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import msgspec

from app import format
from app.library.pulls import STOPPED
from app.library.spread import Inspection
from app.text import one_line
from runtime.errors import DecdecError
from runtime.protocol.commands import Job
from runtime.protocol.events import Done, Event, Failed, Progress
from runtime.store import ModelRecord

LOOK, MEASURE = ("model_details",), ("int8x_inspect",)
VERIFY = ("check_files", "int8x_verify")


class Details:
    """`push` takes the events of the jobs that `look`, `measure` and `verify` name.

    `known` keeps dear results.
    """

    def __init__(self, record: ModelRecord, known: MutableMapping[str, dict[str, Any]]) -> None:
        self.record = record
        self._known = known
        # Jobs that were asked for and have not ended.
        self._open: set[str] = set()
        self.files: dict[str, Any] | None = None
        self.inspection: Inspection | None = None
        self.progress: Progress | None = None
        self.problem = ""
        # Findings of a verification, in order.
        self._verdicts: list[str] = []
        self.verifying = False
        self.verified: bool | None = None
        self._inspected(known.get(self._key))

    @property
    def _key(self) -> str:
        """Another quality or another base changes the size."""
        return f"{self.record.name}:{self.record.bytes}:{self.record.bits_per_weight}"

    def look(self) -> tuple[Job, ...]:
        """The job that finds what the files tell."""
        return self._jobs(LOOK)

    def measure(self) -> tuple[Job, ...]:
        """The job that measures the weights, none where that is known."""
        return self._jobs(MEASURE) if self.inspection is None else ()

    def verify(self) -> tuple[Job, ...]:
        """The jobs that compare files with their hashes, then weights with their source."""
        self._verdicts, self.verifying, self.verified, self.problem = [], True, None, ""
        return self._jobs(VERIFY)

    def push(self, event: Event) -> None:
        """Take one event of a job."""
        match event:
            case Progress():
                self.progress = event
            case Done():
                self.progress = None
                self._open.discard(event.job)
                self._done(event)
            case Failed():
                self.progress = None
                self._open.clear()
                self._failed(event)

    def doing(self) -> str:
        """What goes on, with its figures; empty when nothing does."""
        if self.progress is None:
            return "Looking at the files…" if self._open else ""
        share = f" {100 * self.progress.done // self.progress.total} %" if self.progress.total else ""
        titles = {"inspect": "Measuring the weights", "verify": "Verifying", "hash": "Reading files"}
        title = titles.get(self.progress.step, format.step_title(self.progress.step))
        return " · ".join(part for part in (f"{title}{share}", format.pace(self.progress)) if part)

    @property
    def verdict(self) -> str:
        """What a verification has found so far."""
        marks = {True: "✓ ", False: "✗ ", None: ""}
        return f"{marks[self.verified]}{'; '.join(self._verdicts)}" if self._verdicts else ""

    def _jobs(self, names: tuple[str, ...]) -> tuple[Job, ...]:
        self._open.update(names)
        return tuple(Job(name, {"model": self.record.name}) for name in names)

    def _done(self, event: Done) -> None:
        match event.job:
            case "model_details":
                self.files = event.result
            case "int8x_inspect":
                self._known[self._key] = event.result
                self._inspected(event.result)
            case "check_files":
                size = format.size(event.result.get("bytes", 0))
                count = event.result.get("files", 0)
                self._verdicts.append(f"{count} files, {size}: every one has its recorded SHA-256")
            case "int8x_verify":
                self._compared(event.result)

    def _compared(self, result: dict[str, Any]) -> None:
        self.verifying = False
        weights, wrong = result.get("weights", 0), result.get("mismatches", 0)
        self.verified = bool(result.get("lossless"))
        if self.verified:
            tensors = result.get("tensors", 0)
            self._verdicts.append(
                f"lossless: {format.number(weights)} weights in {tensors} tensors are right"
            )
        else:
            self._verdicts.append(f"{format.number(wrong)} of {format.number(weights)} weights are wrong")

    def _failed(self, event: Failed) -> None:
        if event.job in (*VERIFY, "worker"):
            self.verifying = False
        if event.code == STOPPED:
            return
        self.problem = one_line(DecdecError(event.what, event.why, event.fix).sentence)
        if event.job in VERIFY:
            self.verified = False

    def _inspected(self, result: dict[str, Any] | None) -> None:
        if result is None:
            return
        try:
            self.inspection = msgspec.convert(result, Inspection)
        except msgspec.ValidationError as error:
            self.problem = f"What the weights take could not be read: {error}."
