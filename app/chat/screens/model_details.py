"""One model with everything that is known of it; for a prepared one its files are measured meanwhile."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Footer, Static

from app.chat.screens.base import EngineScreen
from app.chat.widgets.bits_picture import BitsPicture
from app.chat.widgets.fact_table import FactTable
from app.chat.widgets.tiny_notice import TinyNotice
from app.library.details import Details
from app.library.facts import facts, of_details
from app.library.rows import OfferRow, ReadyRow, Row
from app.text import one_line
from runtime.protocol.commands import Job
from runtime.protocol.events import Event


class ModelDetailsScreen(EngineScreen):
    """Left with Esc, which also calls off what still runs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f2,q", "dismiss", "Back", priority=True, key_display="Esc"),
        Binding("v", "verify", "Verify"),
    ]
    AUTO_FOCUS = "#details-body"

    def __init__(self, row: Row, verify: bool = False) -> None:
        super().__init__()
        self._row, self._verify_first = row, verify
        self._one_job = asyncio.Lock()
        self._details: Details | None = None

    def compose(self) -> ComposeResult:
        """Name, facts, what the weights take."""
        label = self._row.label if isinstance(self._row, OfferRow) else self._row.name
        with Vertical(id="details"):
            yield Static(one_line(label), id="details-title", markup=False)
            yield Static(id="details-doing", markup=False)
            with VerticalScroll(id="details-body"):
                yield FactTable(id="details-facts")
                yield Static(id="details-verdict", markup=False)
                yield BitsPicture(id="details-bits")
            yield Footer(compact=True, show_command_palette=False)
        yield TinyNotice()

    def on_mount(self) -> None:
        """Look at a prepared model's files."""
        if isinstance(self._row, ReadyRow):
            self._details = Details(self._row.record, self.chat_app.background.known)
            self._begin(self._details.look())
            if self._verify_first:
                self.action_verify()
            self._begin(self._details.measure())
        self._show()

    def action_verify(self) -> None:
        """Compare files with their hashes, and weights with what they were made from."""
        if self._details is not None and not self._details.verifying:
            self._begin(self._details.verify())
            self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a prepared model can be verified."""
        return action != "verify" or isinstance(self._row, ReadyRow)

    def _begin(self, jobs: tuple[Job, ...]) -> None:
        """Behind what runs already; each by itself, for a damaged model may fail in any."""
        if jobs:
            self.run_worker(self._run(jobs), group="look")

    async def _run(self, jobs: tuple[Job, ...]) -> None:
        async with self._one_job:
            outcome = await self.chat_app.background.run(*jobs, on_event=self._heard)
            if outcome.job == "worker":
                self._heard(outcome)

    def _heard(self, event: Event) -> None:
        """What still comes while the screen is being left finds no widgets."""
        if self._details is not None and self in self.app.screen_stack:
            self._details.push(event)
            self._show()

    def _show(self) -> None:
        details = self._details
        known = facts(self._row)
        if details is not None:
            known += of_details(details.files) if details.files else ()
            self._show_details(details)
        self.query_one(FactTable).show(known)

    def _show_details(self, details: Details) -> None:
        self.query_one("#details-doing", Static).update(details.doing() or details.problem)
        verdict = self.query_one("#details-verdict", Static)
        verdict.update(details.verdict)
        verdict.set_class(details.verified is False, "-bad")
        if details.inspection is not None:
            self.query_one(BitsPicture).show(details.inspection)
