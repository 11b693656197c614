"""Choice of a model: the catalogue, or anything a source can be made of."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from app import format
from runtime.sources.catalogue import CatalogueEntry

OTHER = "or type owner/name of a hub, a folder, or a .gguf file"


class ModelList(Vertical):
    """Posts `Chosen` with a name that a source resolves."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "models--name",
        "models--facts",
        "models--ready",
        "models--gated",
    }

    class Chosen(Message):
        """The user chose a model."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(
        self, entries: tuple[CatalogueEntry, ...], ready: Collection[str], id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._entries, self._ready = entries, set(ready)
        self._width = max(map(len, [*(entry.label for entry in entries), *self._ready]))

    def compose(self) -> ComposeResult:
        """The list, and a line for everything else."""
        yield Static(self._header(), id="catalogue-header")
        yield OptionList(id="catalogue")
        yield Input(placeholder=OTHER, id="other-model", compact=True)

    def on_mount(self) -> None:
        """Fill the list, prepared models that are not in the catalogue first."""
        known = {entry.name for entry in self._entries}
        options = [Option(self._local(name), name) for name in sorted(self._ready - known)]
        options += [Option(self._line(entry), entry.name) for entry in self._entries]
        self.query_one(OptionList).add_options(options)
        self.query_one(OptionList).highlighted = 0

    def focus_list(self) -> None:
        """Put the keyboard into the list."""
        self.query_one(OptionList).focus()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id:
            self.post_message(self.Chosen(event.option_id))

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.post_message(self.Chosen(event.value.strip()))

    def _text(self, part: str, text: str) -> Text:
        return Text(text, self.get_component_rich_style(f"models--{part}", partial=True))

    def _header(self) -> Text:
        return Text("  ").join([Text(" " * self._width), Text("download"), Text(" memory"), Text("licence")])

    def _local(self, name: str) -> Text:
        return Text("  ").join(
            [self._text("name", f"{name:<{self._width}}"), self._text("ready", "✓ prepared")]
        )

    def _line(self, entry: CatalogueEntry) -> Text:
        device = entry.forecasts["low4"].device.high
        parts = [
            self._text("name", f"{entry.label:<{self._width}}"),
            Text(f"{format.size(entry.download_bytes):>8}"),
            Text(f"{format.size(device):>7}"),
            Text(entry.licence),
        ]
        if entry.name in self._ready:
            parts.insert(3, self._text("ready", "✓ prepared"))
        if entry.gated:
            parts.append(self._text("gated", "needs a token"))
        return Text("  ").join(parts)
