"""Short hints, each once, when what they are about is seen for the first time; never two together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.actions import by_name
from app.conversation import Turn
from app.keymap import Keymap
from app.session import ChatSession
from app.thinking import split
from runtime.protocol.events import Done, Event, Stats, Token

# No hint within this time after another one.
QUIET_S = 30.0
LONG_TOKENS = 80
NEARLY_FULL = 0.8

Moment = Callable[[Event, ChatSession], bool]


@dataclass(frozen=True, slots=True)
class Hint:
    """`text` names actions in braces, where their keys of now come. `moment`: whether it is time for it."""

    name: str
    text: str
    moment: Moment

    def words(self, keymap: Keymap) -> str:
        """What is shown."""
        text = self.text
        for name in _names(text):
            text = text.replace(f"{{{name}}}", keymap.label(by_name(name)))
        return text


def _names(text: str) -> list[str]:
    return [part.partition("}")[0] for part in text.split("{")[1:]]


def _answered(condition: Callable[[Turn, ChatSession], bool]) -> Moment:
    """At the end of an answer that has text."""

    def moment(event: Event, session: ChatSession) -> bool:
        if not isinstance(event, Done) or event.job != "generate":
            return False
        turn = session.conversation.last
        return turn is not None and bool(turn.answer) and condition(turn, session)

    return moment


def _nearly_full(event: Event, session: ChatSession) -> bool:
    if not isinstance(event, Stats) or not event.context_limit:
        return False
    return event.context_used >= NEARLY_FULL * event.context_limit


# The order in which they come where several could.
HINTS = (
    Hint(
        "stop",
        "{stop} stops an answer; what is written stays, and {go_on} lets it go on.",
        lambda event, _: isinstance(event, Token) and event.index >= LONG_TOKENS,
    ),
    Hint(
        "context",
        "The context is nearly full: then the oldest turns are left out. {new_chat} begins a new chat, "
        "{settings} sets a longer context.",
        _nearly_full,
    ),
    Hint("think", "{think} shows what the model thought.", _answered(lambda turn, _: _thought(turn))),
    Hint(
        "slider",
        "{better} moves the slider to better answers, {faster} to faster ones, also while one is written.",
        _answered(lambda _, session: session.slider.enabled),
    ),
    Hint("code", "{copy_code} copies a code block.", _answered(lambda turn, _: "```" in turn.answer)),
    Hint(
        "reused",
        "Reused tokens were still in the cache from the last turn and cost no time.",
        _answered(lambda turn, _: turn.stats is not None and turn.stats.reused_tokens > 0),
    ),
    Hint(
        "variants",
        "{regenerate} answers the question again; {older} and {newer} go through the variants.",
        _answered(lambda turn, _: bool(turn.parent)),
    ),
    Hint(
        "history",
        "{history} finds this conversation again later; {new_chat} begins another one.",
        _answered(lambda _, session: len(session.conversation.turns) > 2),
    ),
)


def _thought(turn: Turn) -> bool:
    return bool(split(turn.answer).thinking)


class Hinting:
    """Which hint is due. `seen`: names of those that were shown."""

    def __init__(self, seen: Iterable[str] = ()) -> None:
        self.seen = set(seen)
        self._quiet_until = float("-inf")

    def push(self, event: Event, session: ChatSession, now: float) -> Hint | None:
        """The hint for an event, which counts as seen then. `now`: seconds of any steady clock."""
        if now < self._quiet_until:
            return None
        for hint in HINTS:
            if hint.name not in self.seen and hint.moment(event, session):
                self.seen.add(hint.name)
                self._quiet_until = now + QUIET_S
                return hint
        return None
