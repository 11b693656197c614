"""Everything a person can do in a chat, by one name: as key, as palette entry and as slash command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """`name` is the method `action_<name>`; `keys` is a Textual key list.

    `argument`: what may follow the slash command, shown in help; empty: nothing may. `group`: where help
    lists it. An action with `in_footer` has its key shown below the prompt.
    """

    name: str
    group: str
    title: str
    help: str
    keys: str
    slash: str
    argument: str = ""
    in_footer: bool = False

    @property
    def first_key(self) -> str:
        """The key that is shown for it."""
        return self.keys.split(",")[0]


_ANSWERS, _CHATS, _SLIDER, _MODEL, _PROGRAM = "Answers", "Conversations", "Slider", "Model", "Program"

ACTIONS = (
    Action(
        "stop", _ANSWERS, "Stop", "End the answer now and keep what was written", "escape", "/stop", "", True
    ),
    Action("regenerate", _ANSWERS, "Regenerate", "Answer the last question again", "ctrl+r", "/retry"),
    Action("edit", _ANSWERS, "Edit question", "Change the last question and ask it anew", "ctrl+o", "/edit"),
    Action("go_on", _ANSWERS, "Continue answer", "Let a cut answer go on", "ctrl+g", "/continue"),
    Action("copy_answer", _ANSWERS, "Copy answer", "Copy the last answer", "ctrl+y", "/copy"),
    Action("copy_code", _ANSWERS, "Copy code", "Copy the last code block", "ctrl+b", "/code"),
    Action("think", _ANSWERS, "Thinking", "Show or hide what the model thought", "ctrl+l", "/think"),
    Action("older", _ANSWERS, "Previous variant", "Show the variant before", "alt+up", "/previous"),
    Action("newer", _ANSWERS, "Next variant", "Show the variant behind", "alt+down", "/next"),
    Action(
        "delete", _ANSWERS, "Delete", "Delete the last question and its answer", "shift+delete", "/delete"
    ),
    Action("undo", _ANSWERS, "Undo delete", "Bring back what was deleted last", "alt+z", "/undo"),
    Action("follow", _ANSWERS, "Newest text", "Scroll to the end and follow", "ctrl+end", "/end"),
    Action("new_chat", _CHATS, "New chat", "Start another conversation", "ctrl+n", "/new", "", True),
    Action(
        "history",
        _CHATS,
        "History",
        "Find, open, rename and delete conversations",
        "f3",
        "/history",
        "WORDS",
        True,
    ),
    Action("rename", _CHATS, "Rename chat", "Give this conversation a title", "ctrl+t", "/rename", "TITLE"),
    Action("export", _CHATS, "Export chat", "Save this conversation as a file", "ctrl+s", "/export", "FILE"),
    Action(
        "import_chat", _CHATS, "Import chat", "Read a conversation from a file", "alt+i", "/import", "FILE"
    ),
    Action("faster", _SLIDER, "Faster", "Slider to the next lower detent", "f7", "/faster", "", True),
    Action("better", _SLIDER, "Better", "Slider to the next higher detent", "f8", "/better", "", True),
    Action("fine_faster", _SLIDER, "Slightly faster", "Slider down by half a percent", "ctrl+left", "/less"),
    Action("fine_better", _SLIDER, "Slightly better", "Slider up by half a percent", "ctrl+right", "/more"),
    Action("slide_0", _SLIDER, "Slider to 0 %", "The plain low-bit model", "alt+0", "/fastest"),
    Action("slide_1", _SLIDER, "Slider to 2.5 %", "Give 2.5 % of the speed", "alt+1", "/2.5"),
    Action("slide_2", _SLIDER, "Slider to 5 %", "Give 5 % of the speed", "alt+2", "/5"),
    Action("slide_3", _SLIDER, "Slider to 10 %", "Give 10 % of the speed", "alt+3", "/10"),
    Action("slide_4", _SLIDER, "Slider to 20 %", "Give 20 % of the speed", "alt+4", "/20"),
    Action("lossless", _SLIDER, "Lossless", "The INT8 weights themselves", "alt+5", "/lossless"),
    Action("auto", _SLIDER, "Auto", "Best quality that keeps a speed", "f6", "/auto", "TOKENS-PER-SECOND"),
    Action(
        "compare", _SLIDER, "Compare", "One question at two positions, side by side", "f5", "/ab", "QUESTION"
    ),
    Action(
        "models", _MODEL, "Models", "Choose, fetch, look at and delete models", "f2", "/model", "NAME", True
    ),
    Action("wizard", _MODEL, "Set-up", "Run the set-up again", "alt+w", "/setup"),
    Action("tune", _MODEL, "Tune", "Measure this device and enable the slider", "f9", "/tune"),
    Action("restart_engine", _MODEL, "Restart engine", "Start the engine's process again", "f12", "/restart"),
    Action(
        "system_prompt",
        _PROGRAM,
        "System prompt",
        "What the model is told first",
        "f4",
        "/system",
        "TEXT",
        True,
    ),
    Action("settings", _PROGRAM, "Settings", "Sampling, context, themes, keys, folders", "f10", "/settings"),
    Action("theme", _PROGRAM, "Theme", "Next theme", "alt+t", "/theme", "NAME"),
    Action("keys", _PROGRAM, "Help", "Every key and command", "f1", "/help", "", True),
    Action("quit", _PROGRAM, "Quit", "Leave", "ctrl+q", "/quit", "", True),
)

_BY_SLASH: Mapping[str, Action] = {action.slash: action for action in ACTIONS}
_BY_NAME: Mapping[str, Action] = {action.name: action for action in ACTIONS}


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command as it was typed: the action, and what stood behind it."""

    action: Action
    argument: str = ""


def by_name(name: str) -> Action:
    """The action of a name; KeyError if there is none."""
    return _BY_NAME[name]


def by_slash(text: str) -> Command | None:
    """The command that a whole message is, None if it is a message.

    An action that takes no argument is no command when something stands behind it.
    """
    word, _, argument = text.strip().partition(" ")
    action = _BY_SLASH.get(word)
    if action is None or (argument.strip() and not action.argument):
        return None
    return Command(action, argument.strip())
