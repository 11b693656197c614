"""A model repository on a Hugging Face compatible hub: safetensors, JSON and tokenizer files only."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from runtime.download.errors import UnreachableError
from runtime.download.files import is_there, missing_bytes
from runtime.download.several import download_all
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import hub_api, layout
from runtime.sources.carried import carry_over
from runtime.sources.hub_api import Listing
from runtime.sources.kept import alone_with, kept_folder, remove_kept
from runtime.store import atomic
from runtime.store.space import require_space

_LISTING = "listing.json"


@dataclass(slots=True)
class HubSource:
    """A hub repository at its newest commit, or at the one that is here when the hub cannot be reached.

    A commit that the hub library's own cache has is used in place; any other is downloaded below our own
    folder, because that library starts a file anew after every interruption.
    """

    name: str
    label: str
    repo: str
    licence: str = ""
    download_bytes: int = 0
    _commit: str = field(default="", init=False)

    @property
    def record(self) -> dict[str, Any]:
        """Repository and, once fetched, the commit."""
        known = {"commit": self._commit} if self._commit else {}
        licence = {"licence": self.licence} if self.licence else {}
        return {"kind": "hub", "source": f"hub {self.repo}", "repo": self.repo, **known, **licence}

    def fetch(self, ctx: JobContext) -> Path:
        """The folder of a whole commit; without a network, the one that is already here."""
        with alone_with(self._folder, f"Downloading {self.label}"):
            ctx.check()
            try:
                listing = hub_api.list_files(self.repo, ctx.check)
            except UnreachableError:
                folder = self._already_here()
                if folder is None:
                    raise
            else:
                folder = hub_api.in_hub_cache(self.repo, listing) or self._download(listing, ctx)
            layout.check_folder(folder)
            self._commit = folder.name
            return folder

    def discard(self) -> int:
        """Delete our own copy; the hub library's cache is not ours."""
        return remove_kept(self._folder)

    @property
    def _folder(self) -> Path:
        return kept_folder("hub", self.repo)

    def _already_here(self) -> Path | None:
        """Our own whole copy, or the hub library's; of a commit whose files are not known, as it is there."""
        listing = self._listed_before()
        if listing is None:
            return hub_api.in_hub_cache(self.repo)
        folder = self._folder / listing.commit
        if all(is_there(file, folder) for file in listing.files):
            return folder
        if cached := hub_api.in_hub_cache(self.repo, listing):
            return cached
        other = hub_api.in_hub_cache(self.repo)
        return other if other and other.name != listing.commit else None

    def _listed_before(self) -> Listing | None:
        """What an earlier run was fetching, or has fetched."""
        try:
            listing = msgspec.json.decode((self._folder / _LISTING).read_bytes(), type=Listing)
        except (OSError, msgspec.DecodeError, ValueError, RecursionError):
            return None
        # Names that differ in odd characters alone share a folder; case makes no other repository.
        return listing if listing.repo.lower() in ("", self.repo.lower()) else None

    def _download(self, listing: Listing, ctx: JobContext) -> Path:
        folder = self._folder / listing.commit
        if folder.is_symlink():
            raise DecdecError(f"{folder} is not used", "it is a link", "delete it, then start again")
        if before := self._listed_before():
            carry_over(before, listing, self._folder)
        require_space(folder, sum(missing_bytes(file, folder) for file in listing.files))
        atomic.write_json(self._folder / _LISTING, listing)
        with hub_api.explained(self.repo):
            download_all(listing.files, folder, hub_api.transport(self.repo, listing.commit), ctx)
        return folder
