"""The page of keys: every action with its key, which the next key that is pressed replaces."""

from __future__ import annotations

from app.actions import ACTIONS, Action, by_name
from app.chat.screens.key import KeyScreen
from app.chat.settings.page import Page, Row
from app.keymap import Keymap

ALL = "all-keys"


class KeysPage(Page):
    """One row an action, and one for all of them."""

    title = "Keys"
    keys = "Enter, then the new key · Del resets"

    def rows(self) -> list[Row]:
        """Every action in the order of the help."""
        rows = [self._row(action) for action in ACTIONS]
        count = len(self.app.keymap.own)
        text = f"{count} changed" if count else "nothing is changed"
        return [*rows, Row(ALL, "All keys as usual", text, "Enter gives every action its usual key.")]

    def _row(self, action: Action) -> Row:
        usual = Keymap().label(action)
        own = action.name in self.app.keymap.own
        help = f"{action.help}. {action.slash} does the same." + (
            f" Its usual key is {usual}." if own else ""
        )
        return Row(action.name, action.title, self.app.keymap.label(action), help, own)

    def enter(self, name: str) -> None:
        """Wait for a key."""
        if name == ALL:
            self._keep(Keymap())
            return
        action = by_name(name)
        screen = KeyScreen(action.title, self.app.keymap.label(action))
        self.app.push_screen(screen, lambda key: self._pressed(action, key))

    def _pressed(self, action: Action, key: str | None) -> None:
        if key is None:
            return
        if problem := self.app.keymap.problem(action, key):
            self.warn(problem)
        else:
            self._keep(self.app.keymap.assigned(action, key))

    def reset(self, name: str) -> None:
        """An action's usual key."""
        if name == ALL:
            return
        try:
            self._keep(self.app.keymap.reset(by_name(name)))
        except ValueError as error:
            self.warn(str(error))

    def _keep(self, keymap: Keymap) -> None:
        self.app.remember(keys=keymap.own)
        self.changed()
