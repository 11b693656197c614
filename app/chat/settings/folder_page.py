"""The page of folders: where things lie, how much there is, and moving the models elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app import environment, format
from app.chat.screens.choice import Choice, ChoiceScreen
from app.chat.screens.line import LineScreen
from app.chat.screens.moving import MovingScreen
from app.chat.settings.page import Page, Row
from app.text import one_line
from runtime import locations
from runtime.errors import DecdecError
from runtime.store import moving, nearest_existing

if TYPE_CHECKING:
    from app.chat.app import ChatApp

MODELS, FILE, HISTORY = "cache_folder", "file", "history"
STAY = Choice("", "Leave everything as it is")
USE = Choice("use", "Use that folder as it is", "Nothing is moved; models that lie here are not seen there.")


class FolderPage(Page):
    """Where models, settings and conversations lie."""

    title = "Folders"
    keys = "Enter changes or copies · Del resets"

    def __init__(self, app: ChatApp, changed: Callable[[], None]) -> None:
        super().__init__(app, changed)
        self._bytes: int | None = None

    def begin(self) -> None:
        """Add up what is there, without holding up the screen."""
        self.app.run_worker(self._add_up, thread=True, group="size")

    def _add_up(self) -> None:
        self._bytes = moving.held_bytes(locations.home())
        self.app.call_from_thread(self.changed)

    def rows(self) -> list[Row]:
        """Three places."""
        return [
            Row(MODELS, "Models", self._models(), self._about_models(), bool(self.app.settings.cache_folder)),
            Row(
                FILE,
                "Settings",
                _short(locations.settings_file()),
                "A text file to edit. Enter copies its path.",
            ),
            Row(HISTORY, "Conversations", _short(locations.history_file()), "Enter copies the path."),
        ]

    def _models(self) -> str:
        size = "adding up …" if self._bytes is None else format.size(self._bytes)
        return f"{_short(locations.home())}, {size}"

    def _about_models(self) -> str:
        text = (
            "Models, downloads and tuning. Enter moves them to another folder: they are copied, checked, and "
        )
        text += "only then deleted here. Esc while it goes on leaves everything as it was."
        try:
            free = shutil.disk_usage(nearest_existing(locations.home())).free
        except OSError:
            return text
        return f"{text} {format.size(free)} are free on this disk."

    def enter(self, name: str) -> None:
        """Move the models, or copy a path."""
        if name == MODELS:
            self._ask(str(locations.home()))
        else:
            path = str(locations.settings_file() if name == FILE else locations.history_file())
            self.app.copy_to_clipboard(path)
            self.app.notify(f"Copied {path}", markup=False)

    def reset(self, name: str) -> None:
        """Back to the usual folder."""
        if name == MODELS and locations.home() != locations.usual_home():
            self._chosen(str(locations.usual_home()))

    def _ask(self, text: str, problem: str = "") -> None:
        if given := environment.decides(MODELS):
            self.warn(f"{locations.CACHE} is set to {given} and decides. Unset it to choose a folder here.")
            return
        hint = f"{problem} A folder on any disk; it is made if it is not there. Enter goes on, Esc leaves."
        self.app.push_screen(LineScreen("Folder for models", text, hint.strip()), self._chosen)

    def _chosen(self, text: str | None) -> None:
        if not text:
            return
        path = Path(text).expanduser()
        if not path.is_absolute():
            self._ask(text, "It must be a whole path.")
            return
        target = path.resolve()
        target = target if moving.holds_models(target) else moving.place(target)
        if target == locations.home():
            self.app.notify("The models lie there already.")
        elif moving.holds_models(target):
            self._question(target, (STAY, USE))
        else:
            size = "" if self._bytes is None else f" ({format.size(self._bytes)})"
            move = Choice("move", f"Move everything there{size}", "The engine rests meanwhile.")
            self._question(target, (move, USE, STAY))

    def _question(self, target: Path, choices: tuple[Choice, ...]) -> None:
        text = "It holds models already." if moving.holds_models(target) else "Models, downloads and tuning."
        self.app.push_screen(ChoiceScreen(f"Models in {one_line(str(target))}?", text, choices),
            partial(self._decided, target))  # fmt: skip

    def _decided(self, target: Path, how: str | None) -> None:
        if how and self.app.session.busy:
            self.warn("The answer is still being written. Esc in the chat stops it.")
        elif how == "move":
            self.app.push_screen(MovingScreen(target), lambda _: self._moved())
        elif how == "use":
            self.app.run_worker(self._use(target), group="engine-pause")

    async def _use(self, target: Path) -> None:
        try:
            await self.app.rest_engine()
            self.app.point_to(target)
        except DecdecError as error:
            self.warn(error.sentence)
        await self.app.wake_engine()
        self._moved()

    def _moved(self) -> None:
        self._bytes = None
        self.begin()
        self.changed()


def _short(path: Path) -> str:
    """With ~ for the home folder."""
    try:
        return one_line(str(Path("~") / path.relative_to(Path.home())))
    except (ValueError, RuntimeError):
        return one_line(str(path))
