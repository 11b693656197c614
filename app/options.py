"""Everything a person can set, in one table: what the settings screen shows and what the file explains."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from app.kinds import Kind, Number, Pick, Words, pick
from app.settings import MAX_SEED, MAX_TOKENS, Settings
from app.slider.floor import MAX_FLOOR

MODELS_OWN = "the model's own"
_YES_NO = Pick(((True, "yes"), (False, "no")))


class Applies(Enum):
    """When a change counts."""

    NOW = ""
    LOAD = "when the model is loaded again"
    START = "when the engine starts again"


class Section(Enum):
    """A page of the settings screen; options of NONE are changed elsewhere in the chat."""

    ANSWERS = "Answers"
    ENGINE = "Engine"
    LOOK = "Look"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Option:
    """`name`: the field of `Settings`, with its table before a dot. `example`: what the file shows unset."""

    name: str
    section: Section
    title: str
    help: str
    kind: Kind | None = None
    applies: Applies = Applies.NOW
    example: Any = None

    @property
    def table(self) -> str:
        """The table of the file it lies in, empty: the top."""
        return self.name.rpartition(".")[0]

    @property
    def key(self) -> str:
        """Its name within the table."""
        return self.name.rpartition(".")[2]

    def value(self, settings: Settings) -> Any:
        """What is set."""
        return getattr(getattr(settings, self.table) if self.table else settings, self.key)

    def change(self, settings: Settings, value: Any) -> dict[str, Any]:
        """Fields of `Settings` that set it. Raises ValueError for what is not possible."""
        changes = {self.key: value}
        if self.table:
            changes = {self.table: msgspec.structs.replace(getattr(settings, self.table), **changes)}
        msgspec.structs.replace(settings, **changes)
        return changes

    @property
    def usual(self) -> Any:
        """Its default."""
        return self.value(Settings())


def _sampling(name: str, title: str, help: str, kind: Number) -> Option:
    return Option(f"sampling.{name}", Section.ANSWERS, title, help, kind, example=kind.start)


OPTIONS = (
    _sampling(
        "temperature",
        "Temperature",
        "How freely words are chosen: 0 always takes the likeliest, 1 draws as the model says. Small models "
        "at few bits get worse quickly above 0.5.",
        Number(0.0, 100.0, 0.1, 0.2, unset=MODELS_OWN),
    ),
    _sampling(
        "top_p",
        "Top p",
        "Only the likeliest tokens that together have this share of the probability; 1 allows all.",
        Number(0.0, 1.0, 0.05, 0.9, unset=MODELS_OWN),
    ),
    _sampling(
        "top_k",
        "Top k",
        "Only so many of the likeliest tokens; 0 allows all.",
        Number(0, 1 << 30, 5, 40, whole=True, unset=MODELS_OWN),
    ),
    _sampling(
        "min_p",
        "Min p",
        "Leaves out tokens less likely than this share of the likeliest one; 0 leaves out none.",
        Number(0.0, 1.0, 0.01, 0.05, unset=MODELS_OWN),
    ),
    _sampling(
        "repetition_penalty",
        "Repetition penalty",
        "Makes tokens that were there already less likely: 1 does nothing, 1.1 is usual for small models.",
        Number(0.01, 100.0, 0.05, 1.1, unset=MODELS_OWN),
    ),
    _sampling(
        "seed",
        "Seed",
        "The same seed, question and settings give the same answer again.",
        Number(0, MAX_SEED, 1, 1, whole=True, unset="a new one each time"),
    ),
    Option(
        "max_tokens",
        Section.ANSWERS,
        "Longest answer",
        "An answer ends after so many tokens; it can be continued.",
        Number(1, MAX_TOKENS, 128, 512, True, "tokens", "2048, or what the context holds"),
        example=512,
    ),
    Option(
        "context",
        Section.ENGINE,
        "Context",
        "Tokens that a conversation may have before its oldest turns are left out. More takes more memory.",
        Number(2, MAX_TOKENS, 1024, 4096, True, "tokens", "what model and memory allow"),
        Applies.LOAD,
        4096,
    ),
    Option(
        "kv_bits",
        Section.ENGINE,
        "Bits of the KV cache",
        "On a GPU 8 bits need half the memory of 16, so that a longer context fits. No effect on a CPU.",
        Pick(((16, "16"), (8, "8"))),
        Applies.LOAD,
    ),
    Option(
        "prompt_correction",
        Section.ENGINE,
        "Correct the prompt",
        "Reads the prompt with every channel corrected: better answers at every position of the slider, for "
        "a slower start of an answer.",
        _YES_NO,
        Applies.LOAD,
    ),
    Option(
        "auto_floor",
        Section.ENGINE,
        "Auto keeps at least",
        "The speed that the slider's auto keeps while it gives as much quality as it can.",
        Number(0.5, MAX_FLOOR, 1.0, 10.0, unit="tokens/s", unset="off", nothing=0.0),
        example=10.0,
    ),
    Option(
        "device",
        Section.ENGINE,
        "Device",
        "Which device answers: auto takes a GPU that can be used, else the CPU.",
        Pick((("", "auto"), ("cpu", "cpu"))),
        Applies.START,
        "cuda:0",
    ),
    Option(
        "hub_endpoint",
        Section.ENGINE,
        "Hub",
        "Address of the hub that models come from, for instance of a mirror.",
        Words("https://huggingface.co"),
        Applies.START,
        "https://hub.example",
    ),
    Option(
        "base",
        Section.ENGINE,
        "Weights",
        "What answers are computed with, where a model has it; int8 is lossless. `decdec-chat pull MODEL "
        "--base awq3` makes one.",
        Words("awq4"),
        Applies.LOAD,
        "awq3",
    ),
    Option("theme", Section.LOOK, "Theme", "Colours of the chat.", pick(("decdec-dark",))),
    Option(
        "show_hints",
        Section.LOOK,
        "Hints",
        "Short hints when something is seen for the first time, each once.",
        _YES_NO,
    ),
    Option("slowdown_pct", Section.NONE, "Slider", "Where the slider stands, in percent: 0 to 20."),
    Option(
        "slowdown_lossless",
        Section.NONE,
        "Lossless",
        "Whether the slider stands at its last stop, beyond 20 percent.",
    ),
    Option("system_prompt", Section.NONE, "System prompt", "What the model is told first in a new chat."),
    Option(
        "cache_folder",
        Section.NONE,
        "Folder for models",
        "Where models lie. Change it in the settings screen, which moves them too.",
        example="/mnt/large/decdec-chat",
    ),
    Option("model", Section.NONE, "Model", "The model that a chat begins with."),
    Option("untuned", Section.NONE, "Untuned", "Models whose tuning was declined."),
    Option("hints", Section.NONE, "Hints seen", "Hints that were shown already."),
    Option(
        "system_prompts",
        Section.NONE,
        "System prompts",
        'System prompts by name, for F4: Name = "text".',
    ),
    Option(
        "keys",
        Section.NONE,
        "Keys",
        'Keys by the name of an action, where they are not the usual ones: regenerate = "f11".',
    ),
)
_BY_NAME = {option.name: option for option in OPTIONS}


def by_name(name: str) -> Option:
    """The option of a name; KeyError if there is none."""
    return _BY_NAME[name]


def of(section: Section, themes: Sequence[str] = (), gpus: int = 0) -> list[Option]:
    """The options of a section, with the choices that this machine has."""
    devices = (("", "auto"), ("cpu", "cpu"), *((f"cuda:{i}", f"cuda:{i}") for i in range(gpus)))
    choices = {"theme": pick(themes), "device": Pick(devices)}
    return [
        dataclasses.replace(option, kind=choices.get(option.name, option.kind))
        for option in OPTIONS
        if option.section is section
    ]
