"""Models, set-up, tuning, and the engine's process."""

from __future__ import annotations

from textual import on

from app.chat.actions.base import ChatActionsBase
from app.chat.screens.models import ModelsScreen
from app.chat.screens.server_models import ServerModelsScreen
from app.chat.widgets.pull_line import PullLine
from app.models import Target, prepared_like, target
from runtime.errors import DecdecError


class SetupActions(ChatActionsBase):
    """Actions of the group "Model"."""

    def on_mount(self) -> None:
        """Below the status: what is fetched meanwhile."""
        self.query_one("#main").mount(PullLine(id="pull-line"), after="#status")

    def action_models(self, name: str = "") -> None:
        """Load the model of a name, or show the models where none, or none that is prepared, is named."""
        if not self.chat_app.local:
            self._server_models(name)
            return
        if not name:
            self.app.push_screen(ModelsScreen())
            return
        try:
            found = prepared_like(name) or target(name)
        except DecdecError as error:
            self.warn(error.sentence)
            return
        self._take(found)

    def _server_models(self, name: str) -> None:
        if not self.may_leave():
            return
        if name:
            self.send(self.session.load(name))
        else:
            self.app.push_screen(ServerModelsScreen())

    def _take(self, found: Target) -> None:
        if not found.prepared:
            self._offer(found)
        elif self.session.loaded is not None and self.session.model == found.name:
            self.tell(f"{found.name} is loaded already.")
        elif self.may_leave():
            self.chat_app.load_model(found.name)

    def _offer(self, found: Target) -> None:
        """The list, with the question how to fetch a model that is known but not here."""
        screen = ModelsScreen()
        self.app.push_screen(screen)
        screen.call_after_refresh(screen.ask_for, found.name, found.source)

    @on(PullLine.Wanted)
    def _pulls_wanted(self) -> None:
        self.action_models()

    def action_wizard(self) -> None:
        """Run the set-up again."""
        if self.may_leave():
            self.chat_app.open_setup()

    def action_tune(self) -> None:
        """Open the set-up at its tuning step."""
        fetched = self.chat_app.background.pulls.running
        if not self.session.model:
            self.warn("No model is loaded. F2 chooses one.")
        elif fetched is not None:
            self.warn(f"{fetched.name} is being fetched, which would disturb the measurement. F2 pauses it.")
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
