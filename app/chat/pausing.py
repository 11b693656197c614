"""The part of the app that ends the engine for a while: for settings that only a new one takes up."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app import environment, settings_file
from app.chat.settled import SettledApp
from app.link import EngineLink
from app.models import base_of
from app.options import Applies
from app.text import one_line
from runtime import locations
from runtime.errors import DecdecError
from runtime.protocol.commands import Command, Load


class PausingApp(SettledApp):
    """Knows what the engine was started and loaded with. `last_load`: None before the first."""

    link: EngineLink

    def __init__(self) -> None:
        super().__init__()
        self._started_with = environment.present()
        self.last_load: Load | None = None

    def pending(self) -> Applies:
        """What has to happen before everything that is set counts."""
        if environment.present() != self._started_with:
            return Applies.START
        loaded = self.last_load
        if (
            loaded is None
            or self.session.how_to_load.command(loaded.model, self._base(loaded.model)) == loaded
        ):
            return Applies.NOW
        return Applies.LOAD

    def load_command(self, model: str) -> Load:
        """Begin to bring a model into memory, with the wanted weights if it has them; told if not."""
        base, wanted = self._base(model), self.session.how_to_load.base
        if wanted and base != wanted:
            text = f"{one_line(model)} has no {one_line(wanted)}: {base} answers. decdec-chat pull makes it."
            self.notify(text, severity="warning", timeout=10, markup=False)
        return self.session.load(model, base)

    def _base(self, model: str) -> str:
        return base_of(model, self.session.how_to_load.base)

    async def renew(self) -> None:
        """Load the model again, in a new engine if need be; DecdecError while an answer is written."""
        if self.pending() is Applies.START:
            await self.rest_engine()
            await self.wake_engine()
        elif self.session.busy:
            raise _busy()
        else:
            self._load_again()

    async def rest_engine(self) -> None:
        """End the engine's process; DecdecError while it is needed."""
        if self.session.busy:
            raise _busy()
        await self.link.hold()

    async def wake_engine(self) -> None:
        """Start the engine's process, and load the model again."""
        self._started_with = environment.present()
        await self.link.restart()
        self._load_again()

    def _load_again(self) -> None:
        if self.session.model:
            self.send(self.load_command(self.session.model))

    def point_to(self, folder: Path) -> None:
        """Models lie in this folder from now on; DecdecError, and no change, when that cannot be kept."""
        value = "" if folder == locations.usual_home() else str(folder)
        after = msgspec.structs.replace(self.settings, cache_folder=value)
        if trouble := settings_file.keep(self.settings, after):
            raise DecdecError("The new folder cannot be remembered", trouble)
        self.remember(cache_folder=value)
        environment.follow("cache_folder", value)

    def send(self, command: Command | None) -> None:
        """Queue a command, and note how a model was loaded."""
        if command is not None:
            self.link.post(command)
        if isinstance(command, Load):
            self.last_load = command


def _busy() -> DecdecError:
    return DecdecError("The answer is still being written", "", "Esc in the chat stops it")
