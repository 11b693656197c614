"""A page of values: numbers, choices and texts of `app.options`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from app import environment, options
from app.chat import themes
from app.chat.screens.line import LineScreen
from app.chat.screens.pick import PickScreen
from app.chat.settings.page import Page, Row
from app.kinds import Number, Pick, Words
from app.model_defaults import own_sampling
from app.options import Applies, Option, Section
from app.text import one_line
from runtime import device

if TYPE_CHECKING:
    from app.chat.app import ChatApp

AGAIN = "hints-again"
_ENDS = {
    Applies.NOW: "Counts at once.",
    Applies.LOAD: "Counts when the model is loaded again.",
    Applies.START: "Counts when the engine starts again.",
}


class OptionsPage(Page):
    """The options of a section."""

    keys = "← → change · Enter edits · Del resets"

    def __init__(self, app: ChatApp, changed: Callable[[], None], section: Section) -> None:
        super().__init__(app, changed)
        self.title, self._section = section.value, section
        self._own: dict[str, Any] = {}

    def begin(self) -> None:
        """Look up what the model itself says, without holding up the screen."""
        if self._section is Section.ANSWERS and self.app.session.model:
            self.app.run_worker(partial(self._read_own, self.app.session.model), thread=True, group="own")

    def _read_own(self, model: str) -> None:
        self._own = own_sampling(model)
        self.app.call_from_thread(self.changed)

    def rows(self) -> list[Row]:
        """Every option, and a way to see the hints again."""
        rows = [self._row(option) for option in self._options]
        if self._section is Section.LOOK:
            seen = f"{len(self.app.settings.hints)} were shown"
            rows.append(Row(AGAIN, "Hints again", seen, "Enter lets every hint come once more."))
        return rows

    @property
    def _options(self) -> list[Option]:
        return options.of(self._section, themes.ordered(self.app.available_themes), device.gpu_count())

    def _option(self, name: str) -> Option | None:
        return next((option for option in self._options if option.name == name), None)

    def _row(self, option: Option) -> Row:
        value = option.value(self.app.settings)
        assert option.kind is not None
        shown = option.kind.shown(value)
        if value is None and option.key in self._own:
            shown = f"{shown}: {self._own[option.key]:g}"
        help = " ".join(filter(None, (option.help, _ENDS[option.applies], self._aside(option, value))))
        return Row(option.name, option.title, one_line(shown), help, value != option.usual)

    def _aside(self, option: Option, value: Any) -> str:
        """What goes before this setting now."""
        if option.name in environment.VARIABLES and (given := environment.decides(option.name)):
            return f"{environment.VARIABLES[option.name]} is set to {one_line(given)} and goes before this."
        loading = self.app.session.how_to_load
        if option.applies is Applies.LOAD and getattr(loading, option.key) != value:
            return f"In this run the command line goes before it: {getattr(loading, option.key)}."
        return ""

    def step(self, name: str, direction: int) -> None:
        """The next value."""
        option = self._option(name)
        if option is not None and isinstance(option.kind, Number | Pick):
            self._set(option, option.kind.stepped(option.value(self.app.settings), direction))

    def reset(self, name: str) -> None:
        """The usual value."""
        if option := self._option(name):
            self._set(option, option.usual)

    def enter(self, name: str) -> None:
        """Type a value, or choose one from a list."""
        option = self._option(name)
        if option is None:
            self.app.forget_hints()
            self.changed()
        elif isinstance(option.kind, Pick):
            self._pick(option, option.kind)
        elif isinstance(option.kind, Number | Words):
            self._type(option, option.kind, option.kind.typed(option.value(self.app.settings)))

    def _pick(self, option: Option, kind: Pick) -> None:
        preview = self._preview if option.name == "theme" else None
        present = option.value(self.app.settings)
        screen = PickScreen(option.title, kind.choices, present, preview)
        self.app.push_screen(screen, lambda index: self._picked(option, kind, index))

    def _preview(self, theme: str) -> None:
        self.app.theme = theme

    def _picked(self, option: Option, kind: Pick, index: int | None) -> None:
        if index is not None:
            self._set(option, kind.choices[index][0])
        self.changed()

    def _type(self, option: Option, kind: Number | Words, text: str, problem: str = "") -> None:
        screen = LineScreen(
            option.title, text, f"{problem or option.help} Empty: {kind.unset or 'not possible'}."
        )
        self.app.push_screen(screen, lambda typed: self._typed(option, kind, typed))

    def _typed(self, option: Option, kind: Number | Words, text: str | None) -> None:
        if text is None:
            return
        try:
            value = kind.parse(text)
            option.change(self.app.settings, value)
        except ValueError as error:
            self._type(option, kind, text, f"{one_line(str(error))}.")
        else:
            self._set(option, value)

    def _set(self, option: Option, value: Any) -> None:
        if option.name in environment.VARIABLES:
            environment.follow(option.name, value)
        self.app.remember(**option.change(self.app.settings, value))
        self.changed()
