"""The slider's actions, from anywhere."""

from __future__ import annotations

from collections.abc import Callable

from textual import on

from app.chat.actions.base import ChatActionsBase
from app.chat.widgets.slider import QualitySlider
from app.slider.floor import wanted_floor
from app.text import one_line
from runtime.errors import DecdecError


class SlideActions(ChatActionsBase):
    """Actions of the group "Slider"."""

    def on_mount(self) -> None:
        """Auto goes on where it was when the program ended."""
        if (floor := self.chat_app.settings.auto_floor) > 0:
            self._slider.keep_speed(floor)

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

    def _keep_speed(self, floor: float) -> None:
        self._slider.keep_speed(floor)
        self.chat_app.remember(auto_floor=floor)
        self.tell(f"Auto: the best quality that keeps {floor:g} tok/s. /auto {floor * 2:g} keeps more.")

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
