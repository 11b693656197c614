"""What an empty chat says: how to begin, or what is missing."""

from __future__ import annotations

from textual.markup import escape

from app.session import ChatSession, Phase
from app.text import one_line

_NO_MODEL = "[b]No model yet[/b]\n\nF2 shows the models, Alt+W goes on with the set-up."
_BROKEN = "[b]The engine stopped[/b]\n\nF12 starts it again."
_ASK = (
    "[b]Ask anything[/b]\n\n"
    "F7 and F8 move the slider, also while an answer is written:\n"
    "left is faster, right is closer to the full model.\n\n"
    "F3 finds earlier conversations, F1 shows every key."
)
_ASK_SERVER = "[b]Ask anything[/b]\n\nA server answers; the slider needs a model on this machine."


def greeting(session: ChatSession) -> str:
    """Markup for an empty transcript; what is noteworthy about a loaded model stands below it."""
    loaded = session.loaded
    ask = _ASK_SERVER if loaded and loaded.device.startswith("server ") else _ASK
    text = {Phase.EMPTY: _NO_MODEL, Phase.BROKEN: _BROKEN}.get(session.phase, ask)
    note = loaded.note if loaded else ""
    return f"{text}\n\n{escape(one_line(note))}" if note else text
