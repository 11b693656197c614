"""The keys that a person needs most, below the chat; each word is a button too."""

from __future__ import annotations

from typing import ClassVar

from textual.content import Content
from textual.widget import Widget

from app.actions import ACTIONS, Action
from app.keymap import Keymap

GAP = "  "


class KeyLine(Widget):
    """Keys of the actions that belong here, as far as there is room; `stop` while it does something."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key"}

    def __init__(self, keymap: Keymap, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keymap, self._busy = keymap, False

    def show(self, keymap: Keymap, busy: bool) -> None:
        """Draw again if anything changed."""
        if (keymap.own, busy) != (self._keymap.own, self._busy):
            self._keymap, self._busy = keymap, busy
            self.refresh()

    def render(self) -> Content:
        """The line."""
        shown: list[Content] = []
        room = self.content_size.width
        for action in self._actions():
            item = self._item(action)
            if item.cell_length > room:
                break
            room -= item.cell_length + len(GAP)
            shown.append(item)
        return Content(GAP).join(shown)

    def _actions(self) -> list[Action]:
        wanted = [action for action in ACTIONS if action.in_footer and (self._busy or action.name != "stop")]
        return sorted(wanted, key=lambda action: _ORDER.index(action.name))

    def _item(self, action: Action) -> Content:
        key = self._keymap.label(action).partition(",")[0].replace("Ctrl+", "^")
        click = f"@click=screen.{action.name}" if action.name != "quit" else "@click=app.quit"
        word = Content.from_markup(f"[{click}]$word[/]", word=action.title)
        return Content.assemble(Content.styled(key, self.get_visual_style("keys--key")), " ", word)


# Where there is no room for all, the first ones are shown.
_ORDER = ("keys", "stop", "faster", "better", "history", "models", "new_chat", "system_prompt", "quit")
