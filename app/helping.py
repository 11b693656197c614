"""What the help lists: every action by group with its key of now and its command, and the words on screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.actions import ACTIONS
from app.keymap import Keymap

WORDS = (
    ("target", "how much slower the low-bit products may get, chosen with the slider"),
    ("products", "of numbers with low-bit weights: nearly all of a token's time on a GPU, a part on a CPU"),
    ("measured", "what corrections really cost, of a whole token: on a CPU far less than the target"),
    ("channels corrected", "inputs per token, over all layers, whose lost precision is added back"),
    ("about", "a speed that is foretold: from the tuned path and what was measured so far"),
    ("settling", "figures still know the position before"),
    ("ms/tok", "the time of a token; a mark shows where the slider was moved"),
    ("k_chunk", "corrected channels per 1024, by kind of layer"),
    ("corrects from", "the position from which the slider changes anything on this machine"),
    ("free to", "up to there corrections cost no time"),
    ("detent", "a marked stop of the slider; keys go from one to the next that changes anything"),
    ("knee", "so many corrections hide behind the product they correct; from there on each costs time"),
    ("residual", "what a weight lost when it was rounded to few bits; corrections add it back"),
    ("bits per weight", "how finely a model's numbers are kept: fewer are quicker and smaller, but rougher"),
    ("lossless", "the INT8 weights themselves instead of the low-bit ones"),
    ("auto", "the slider moves by itself to the best quality that keeps a speed"),
    ("reused", "prompt tokens that were still in the cache from the last turn"),
    ("context", "tokens that the model can look back on: prompt, questions, answers"),
    ("variant", "another answer to the same question; both are kept"),
)
_TYPING = (
    ("Enter", "Send the message"),
    ("Ctrl+J, Shift+Enter", "New line in the message"),
    ("PgUp, PgDn", "Scroll the conversation by a page"),
    ("Ctrl+↑, Ctrl+↓", "Scroll the conversation by a line"),
    ("Ctrl+P", "Find a command by its name"),
    ("Ctrl+C", "Copy what is marked, stop an answer, twice: leave"),
    ("Ctrl+D", "Leave, while nothing is typed"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the help; `command` is empty where there is none."""

    key: str
    command: str
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """Lines under a heading."""

    title: str
    entries: tuple[Entry, ...]


SETTING_UP = Group(
    "This set-up",
    (
        Entry("Enter", "", "Go on: to the next step, with the marked model, or after a pause"),
        Entry("↑, ↓", "", "Mark another model, or scroll"),
        Entry("p", "", "Pause preparing, or go on with it"),
        Entry("r", "", "Measure again: the machine, or the model on it"),
        Entry("Esc", "", "Back, or leave this step for later"),
    ),
)


def groups(keymap: Keymap, wanted: str = "", first: tuple[Group, ...] = ()) -> list[Group]:
    """Everything, or what has all the words that are wanted; groups without a line are left out.

    `first`: what stands above all, for a screen with keys of its own.
    """
    words = wanted.casefold().split()
    found = []
    for title, entries in ({group.title: list(group.entries) for group in first} | _all(keymap)).items():
        fitting = tuple(entry for entry in entries if _has(title, entry, words))
        if fitting:
            found.append(Group(title, fitting))
    return found


def _all(keymap: Keymap) -> dict[str, list[Entry]]:
    sections: dict[str, list[Entry]] = {"Typing": [Entry(key, "", text) for key, text in _TYPING]}
    for title, entry in _actions(keymap):
        sections.setdefault(title, []).append(entry)
    sections["Words"] = [Entry(word, "", meaning) for word, meaning in WORDS]
    return sections


def _actions(keymap: Keymap) -> Iterator[tuple[str, Entry]]:
    for action in ACTIONS:
        command = f"{action.slash} {action.argument}".rstrip()
        text = f"{action.title}: {action.help[0].lower()}{action.help[1:]}"
        yield action.group, Entry(keymap.label(action), command, text)


def _has(title: str, entry: Entry, words: list[str]) -> bool:
    text = f"{title} {entry.key} {entry.command} {entry.text}".casefold()
    return all(word in text for word in words)
