"""The help lists everything, with the keys of now, and finds by any word."""

from app.actions import ACTIONS
from app.helping import SETTING_UP, WORDS, groups
from app.keymap import Keymap


def entries(wanted="", keymap=None):
    return [entry for group in groups(keymap or Keymap(), wanted) for entry in group.entries]


def test_every_action_and_every_word_is_there():
    found = entries()
    assert {action.slash for action in ACTIONS} == {e.command.split()[0] for e in found if e.command}
    assert {word for word, _ in WORDS} <= {entry.key for entry in found}
    titles = [group.title for group in groups(Keymap())]
    assert titles == ["Typing", "Answers", "Conversations", "Slider", "Model", "Program", "Words"]


def test_keys_are_those_of_now():
    changed = Keymap({"regenerate": "f11"})
    assert [entry.key for entry in entries("/retry", changed)] == ["F11"]
    assert [entry.command for entry in entries("f11", changed)] == ["/retry"]


def test_search_by_title_key_command_argument_and_group():
    assert [entry.command for entry in entries("COPY code")] == ["/code"]
    assert [entry.command for entry in entries("ctrl+b")] == ["/code"]
    assert [entry.command for entry in entries("tokens-per-second")] == ["/auto TOKENS-PER-SECOND"]
    assert len(entries("slider")) > 8
    assert entries("no such thing") == []
    assert [group.title for group in groups(Keymap(), "k_chunk")] == ["Words"]


def test_a_screen_with_keys_of_its_own_stands_first():
    found = groups(Keymap(), first=(SETTING_UP,))
    assert found[0] == SETTING_UP
    assert found[1:] == groups(Keymap())
    assert [entry.key for entry in SETTING_UP.entries] == ["Enter", "↑, ↓", "p", "r", "Esc"]
    assert groups(Keymap(), "zzz", (SETTING_UP,)) == []
