"""Models, set-up, tuning, and the engine's process."""

from __future__ import annotations

from app.chat.actions.base import ChatActionsBase


class SetupActions(ChatActionsBase):
    """Actions of the group "Model"."""

    def action_wizard(self) -> None:
        """Run the set-up again."""
        if self.may_leave():
            self.chat_app.open_setup()

    def action_tune(self) -> None:
        """Open the set-up at its tuning step."""
        if not self.session.model:
            self.warn("No model is loaded. F2 chooses one.")
        elif self.may_leave():
            self.chat_app.open_tuning(self.session.model)

    def action_restart_engine(self) -> None:
        """Start the engine's process again."""
        self.chat_app.restart_engine()

    def may_leave(self) -> bool:
        """Whether the engine is free for other work; told if it is not."""
        if self.session.busy:
            self.warn("The answer is still being written. Esc stops it.")
        return not self.session.busy
