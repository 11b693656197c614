"""What the wizard says at every step."""

from __future__ import annotations

from dataclasses import dataclass

from app.setup import Setup, Step
from app.text import one_line


@dataclass(frozen=True, slots=True)
class Words:
    """A step's title, what it is about, and what must be said now."""

    title: str
    text: str
    problem: str = ""


_TEXTS = {
    Step.HARDWARE: Words("This machine", "Enter goes on to the choice of a model, r measures again."),
    Step.MODEL: Words("Choose a model", "What fits best comes first; Enter takes the marked one."),
    Step.PREPARE: Words(
        "Fetch and prepare {model}",
        "Weights are fetched, stored losslessly as INT8-X, and quantised with a correction kept aside. "
        "p pauses, Esc goes back; {kept}.",
    ),
    Step.TUNE: Words(
        "Tune {model} on this device",
        "Measures how much correction fits into which slowdown: that is what the slider moves. "
        "Esc leaves it for later, and the chat works without.",
    ),
    Step.READY: Words(
        "{model} is ready",
        "What the slider gives on this machine; F7 and F8 move it. Enter begins the chat, r tunes again.",
    ),
    Step.FINISHED: Words("", ""),
}
_MEASURING = (
    "The machine is still being measured: then what fits best comes first. Enter takes the marked one."
)
_BEGUN = Words(
    "Continue preparing {model}",
    "An earlier run has begun with it, and what is on disk is used.",
    "Enter or p goes on, Esc chooses another model.",
)
_PAUSED = "Paused: {kept}. Enter or p goes on, Esc goes back."
# What a pause costs. These steps have nothing on disk before their end.
_KEPT, _AGAIN = "finished pieces are kept", "this step begins again, what is finished stays"
_BEGINS_AGAIN = frozenset({"sensitivity"})
_RETRY = {
    Step.HARDWARE: "r tries again, Enter goes on.",
    Step.PREPARE: "Enter tries again.",
    Step.TUNE: "Enter tries again.",
}
_OFFERED = "Enter measures now, Esc leaves it: the slider is off until then, and the chat works."


def words(setup: Setup) -> Words:
    """The texts of the present step in its present state."""
    if setup.step is Step.PREPARE and setup.waiting and not setup.progress.steps:
        chosen = _BEGUN
    else:
        chosen = _TEXTS[setup.step]
    text = (
        f"{_reason(setup.reason)} {chosen.text}" if setup.step is Step.TUNE and setup.reason else chosen.text
    )
    if setup.step is Step.MODEL and not setup.measured:
        text = _MEASURING
    title = chosen.title.format(model=one_line(setup.model))
    return Words(title, text.replace("{kept}", _kept(setup)), _problem(setup) or chosen.problem)


def _kept(setup: Setup) -> str:
    return _AGAIN if setup.progress.current in _BEGINS_AGAIN else _KEPT


def _problem(setup: Setup) -> str:
    if setup.stopping:
        doing = f"{'Pausing' if setup.pausing else 'Stopping'} at the next safe point"
        again = setup.progress.current in _BEGINS_AGAIN
        return f"{doing}: {_AGAIN}…" if again else f"{doing}…"
    if setup.waiting and setup.step is Step.TUNE:
        return _OFFERED
    if setup.waiting and setup.progress.steps:
        return _PAUSED.format(kept=_kept(setup))
    return f"{setup.problem} {_RETRY.get(setup.step, '')}".strip() if setup.problem else ""


def _reason(reason: str) -> str:
    text = one_line(reason)
    return f"{text[:1].upper()}{text[1:]}."
