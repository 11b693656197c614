"""Choice of a model: what fits best first, or anything a source can be made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from app.offer_lines import PREDICTED, Columns, facts, warning
from app.ranking import Offer
from runtime.protocol.bases import DEFAULT

OTHER = "or type owner/name of a hub, a folder, or a .gguf file"
# Beside its text an option has so many cells of padding and scroll bar, and of a border where there is room.
PADDING, BORDER, TALL = 3, 2, 24


class _Catalogue(OptionList):
    """Says what Enter does."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Take it")]


class ModelList(Vertical):
    """Posts `Chosen` with a name that a source resolves; `Doubtful` first for one that does not fit."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "models--mark",
        "models--name",
        "models--facts",
        "models--ready",
        "models--begun",
        "models--missing",
    }

    class Chosen(Message):
        """The user chose a model, to be prepared with a base."""

        def __init__(self, source: str, base: str = DEFAULT.name) -> None:
            super().__init__()
            self.source, self.base = source, base

    class Doubtful(Message):
        """The user chose a model that does not fit."""

        def __init__(self, warning: str) -> None:
            super().__init__()
            self.warning = warning

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._offers: tuple[Offer, ...] = ()
        self._warned = ""
        self._moved = False

    def compose(self) -> ComposeResult:
        """The list, a line for everything else, and what is to say about the marked one."""
        yield Static(id="catalogue-header", markup=False)
        yield _Catalogue(id="catalogue")
        yield Static(id="model-facts", markup=False)
        yield Input(placeholder=OTHER, id="other-model", compact=True)

    def show(self, offers: Sequence[Offer]) -> None:
        """Fill the list. Once the user has moved, the order stays as it is and what is marked stays marked;
        until then the first one is.
        """
        if self._moved:
            offers = _in_order_of(self._offers, offers)
        if tuple(offers) == self._offers:
            return
        marked = self._marked
        self._offers = tuple(offers)
        self._draw()
        names = [offer.name for offer in self._offers]
        keep = self._moved and marked is not None and marked.name in names
        self._list.highlighted = names.index(marked.name) if keep and marked else 0
        self._describe()

    def focus_list(self) -> None:
        """Put the keyboard into the list."""
        self._list.focus()

    def sort_anew(self) -> None:
        """The order may change once more: the list is not being looked at."""
        self._moved = False

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    @property
    def _marked(self) -> Offer | None:
        index = self._list.highlighted
        return self._offers[index] if index is not None and index < len(self._offers) else None

    def on_resize(self, event: Resize) -> None:
        """Lines have as many columns as there is room for."""
        index = self._list.highlighted
        self._draw()
        self._list.highlighted = index
        self._describe()

    def _draw(self) -> None:
        longest = max((len(offer.label) for offer in self._offers), default=10)
        beside = PADDING + (BORDER if self.app.size.height >= TALL else 0)
        columns = Columns.within(self.size.width - beside, longest)
        self.query_one("#catalogue-header", Static).update(Text(columns.header(), no_wrap=True))
        self._list.clear_options()
        self._list.add_options([Option(self._line(columns, offer)) for offer in self._offers])

    def _line(self, columns: Columns, offer: Offer) -> Text:
        style = self.get_component_rich_style
        cells = [(text, style(f"models--{part}", partial=True)) for text, part in columns.cells(offer)]
        line = Text.assemble(*cells, no_wrap=True, overflow="ellipsis")
        line.rstrip()
        return line

    def _describe(self) -> None:
        """The marked one in sentences."""
        offer = self._marked
        sentences = facts(offer) if offer else []
        if offer and offer.tokens_per_s:
            sentences.append(PREDICTED)
        self.query_one("#model-facts", Static).update(" ".join(sentences))

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._moved = self._moved or event.option_index != 0
        self._describe()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        offer = self._offers[event.option_index]
        if offer.fits or self._warned == offer.name:
            self.post_message(self.Chosen(offer.source, offer.base))
        else:
            self._warned = offer.name
            self.post_message(self.Doubtful(warning(offer)))

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.post_message(self.Chosen(event.value.strip()))


def _in_order_of(shown: Sequence[Offer], newer: Sequence[Offer]) -> list[Offer]:
    """Newer figures where the eye left the older ones; what was not there before comes behind."""
    places = {offer.name: place for place, offer in enumerate(shown)}
    return sorted(newer, key=lambda offer: places.get(offer.name, len(places)))
