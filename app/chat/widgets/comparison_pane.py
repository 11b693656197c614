"""One side of a comparison: its position, its figures, its text with the first difference marked."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from app import format
from app.chat.widgets.position_picker import PositionPicker
from app.chat.widgets.slider_lines import Fact, fitted
from app.comparison import Answer, Comparison
from app.comparison_texts import NAMES
from app.conversation import Turn
from app.slider import SliderState
from app.text import neutralise

POINTER = "▸"
EMPTY, WAITS, READING = "Enter writes this answer.", "Written after the other one.", "Reading the question…"


class ComparisonPane(Vertical):
    """Draws one side; call `show` when anything changed."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "comparison--label",
        "comparison--value",
        "comparison--failure",
        "comparison--difference",
    }

    def __init__(self, comparison: Comparison, side: int, slider: SliderState) -> None:
        super().__init__(id=f"side-{NAMES[side].lower()}", classes="side")
        self._comparison, self._side, self._slider = comparison, side, slider
        self._shown: object = None

    def compose(self) -> ComposeResult:
        """Position, figures, text."""
        name = NAMES[self._side]
        yield PositionPicker(
            name, self._slider, lambda: self._comparison.sides[self._side], f"picker-{name.lower()}"
        )
        yield Static(classes="side-facts")
        with VerticalScroll(classes="side-scroll", can_focus=False):
            yield Static(classes="side-text")

    def on_resize(self) -> None:
        """Figures that did not fit may fit now."""
        self._shown = None
        self.show()

    def show(self) -> None:
        """Draw what changed; the newest text stays in view while it grows, unless the user scrolled up."""
        answer, at = self._comparison.answer(self._side), self._comparison.difference
        grown = answer and (len(answer.text), answer.ended, answer.stats)
        rail = (self._comparison.sides[self._side], self._slider.path, self._slider.has_lossless)
        seen = (rail, id(answer), at, grown, self._idle())
        if seen == self._shown:
            return
        self._shown = seen
        scroll = self.query_one(VerticalScroll)
        follow = bool(answer and answer is self._comparison.running) and (
            scroll.scroll_y >= scroll.max_scroll_y - 1
        )
        self.query_one(".side-facts", Static).update(self._facts(answer))
        self.query_one(".side-text", Static).update(self._text(answer, at))
        self.query_one(PositionPicker).refresh()
        if follow:
            scroll.scroll_end(animate=False, force=True)

    def page(self, pages: int) -> None:
        """Move the text by so many pages."""
        scroll = self.query_one(VerticalScroll)
        (scroll.scroll_page_down if pages > 0 else scroll.scroll_page_up)(animate=False)

    def show_difference(self) -> None:
        """Scroll to where the texts part."""
        answer, at = self._comparison.answer(self._side), self._comparison.difference
        if answer and at is not None:
            scroll = self.query_one(VerticalScroll)
            before = Text(neutralise(answer.text[:at]))
            width = max(1, scroll.scrollable_content_region.width)
            row = len(before.wrap(self.app.console, width)) - 1
            scroll.scroll_to(y=max(0, row - scroll.size.height // 2), animate=False)

    def _idle(self) -> str:
        comparison = self._comparison
        if comparison.running is None:
            return EMPTY
        return READING if comparison.answer(self._side) is comparison.running else WAITS

    def _facts(self, answer: Answer | None) -> Text:
        text = Text(no_wrap=True, overflow="crop")
        if answer is None or not (answer.text or answer.ended):
            return text.append(self._idle(), self._style("label"))
        for fact in fitted(_facts(answer), self.size.width - 2):
            text.append((fact.gap if text else "") + fact.before, self._style("label"))
            text.append(fact.value, self._style(fact.style)).append(fact.after, self._style("label"))
        return text

    def _text(self, answer: Answer | None, at: int | None) -> Text:
        if answer is None:
            return Text()
        text = Text(neutralise(answer.text)) if at is None else self._marked(answer, at)
        if answer.failure:
            text.append("\n\n" if text else "").append(neutralise(answer.failure), self._style("failure"))
        return text

    def _marked(self, answer: Answer, at: int) -> Text:
        """The text with the word in which it parts from the other one."""
        start = max(answer.text.rfind(blank, 0, at) for blank in " \n") + 1
        ends = [end for blank in " \n" if (end := answer.text.find(blank, at)) >= 0]
        end = min(ends, default=len(answer.text))
        text = Text(neutralise(answer.text[:start]))
        text.append(POINTER + neutralise(answer.text[start:end]), self._style("difference"))
        return text.append(neutralise(answer.text[end:]))

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"comparison--{part}"))


def _facts(answer: Answer) -> list[Fact]:
    facts = []
    if ending := "failed" if answer.failure else Turn("", finish_reason=answer.reason).ending:
        facts.append(Fact(0, "", ending, style="failure" if answer.failure else "value"))
    stats = answer.stats
    if stats is None:
        return facts or [Fact(0, "", "done" if answer.ended else "writing")]
    facts.append(Fact(1, "", format.speed(stats.decode_tokens_per_s)))
    if not stats.lossless:
        measured = stats.slowdown_measured_pct
        facts.append(Fact(2, "measured ", "–" if measured is None else format.percent(measured)))
        facts.append(Fact(3, "", format.number(stats.channels_corrected), " channels corrected"))
    return [*facts, Fact(4, "", format.number(stats.completion_tokens), " tokens")]
