"""The slider's actions, from anywhere."""

from __future__ import annotations

from collections.abc import Callable

from textual import on

from app.chat.actions.base import ChatActionsBase
from app.chat.alt_digits import tell_alt_digits_apart
from app.chat.screens.comparison import ComparisonScreen
from app.chat.widgets.slider import QualitySlider
from app.comparison import Comparison, Context, usual_positions
from app.conversation import Conversation, Turn
from app.session import Phase
from app.slider.floor import wanted_floor
from app.text import one_line
from runtime.errors import DecdecError
from runtime.protocol.commands import Command, SetSlowdown


class SlideActions(ChatActionsBase):
    """Actions of the group "Slider"."""

    def on_mount(self) -> None:
        """Alt and a digit goes to a detent, in every terminal."""
        tell_alt_digits_apart()

    def on_screen_resume(self) -> None:
        """Auto is as the settings say, at the start and after they were changed."""
        floor, auto = self.chat_app.settings.auto_floor, self.session.slider.auto
        if floor > 0 and (not auto.on or auto.floor != floor):
            self._slider.keep_speed(floor)
        elif floor <= 0:
            self._slider.end_auto()

    def action_faster(self) -> None:
        """Slider to the next lower detent."""
        self._slide(lambda: self._slider.action_move(-1))

    def action_better(self) -> None:
        """Slider to the next higher detent."""
        self._slide(lambda: self._slider.action_move(1))

    def action_fine_faster(self) -> None:
        """Slider down by half a percent."""
        self._slide(lambda: self._slider.action_move(-1, True))

    def action_fine_better(self) -> None:
        """Slider up by half a percent."""
        self._slide(lambda: self._slider.action_move(1, True))

    def action_slide_0(self) -> None:
        """Slider to 0 %."""
        self._slide(lambda: self._slider.action_jump(0))

    def action_slide_1(self) -> None:
        """Slider to the first detent above 0 %."""
        self._slide(lambda: self._slider.action_jump(1))

    def action_slide_2(self) -> None:
        """Slider to the second detent above 0 %."""
        self._slide(lambda: self._slider.action_jump(2))

    def action_slide_3(self) -> None:
        """Slider to the third detent above 0 %."""
        self._slide(lambda: self._slider.action_jump(3))

    def action_slide_4(self) -> None:
        """Slider to 20 %."""
        self._slide(lambda: self._slider.action_jump(4))

    def action_lossless(self) -> None:
        """Slider to the stop beyond its right end."""
        if self.session.slider.enabled and not self.session.slider.has_lossless:
            self.warn("Lossless does not fit into this device's memory beside the low-bit model.")
        else:
            self._slide(self._slider.action_lossless)

    def action_auto(self, floor: str = "") -> None:
        """Switch auto on or off, or let it keep so many tokens/s from now on."""
        try:
            wanted = wanted_floor(floor, self.session.slider.auto)
        except DecdecError as error:
            self.warn(error.sentence)
            return
        if wanted > 0:
            self._slide(lambda: self._keep_speed(wanted))
        else:
            self._slider.end_auto()

    def action_compare(self, question: str = "") -> None:
        """Answer a question at two positions. Without one: what is typed, or the last question again."""
        if self.session.busy or self.session.phase is not Phase.READY:
            self.warn(f"Comparing needs an idle engine; now it is: {self.session.phase.value}.")
            return
        last = None if question or self.prompt.text.strip() else self.session.conversation.last
        asked = question or self.prompt.text.strip() or (last.question if last else "")
        self._slide(lambda: self._compare(asked, last, begin=bool(question)))

    def _compare(self, question: str, last: Turn | None, *, begin: bool) -> None:
        """`last`: the turn in whose place the question is asked, untold to both, if it stays as it is."""
        session, talk = self.session, self.session.conversation
        before = Conversation.of(
            [turn for turn in talk.turns if turn is not last], system_prompt=talk.system_prompt
        )
        context = Context(
            talk.messages(),
            session.sampling,
            session.max_tokens,
            last.question if last else "",
            before.messages(),
        )
        comparison = Comparison(context, usual_positions(session.slider), session.slowdown)
        screen = ComparisonScreen(comparison, question, begin=begin)
        self.app.push_screen(screen, lambda _: self._adopt(screen, last))

    def _adopt(self, screen: ComparisonScreen, last: Turn | None) -> None:
        """Take the chosen answer into the conversation: at its end, or as a variant of the last one."""
        kept, place = screen.kept, last if screen.comparison.variant else None
        if kept is None:
            return
        answer = kept.answer
        try:
            self.session.adopt(kept.question, answer.text, answer.stats, answer.reason, place)
        except DecdecError as error:
            self.warn(error.sentence)
            return
        if self.prompt.text.strip() == kept.question:
            self.prompt.clear()
        self.show_conversation()

    def send(self, command: Command | None) -> None:
        """As for every action; but while a comparison has the slider, nothing else moves it."""
        if not (isinstance(command, SetSlowdown) and self.session.slider.lent):
            super().send(command)

    def _keep_speed(self, floor: float) -> None:
        self._slider.keep_speed(floor)
        self.chat_app.remember(auto_floor=floor)
        self.tell(f"Auto: the best quality that keeps {floor:g} tok/s. /auto {floor * 2:g} keeps more.")

    @on(QualitySlider.Moved)
    def _keep_lossless(self) -> None:
        self.chat_app.remember(slowdown_lossless=self.session.slider.position.lossless)

    @on(QualitySlider.AutoEnded)
    def _auto_ended(self) -> None:
        self.chat_app.remember(auto_floor=0.0)
        self.tell("Auto is off. F6 switches it on again.")

    def _slide(self, move: Callable[[], None]) -> None:
        """Move the slider, or tell why it does not move."""
        slider = self.session.slider
        if slider.enabled:
            move()
        else:
            offer = " F9 tunes." if slider.offers_tuning else ""
            self.warn(f"The slider is off: {one_line(slider.reason)}.{offer}")

    @property
    def _slider(self) -> QualitySlider:
        return self.query_one(QualitySlider)
