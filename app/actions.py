"""Everything a person can do in a chat, by one name: as key, as palette entry and as slash command."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """`name` is the method `action_<name>`; `keys` is a Textual key list, empty for none."""

    name: str
    title: str
    help: str
    keys: str = ""
    slash: str = ""
    key_display: str = ""
    in_footer: bool = False


ACTIONS = (
    Action("stop", "Stop", "End the answer now and keep what was written", "escape", "/stop", "Esc", True),
    Action("faster", "Faster", "Move the slider to the next lower detent", "f7", "/faster", "F7", True),
    Action("better", "Better", "Move the slider to the next higher detent", "f8", "/better", "F8", True),
    Action("fine_faster", "Slightly faster", "Move the slider down by half a percent", "ctrl+left"),
    Action("fine_better", "Slightly better", "Move the slider up by half a percent", "ctrl+right"),
    Action("new_chat", "New chat", "Start over with the same system prompt", "ctrl+n", "/new", "^n", True),
    Action(
        "system_prompt", "System prompt", "Edit what the model is told first", "f4", "/system", "F4", True
    ),
    Action("setup", "Models", "Choose, fetch and prepare a model", "f2", "/model", "F2", True),
    Action("tune", "Tune", "Measure this device and enable the slider", "f9", "/tune", "F9"),
    Action("copy_answer", "Copy answer", "Copy the last answer to the clipboard", "ctrl+y", "/copy", "^y"),
    Action("restart_engine", "Restart engine", "Start the engine's process again", "f5", "/restart", "F5"),
    Action("follow", "Newest text", "Scroll to the end and follow", "ctrl+end", "/end"),
    Action("keys", "Keys", "Show every key", "f1", "/help", "F1", True),
    Action("quit", "Quit", "Leave", "", "/quit"),
)


def by_slash(text: str) -> Action | None:
    """The action of a slash command typed as a whole message, None if there is no such."""
    return next((action for action in ACTIONS if action.slash and action.slash == text.strip()), None)
