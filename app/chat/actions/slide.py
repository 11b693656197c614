"""The slider's actions, from anywhere."""

from __future__ import annotations

from app.chat.actions.base import ChatActionsBase
from app.chat.widgets.slider import QualitySlider


class SlideActions(ChatActionsBase):
    """Actions of the group "Slider"."""

    def action_faster(self) -> None:
        """Slider to the next lower detent."""
        self._slider.action_move(-1)

    def action_better(self) -> None:
        """Slider to the next higher detent."""
        self._slider.action_move(1)

    def action_fine_faster(self) -> None:
        """Slider down by half a percent."""
        self._slider.action_move(-1, True)

    def action_fine_better(self) -> None:
        """Slider up by half a percent."""
        self._slider.action_move(1, True)

    @property
    def _slider(self) -> QualitySlider:
        return self.query_one(QualitySlider)
