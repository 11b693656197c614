"""Which key does what, with a person's own choices: checks them, and names keys for people."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.actions import ACTIONS, Action

# Keys with a use of their own, and which; they do nothing else.
_TAKEN = {
    "ctrl+c": "copies, stops and quits",
    "ctrl+d": "quits",
    "ctrl+p": "opens the list of commands",
    "ctrl+j": "begins a new line",
    "alt+enter": "begins a new line",
    "shift+enter": "begins a new line",
    "shift+tab": "goes to the field before",
    "ctrl+up": "scrolls",
    "ctrl+down": "scrolls",
}
# What may be chosen: a key that types nothing and moves no cursor.
_USABLE = re.compile(
    r"(?:(?:ctrl|alt|super|meta|hyper|shift)\+)*(?:ctrl|alt|super|meta|hyper)\+(?:shift\+)?\w+"
    r"|(?:shift\+)?f\d{1,2}|escape|shift\+(?:delete|insert|escape|backspace)|insert"
)
_NAMES = {
    "escape": "Esc",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "delete": "Del",
    "insert": "Ins",
}


def label(keys: str) -> str:
    """A Textual key list as people write it: "ctrl+left,f3" is "Ctrl+←, F3"."""
    return ", ".join("+".join(map(_part, key.strip().split("+"))) for key in keys.split(",") if key.strip())


def _part(name: str) -> str:
    return _NAMES.get(name, name.replace("_", " ").title() if len(name) > 1 else name.upper())


def refusal(key: str) -> str:
    """Why no action may have this key, as a sentence; empty: it may."""
    if key in _TAKEN:
        return f"{label(key)} {_TAKEN[key]}."
    if not _USABLE.fullmatch(key):
        return f"{label(key) or 'That'} is needed for typing; take one with Ctrl or Alt, or F1 to F12."
    return ""


class Keymap:
    """Keys by action. `own` are those that differ from the usual ones; it is what the settings keep."""

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        self.own = dict(own or {})

    def keys(self, action: Action) -> str:
        """Its key list."""
        return self.own.get(action.name, action.keys)

    def label(self, action: Action) -> str:
        """Its keys for people."""
        return label(self.keys(action))

    def owner(self, key: str) -> Action | None:
        """The action that has a key."""
        return next((action for action in ACTIONS if key in self.keys(action).split(",")), None)

    def problem(self, action: Action, key: str) -> str:
        """Why an action cannot get a key, as a sentence; empty: it can."""
        owner = self.owner(key)
        if owner is not None and owner is not action:
            return f"{label(key)} is the key of {owner.title}. Give that another one first."
        return refusal(key)

    def assigned(self, action: Action, key: str) -> Keymap:
        """The same with another key for an action."""
        own = {name: keys for name, keys in self.own.items() if name != action.name}
        return Keymap(own if key == action.keys else {**own, action.name: key})

    def reset(self, action: Action) -> Keymap:
        """The same with an action's usual keys. Raises ValueError while another action has one of them."""
        for key in action.keys.split(","):
            owner = self.owner(key)
            if owner is not None and owner is not action:
                raise ValueError(f"{label(key)} is the key of {owner.title} now. Reset that one first.")
        return self.assigned(action, action.keys)


def checked(own: Mapping[str, str]) -> tuple[Keymap, list[str]]:
    """The keys of a settings file as far as they can be used, and a sentence about each that cannot."""
    own = {name: ",".join(key.strip() for key in keys.split(",")) for name, keys in own.items()}
    problems, good = [], dict(own)
    for name, keys in own.items():
        if why := _wrong(name, keys):
            problems.append(f"keys.{name} in the settings is not used: {why}")
            del good[name]
    while clash := _clash(good):
        name, other = clash
        keys = label(good.pop(name))
        problems.append(f"keys.{name} in the settings is not used: {keys} is the key of {other.title}.")
    return Keymap(good), problems


def _wrong(name: str, keys: str) -> str:
    if all(action.name != name for action in ACTIONS):
        return "there is no such action."
    return next(filter(None, (refusal(key) for key in keys.split(","))), "")


def _clash(own: Mapping[str, str]) -> tuple[str, Action] | None:
    """A choice that takes another action's key, and that action."""
    keymap = Keymap(own)
    for name in reversed(list(own)):
        for key in own[name].split(","):
            for action in ACTIONS:
                if action.name != name and key in keymap.keys(action).split(","):
                    return name, action
    return None
