"""Which key does what, and what a person may choose."""

import itertools

import pytest

from app.actions import ACTIONS, by_name
from app.keymap import Keymap, checked, label, refusal

LABELS = [
    ("escape", "Esc"),
    ("ctrl+left", "Ctrl+←"),
    ("f10", "F10"),
    ("shift+delete", "Shift+Del"),
    ("alt+up", "Alt+↑"),
    ("ctrl+end", "Ctrl+End"),
    ("ctrl+question_mark", "Ctrl+Question Mark"),
    ("f1,ctrl+h", "F1, Ctrl+H"),
    ("", ""),
]


@pytest.mark.parametrize(("keys", "text"), LABELS)
def test_names_of_keys(keys, text):
    assert label(keys) == text


USABLE = [
    "f11",
    "ctrl+x",
    "alt+shift+x",
    "ctrl+shift+left",
    "shift+f3",
    "escape",
    "shift+delete",
    "alt+left",
    "f24",
]
NEEDED = [
    "a",
    "A",
    "space",
    "enter",
    "tab",
    "left",
    "home",
    "backspace",
    "delete",
    "question_mark",
    "shift+left",
    "",
    "é",
]
TAKEN = ["ctrl+c", "ctrl+d", "ctrl+p", "ctrl+j", "shift+enter", "ctrl+up"]


@pytest.mark.parametrize("key", USABLE)
def test_keys_that_may_be_chosen(key):
    assert refusal(key) == ""


@pytest.mark.parametrize("key", NEEDED)
def test_keys_that_are_needed_for_typing(key):
    assert "needed for typing" in refusal(key)


@pytest.mark.parametrize("key", TAKEN)
def test_keys_with_a_use_of_their_own(key):
    assert refusal(key)
    assert "typing" not in refusal(key)


def test_the_usual_keys_are_possible_and_nobody_shares_one():
    keys = [key for action in ACTIONS for key in action.keys.split(",")]
    assert len(set(keys)) == len(keys)
    assert [key for key in keys if refusal(key)] == []


def test_another_key_and_back():
    action = by_name("regenerate")
    keymap = Keymap().assigned(action, "f11")
    assert keymap.own == {"regenerate": "f11"}
    assert (keymap.keys(action), keymap.label(action)) == ("f11", "F11")
    assert keymap.owner("f11") is action
    assert keymap.owner("ctrl+r") is None
    assert keymap.assigned(action, "ctrl+r").own == {}
    assert keymap.reset(action).own == {}


def test_a_key_of_another_action_is_refused_until_that_has_another():
    regenerate, edit = by_name("regenerate"), by_name("edit")
    assert "Edit question" in Keymap().problem(regenerate, "ctrl+o")
    keymap = Keymap().assigned(edit, "f11")
    assert keymap.problem(regenerate, "ctrl+o") == ""
    keymap = keymap.assigned(regenerate, "ctrl+o")
    with pytest.raises(ValueError, match="Regenerate"):
        keymap.reset(edit)
    assert keymap.reset(regenerate).reset(edit).own == {}
    assert Keymap().problem(regenerate, "ctrl+r") == ""


FROM_A_FILE = [
    ({"regenerate": "f11"}, {"regenerate": "f11"}, ""),
    ({"nonsense": "f11", "stop": "f11"}, {"stop": "f11"}, "no such action"),
    ({"stop": "x"}, {}, "needed for typing"),
    ({"stop": "ctrl+c"}, {}, "copies"),
    ({"stop": "f1"}, {}, "F1 is the key of Help"),
    ({"stop": "f11", "edit": "f11"}, {"stop": "f11"}, "F11 is the key of Stop"),
    ({"keys": "f11", "stop": "f1"}, {"keys": "f11", "stop": "f1"}, ""),
    ({"older": "alt+down", "newer": "alt+up"}, {"older": "alt+down", "newer": "alt+up"}, ""),
    ({"stop": ""}, {}, "needed for typing"),
    ({"stop": "f11, f13"}, {"stop": "f11,f13"}, ""),
]


@pytest.mark.parametrize(("own", "good", "why"), FROM_A_FILE)
def test_keys_of_a_file(own, good, why):
    keymap, problems = checked(own)
    assert keymap.own == good
    assert why in " ".join(problems)
    assert len(problems) == len(own) - len(good)


def test_whatever_a_file_says_nobody_shares_a_key():
    some = ["stop", "edit", "keys", "older"]
    for keys in itertools.product(["f1", "f11", "escape", "alt+up", "ctrl+o"], repeat=len(some)):
        keymap, _ = checked(dict(zip(some, keys, strict=True)))
        all_keys = [key for action in ACTIONS for key in keymap.keys(action).split(",")]
        assert len(set(all_keys)) == len(all_keys)
