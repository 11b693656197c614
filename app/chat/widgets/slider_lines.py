"""The lines of the quality slider, drawn from its state for a width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from rich.text import Text

from app import format
from app.chat.widgets.rail import Rail, Styles
from app.chat.widgets.sparkline import Sparkline
from app.slider import DETENTS, Position, Scale, SliderState
from app.text import one_line

LABELS = ("0", "2.5", "5", "10", "20 %")
LOSSLESS = "lossless"
LEFT, RIGHT = "faster ", " better"
# Beside labels that name a position and the speed there.
SPEED_CAPTION = "·tok/s "
# Below this width there is no room for the captions.
FULL_WIDTH = 72
UNIT = " tok/s"
TUNES, TUNES_AGAIN = "F9 tunes.", ", F9 tunes again"


@dataclass(frozen=True, slots=True)
class Fact:
    """Text before a value, the value, text after. Facts of a low rank stay longest where room is short."""

    rank: int
    before: str
    value: str
    after: str = ""
    gap: str = "   "
    style: str = "value"

    @property
    def text(self) -> str:
        """All of it, without the gap."""
        return self.before + self.value + self.after


def fitted(facts: Iterable[Fact], width: int) -> list[Fact]:
    """The facts that fit into a line, by rank; they keep their order."""
    given = list(facts)
    kept: list[Fact] = []
    for fact in sorted(given, key=lambda fact: fact.rank):
        line = [each for each in given if each in kept or each is fact]
        if sum(len(each.gap + each.text) for each in line) - len(line[0].gap) <= width:
            kept.append(fact)
    return [fact for fact in given if fact in kept]


@dataclass(frozen=True, slots=True)
class SliderLines:
    """Draws a SliderState. `ghost`: the position under the mouse."""

    state: SliderState
    width: int
    style: Styles
    ghost: Position | None = None

    @property
    def captions(self) -> tuple[str, str]:
        """What stands left and right of the rail."""
        return (LEFT, RIGHT) if self.width >= FULL_WIDTH else ("", "")

    @property
    def scale(self) -> Scale:
        """Of the rail between the captions."""
        return Scale(self.width - sum(map(len, self.captions)), self.state.has_lossless)

    def lines(self, height: int) -> list[Text]:
        """Rail and readout; from 4 lines on with labels and a sparkline, from 7 with speeds and a chart."""
        if not self.state.enabled:
            return [self._rail(), *self._reason(height - 1)]
        if height < 4:
            return [self._rail(), self._under_mouse() if self.ghost else self._readout()][:height]
        spark = Sparkline(self.state.times, self.width - len(self.captions[1]), self.style)
        if height < 7:
            second = self._under_mouse() if self.ghost else self._labels_with_speeds()
            return [self._rail(), second, self._readout(), spark.line()]
        second = self._under_mouse() if self.ghost else self._labels(LABELS, LOSSLESS)
        return [self._rail(), second, self._speeds(), self._readout(), *spark.chart()]

    def _rail(self) -> Text:
        left, right = self.captions
        path = self.state.path
        rail = Rail(self.scale, self.style, path.free_until, self.state.enabled, path.first_gain or 0.0)
        text = Text(left, self.style("label")).append(rail.draw(self.state.position, self.ghost))
        return text.append(right, self.style("label"))

    def _labels(self, detents: tuple[str, ...], lossless: str) -> Text:
        line = self.scale.labels(detents)
        if self.state.has_lossless and len(lossless) < self.scale.gap:
            line = line[: len(line) - len(lossless)] + lossless
        return Text(" " * len(self.captions[0]) + line, self.style("label"))

    def _foretold(self) -> tuple[str, ...]:
        """About how many tokens/s every detent brings; nothing where nobody knows."""
        foretold = [self.state.foretold(Position(detent)) for detent in DETENTS]
        return () if None in foretold else tuple(map(format.about, filter(None, foretold)))

    def _labels_with_speeds(self) -> Text:
        """What the stops are and bring in one line, where there is room for both."""
        speeds, lossless = self._foretold(), self.state.speeds.lossless
        if not speeds or not self.captions[0]:
            return self._labels(LABELS, LOSSLESS)
        both = (f"{format.percent(pct)}·{speed}" for pct, speed in zip(DETENTS, speeds, strict=True))
        line = self._labels(tuple(both), LOSSLESS + (f"·{format.about(lossless)}" if lossless else "")).plain
        return Text(SPEED_CAPTION + line[len(SPEED_CAPTION) :], self.style("label"))

    def _speeds(self) -> Text:
        """About how many tokens/s every stop brings, for a line below their labels."""
        speeds = self._foretold()
        if not speeds:
            return Text()
        lossless = self.state.speeds.lossless
        labels = self._labels(speeds, format.about(lossless) if lossless else "").plain.rstrip()
        left = self.captions[0]
        line = "about".ljust(len(left)) + labels[len(left) :] if left else labels
        fits = len(line) + len(UNIT) <= self.width
        return Text(line + (UNIT if fits else ""), self.style("label"))

    def _under_mouse(self) -> Text:
        """Where a click would go and what it would bring, with a pointer below the mouse."""
        assert self.ghost is not None
        name = LOSSLESS if self.ghost.lossless else format.percent(self.ghost.pct)
        at = len(self.captions[0]) + self.scale.cell(self.ghost)
        for told in (f"{name}  {self._bring(self.ghost)}", name, ""):
            if at + 2 + len(told) <= self.width:
                return Text(f"{' ' * at}▲ {told}", self.style("value"))
            if len(told) + 1 <= at:
                return Text(f"{told} ▲".rjust(at + 1), self.style("value"))
        return Text(f"{' ' * at}▲", self.style("value"))

    def _bring(self, position: Position) -> str:
        speed = self.state.foretold(position)
        if speed is not None:
            return f"about {format.about(speed)} tok/s"
        if position.lossless:
            return "speed not known yet"
        cost = format.percent(self.state.path.at(position.pct).slowdown_pct)
        return f"about {cost} of the products" if self.state.on_cpu else f"about {cost} slower"

    def _of(self, whole: str) -> str:
        """What a percentage is of, where target and measured are of different things and there is room."""
        return f" of the {whole}" if self.state.on_cpu and self.width >= FULL_WIDTH else ""

    def _reason(self, lines: int) -> list[Text]:
        """Why it is off, and what can be done about it."""
        offer = TUNES if self.state.offers_tuning else ""
        room = max(1, self.width - len(offer) - 1)
        said = textwrap.wrap(
            f"Slider off: {one_line(self.state.reason)}.",
            room,
            max_lines=max(1, lines),
            placeholder="…",
        )
        style = self.style("reason" if offer else "label")
        texts = [Text(line, style) for line in said]
        texts[-1].append(f" {offer}" if offer else "", self.style("value"))
        return texts

    def _readout(self) -> Text:
        text = Text()
        for fact in fitted(self._facts(), self.width):
            text.append((fact.gap if text else "") + fact.before, self.style("label"))
            text.append(fact.value, self.style(fact.style)).append(fact.after, self.style("label"))
        return text

    def _facts(self) -> list[Fact]:
        state, lossless = self.state, self.state.position.lossless
        target = Fact(0, "target ", format.percent(state.position.pct), self._of("products"))
        facts = [Fact(0, "target ", LOSSLESS) if lossless else target]
        if (speed := state.foretold(state.position)) is not None:
            facts.append(Fact(4, "about ", format.about(speed), " tok/s", gap="  "))
        facts.append(self._measured())
        if state.measured_speed is not None and not lossless:
            facts.append(Fact(3, "", _speed(state.measured_speed), " tok/s", gap="  "))
        if state.overruns:
            facts.append(Fact(1, "", "above target", TUNES_AGAIN, style="reason"))
        return [*facts, *self._auto(), *self._channels(), *self._region()]

    def _measured(self) -> Fact:
        measured, speed = self.state.measured_pct, self.state.measured_speed
        if self.state.position.lossless and speed is not None:
            return Fact(0, "measured ", _speed(speed), " tok/s")
        if measured is not None:
            return Fact(0, "measured ", format.percent(measured), self._of("whole"))
        return Fact(0, "measured ", "settling" if self.state.settling else "–")

    def _auto(self) -> list[Fact]:
        auto = self.state.auto
        if not auto.on:
            return []
        floor = f"{auto.floor:g}"
        if auto.too_slow:
            return [Fact(2, "auto ≥ ", floor, " tok/s is not reached", style="reason")]
        return [Fact(2, "auto ≥ ", floor, " tok/s")]

    def _channels(self) -> list[Fact]:
        stats = self.state.current
        if stats is None or stats.lossless:
            return []
        facts = [Fact(5, "", format.number(stats.channels_corrected), " channels corrected")]
        if stats.corrections_left_out:
            left_out = format.number(stats.corrections_left_out)
            facts.append(Fact(6, "", left_out, " left out, inputs not finite"))
        return facts

    def _region(self) -> list[Fact]:
        """Where correction is free or begins, and which channels the target corrects."""
        path, gain = self.state.path, self.state.path.first_gain
        facts = []
        if path.free_until:
            facts.append(Fact(7, "free to ", format.percent(path.free_until)))
        elif gain:
            facts.append(Fact(7, "corrects from ", format.percent(gain)))
        if self.state.position.lossless:
            return facts
        return [*facts, Fact(8, "k_chunk ", format.k_chunk(self.state.table))]


def _speed(tokens_per_s: float) -> str:
    return format.speed(tokens_per_s).removesuffix(" tok/s")
