"""Results of a long measurement, on disk after every section, and sections that may fail alone."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.bench.table import Row, Table, markdown, same_columns
from runtime.store import atomic

Section = Callable[[], Iterable[Row]]


@dataclass(slots=True)
class GpuReport:
    """Tables by key, what failed and why, seconds of every section; files `<name>.json` and `.md`.

    `notes`: what stands below a section's table, by the section's name or how it begins. `only`: beginnings
    of the sections to run; none: all.
    """

    folder: Path
    about: dict[str, Any]
    deadline_s: float
    notes: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    name: str = "int8x-gpu"
    title: str = "INT8-X on a GPU"
    rows: dict[str, list[Row]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Seconds until no further section is begun."""
        return self.deadline_s - (time.monotonic() - self._started)

    def run(self, name: str, section: Section) -> None:
        """Keep a section's rows as they come; its exception becomes a failure, and the caller goes on."""
        if self.only and not name.startswith(self.only):
            return
        if self.left_s <= 0:
            self.fail(name, RuntimeError("no time was left"))
            return
        began = time.monotonic()
        print(f"{name} ...", flush=True)
        try:
            for row in section():
                self.rows.setdefault(name, []).append(row)
                print(" ", json.dumps(row, default=str), flush=True)
                self.write()
        except Exception as error:
            traceback.print_exc()
            self.fail(name, error)
        self.seconds[name] = time.monotonic() - began
        self.write()

    def fail(self, name: str, error: Exception) -> None:
        """Record what went wrong."""
        first_line = (str(error).splitlines() or [""])[0]
        self.failures[name] = f"{type(error).__name__}: {first_line}"
        print(f"  {name}: {self.failures[name]}", flush=True)

    def write(self) -> None:
        """Both files, whole."""
        names = ("about", "rows", "failures", "seconds")
        document = {name: getattr(self, name) for name in names}
        text = json.dumps(document, indent=1, default=str) + "\n"
        atomic.write_bytes(self.folder / f"{self.name}.json", text.encode())
        atomic.write_bytes(self.folder / f"{self.name}.md", self._markdown().encode())

    def tables(self) -> list[Table]:
        """A table for every section that has rows."""
        notes = {
            name: [note for start, note in self.notes.items() if name.startswith(start)] for name in self.rows
        }
        return [Table(name, name, same_columns(rows), notes[name]) for name, rows in self.rows.items()]

    def _markdown(self) -> str:
        facts = ", ".join(f"{key} {value}" for key, value in self.about.items())
        parts = [f"# {self.title}\n\n{facts}.\n", *map(markdown, self.tables())]
        parts += [f"{name} failed: {why}\n" for name, why in self.failures.items()]
        return "\n".join(parts)
