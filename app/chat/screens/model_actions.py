"""What can be done with a model of the list: chat with it, fetch it, delete it, look at it."""

from __future__ import annotations

from functools import partial

from app import format
from app.chat.screens.base import EngineScreen
from app.chat.screens.choice import Choice, ChoiceScreen
from app.chat.screens.model_details import ModelDetailsScreen
from app.chat.screens.wizard import WizardScreen
from app.library import removal
from app.library.facts import TOKEN_HELP
from app.library.pulls import Pull, PullState
from app.library.rows import LeftoverRow, OfferRow, PullRow, ReadyRow, Row
from app.library.typed import Import
from app.offer_lines import bits, needs
from app.session import Phase
from app.setup import Setup, Step
from app.text import one_line
from runtime.errors import DecdecError

BESIDE = Choice("beside", "Do it beside the chat", "The chat goes on; a note says when the model is ready.")
SETUP = Choice("setup", "Open the set-up for it", "Shows every step, then tunes this device.")
PAUSE = Choice("pause", "Pause it", "What is on disk is kept.")
BUSY = "The answer is still being written. Esc in the chat stops it."


class ModelActions(EngineScreen):
    """The work behind the keys of the list of models."""

    def reload(self) -> None:
        """Look at the disk again."""
        raise NotImplementedError

    def show_pull(self, name: str) -> None:
        """Draw the list and mark a pull."""
        raise NotImplementedError

    def tell(self, text: str) -> None:
        """A short note."""
        self.notify(one_line(text), markup=False)

    def warn(self, text: str) -> None:
        """A note about something that was not done."""
        self.notify(one_line(text), severity="warning", timeout=8, markup=False)

    # Choosing

    def choose(self, row: Row) -> None:
        """What Enter does."""
        match row:
            case ReadyRow():
                self.load(row.name)
            case PullRow():
                self.pause_or_go_on(row.pull)
            case LeftoverRow() if row.source:
                self.ask_to_fetch(row.name, row.source, "What is on disk is taken up.")
            case LeftoverRow():
                self.warn(f"It is not known what {row.name} was made from. Del deletes it.")
            case OfferRow() if row.ready:
                self.load(row.name)
            case OfferRow():
                self.ask_to_fetch(row.name, row.source, _cost(row))

    def load(self, name: str) -> None:
        """Chat with a prepared model."""
        session = self.chat_app.session
        if self.in_use(name):
            self.dismiss()
        elif session.busy:
            self.warn(BUSY)
        else:
            self.chat_app.load_model(name)
            self.dismiss()

    # Fetching

    def ask_to_fetch(self, name: str, source: str, text: str, verb: str = "Fetch and prepare") -> None:
        """Beside the chat, or in the set-up."""
        choices = (BESIDE, SETUP, Choice("", "Leave it"))
        screen = ChoiceScreen(f"{verb} {one_line(name)}?", text, choices)
        self.app.push_screen(screen, partial(self._fetch, name, source))

    def ask_to_import(self, wanted: Import) -> None:
        """As `ask_to_fetch`, for a path."""
        text = f"{one_line(wanted.path)} stays as it is; the model is prepared from it."
        self.ask_to_fetch(wanted.name, wanted.path, text, "Import")

    def _fetch(self, name: str, source: str, how: str | None) -> None:
        if how == "beside":
            self._fetch_beside(name, source)
        elif how == "setup" and self.chat_app.session.busy:
            self.warn(BUSY)
        elif how == "setup":
            self.dismiss()
            self.app.push_screen(WizardScreen(Setup(Step.PREPARE, source)))

    def _fetch_beside(self, name: str, source: str) -> None:
        if problem := self.chat_app.background.fetch(name, source):
            self.warn(problem)
        self.show_pull(name)

    def pause_or_go_on(self, pull: Pull) -> None:
        """A pull that works or waits rests; another one goes on."""
        if pull.state in (PullState.RUNNING, PullState.WAITING):
            self.chat_app.background.pause(pull.name)
        else:
            self._fetch_beside(pull.name, pull.source)

    def ask_to_cancel(self, pull: Pull) -> None:
        """Forget a pull, and delete what it has made."""
        size = removal.bytes_of_pull(pull)
        text = f"{format.size(size)} are on disk." if size else "Nothing is on disk yet."
        go_on = Choice("", "Go on importing" if pull.imported else "Go on fetching")
        drop = Choice("cancel", "Cancel it", f"Deletes what is on disk, {format.size(size)}." if size else "")
        screen = ChoiceScreen(f"Cancel {one_line(pull.name)}?", text, (go_on, PAUSE, drop))
        self.app.push_screen(screen, partial(self._cancel, pull))

    def _cancel(self, pull: Pull, how: str | None) -> None:
        if how == "pause":
            self.chat_app.background.pause(pull.name)
        elif how == "cancel":
            self.chat_app.background.cancel(pull.name)

    # Deleting

    def ask_to_delete(self, row: Row) -> None:
        """Only what is here and not in use; says what is freed."""
        if isinstance(row, PullRow):
            self.ask_to_cancel(row.pull)
        elif isinstance(row, ReadyRow) and self.in_use(row.name):
            self.warn(f"{row.name} is in use. Load another model first, then delete it.")
        elif not isinstance(row, OfferRow):
            self._ask_to_delete(row)

    def in_use(self, name: str) -> bool:
        """Whether a model is in memory, or on its way there."""
        session = self.chat_app.session
        return session.model == name and session.phase not in (Phase.EMPTY, Phase.BROKEN)

    def _ask_to_delete(self, row: ReadyRow | LeftoverRow) -> None:
        sizes = removal.sizes(row)
        text = f"{format.size(sizes.model)} are freed. This cannot be undone."
        choices = [Choice("", "Keep it"), Choice("model", "Delete it", f"Frees {format.size(sizes.model)}.")]
        if sizes.download:
            both = format.size(sizes.model + sizes.download)
            help_ = f"Frees {both}; to have it again everything must be fetched again."
            choices.append(Choice("all", "Delete it with what was downloaded for it", help_))
        screen = ChoiceScreen(f"Delete {one_line(row.name)}?", text, choices)
        self.app.push_screen(screen, partial(self._delete, row))

    def _delete(self, row: ReadyRow | LeftoverRow, how: str | None) -> None:
        if how:
            self.run_worker(partial(self._remove, row, how == "all"), thread=True, group="delete")

    def _remove(self, row: ReadyRow | LeftoverRow, download: bool) -> None:
        """In a thread: large folders take their time."""
        try:
            freed = removal.remove(row, download)
        except DecdecError as error:
            self.app.call_from_thread(self.warn, error.sentence)
        else:
            note = f"{row.name} is deleted, {format.size(freed)} are free again."
            self.app.call_from_thread(self.tell, note)
        self.app.call_from_thread(self.reload)

    # Looking

    def look(self, row: Row, verify: bool = False) -> None:
        """Everything that is known of a model."""
        if verify and not isinstance(row, ReadyRow):
            self.warn(f"{row.name} is not prepared, so there is nothing to verify.")
        else:
            self.app.push_screen(ModelDetailsScreen(row, verify))


def _cost(row: OfferRow) -> str:
    """What fetching means, in a few sentences."""
    download = (
        f"{format.size(row.download)} are downloaded" if row.download else "The hub did not tell its size"
    )
    memory = f"; at {bits(row.fit)} it takes {needs(row.fit)}" if row.fit else ""
    gated = f" The model is gated: {TOKEN_HELP}." if row.gated else ""
    return f"{download}{memory}.{gated}"
