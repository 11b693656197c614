"""One line below the status while models are fetched beside the chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual.message import Message
from textual.widget import Widget

from app import format
from app.library.pulls import Pull, Pulls
from app.text import one_line

if TYPE_CHECKING:
    from app.chat.app import ChatApp

BAR_CELLS = 12
WIDE = 72


class PullLine(Widget):
    """Shows what is fetched and how far it is; gone when nothing is. A click posts `Wanted`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"pull--name", "pull--bar", "pull--rail", "pull--facts"}

    class Wanted(Message):
        """The user wants to see the models."""

    def on_mount(self) -> None:
        """Follow the pulls."""
        self._follow(None)
        cast("ChatApp", self.app).pulls_changed.subscribe(self, self._follow)

    def on_click(self) -> None:
        """Ask for the list."""
        self.post_message(self.Wanted())

    def render(self) -> Text:
        """`▸ NAME  Download ━━━━────  43 %  5.1 MB/s, 10 s left  · 2 more wait`."""
        pulls = self._pulls
        pull = pulls.running
        if pull is None:
            return Text(f"… {len(pulls.waiting)} models wait to be fetched", self._style("facts"))
        text = Text("▸ ", self._style("bar"), no_wrap=True, overflow="ellipsis")
        text.append(one_line(pull.name), self._style("name"))
        if newest := pull.newest:
            text.append(f"  {format.step_title(newest.step)} ", self._style("facts"))
            if newest.total:
                text.append(self._bar(newest.done / newest.total))
            text.append(f"  {format.pace(newest)}", self._style("facts"))
        else:
            text.append("  starting…", self._style("facts"))
        if pulls.waiting:
            text.append(f"  · {len(pulls.waiting)} more", self._style("facts"))
        return text

    @property
    def _pulls(self) -> Pulls:
        return cast("ChatApp", self.app).background.pulls

    def _follow(self, _: Pull | None) -> None:
        pulls = self._pulls
        self.display = pulls.running is not None or bool(pulls.waiting)
        self.refresh()

    def _bar(self, share: float) -> Text:
        figures = f" {int(100 * min(share, 1.0)):3d} %"
        if self.content_size.width < WIDE:
            return Text(figures, self._style("facts"))
        full = min(BAR_CELLS, int(BAR_CELLS * share))
        text = Text("━" * full, self._style("bar")).append("─" * (BAR_CELLS - full), self._style("rail"))
        return text.append(figures, self._style("facts"))

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"pull--{part}"))
