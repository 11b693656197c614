"""The only place that talks to a Hugging Face compatible hub, and what its failures mean.

The library is imported when first used: it is heavy, and a start without a download needs none of it. Its own
environment variables apply (HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, HF_HOME).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from runtime.errors import DecdecError
from runtime.sources import layout
from runtime.sources.resumable import RemoteFile, UnreachableError

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo, RepoSibling

_LIST_TIMEOUT_S, _READ_TIMEOUT_S = 15.0, 10.0
_PIECE_BYTES = 256 << 10
_RANGE = re.compile(r"bytes (\d+)-")


class Listing(msgspec.Struct, frozen=True):
    """The files of one commit of a repository that make a model."""

    commit: str
    files: tuple[RemoteFile, ...]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", self.commit):
            raise ValueError(f"{self.commit!r} is no name of a commit")

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)


def list_files(repo: str) -> Listing:
    """What the hub has for a repository now. Raises DecdecError; UnreachableError when offline."""
    with _explained(repo):
        from huggingface_hub import HfApi

        info = HfApi().model_info(repo, files_metadata=True, timeout=_LIST_TIMEOUT_S)
        return _listing(info, repo)


class HubTransport:
    """Opens the files of one commit of a repository."""

    def __init__(self, repo: str, commit: str) -> None:
        self._repo, self._commit = repo, commit

    @contextmanager
    def open(self, name: str, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        """As `runtime.sources.resumable.Transport`."""
        with _explained(self._repo):
            from huggingface_hub import hf_hub_url
            from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

            # Identity keeps lengths and offsets those of the file itself.
            headers = {**build_hf_headers(), "Accept-Encoding": "identity", "Range": f"bytes={start}-"}
            url = hf_hub_url(self._repo, name, revision=self._commit)
            request = get_session().stream(
                "GET", url, headers=headers, timeout=_READ_TIMEOUT_S, follow_redirects=True
            )
            with request as response:
                hf_raise_for_status(response)
                yield _start_of(response.headers), response.iter_bytes(_PIECE_BYTES)


def in_hub_cache(repo: str, commit: str | None = None) -> Path | None:
    """The folder of a whole model in the hub library's own cache; no commit: the one it knows as main."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repo, revision=commit, local_files_only=True))
        layout.check_folder(folder)
    except (LocalEntryNotFoundError, DecdecError):
        return None
    return folder


@contextmanager
def _explained(repo: str) -> Iterator[None]:
    from huggingface_hub import errors

    known = (errors.OfflineModeIsEnabled, errors.HTTPError, errors.HFValidationError)
    try:
        yield
    except known as error:
        raise _explain(error, repo) from error
    except (ValueError, KeyError, TypeError) as error:
        raise DecdecError(f"The hub's answer for {repo} could not be understood", str(error)[:300]) from error


def _explain(error: Exception, repo: str) -> DecdecError:
    from huggingface_hub import constants, errors

    hub = constants.ENDPOINT
    if isinstance(error, errors.OfflineModeIsEnabled):
        return UnreachableError(
            f"{repo} is not on this machine", "HF_HUB_OFFLINE is set", "unset it to download the model"
        )
    if isinstance(error, errors.GatedRepoError):
        fix = f"accept it at {hub}/{repo} and set HF_TOKEN to a token of yours"
        return DecdecError(f"{repo} is gated", "its licence must be accepted first", fix)
    if isinstance(error, errors.RepositoryNotFoundError):
        fix = "check the name; for a private model set HF_TOKEN to a token that may read it"
        return DecdecError(f"{repo} was not found on {hub}", "it does not exist there, or it is private", fix)
    if isinstance(error, errors.HFValidationError):
        return DecdecError(f"{repo!r} is not the name of a repository", str(error)[:300])
    status = error.response.status_code if isinstance(error, errors.HfHubHTTPError) else 503
    if status in (401, 403):
        return DecdecError(
            f"{hub} refused {repo}", f"its answer is {status}", "set HF_TOKEN to a token that may read it"
        )
    if status < 500 and status not in (408, 416, 429):
        return DecdecError(
            f"{hub} did not give {repo}", f"its answer is {status}", "check the name and HF_ENDPOINT"
        )
    detail = " ".join(str(error).split())[:200] or type(error).__name__
    fix = "check the network and HF_ENDPOINT, then start again; models that are already here work offline"
    return UnreachableError(f"{hub} cannot be reached for {repo}", detail, fix)


def _listing(info: ModelInfo, repo: str) -> Listing:
    siblings = {sibling.rfilename: sibling for sibling in info.siblings or []}
    files = tuple(_remote_file(siblings[name]) for name in layout.select(siblings, f"{repo} on the hub"))
    return msgspec.convert({"commit": info.sha, "files": files}, Listing, from_attributes=True)


def _remote_file(sibling: RepoSibling) -> dict[str, Any]:
    if sibling.lfs is not None:
        return {"name": sibling.rfilename, "bytes": sibling.lfs.size, "sha256": sibling.lfs.sha256}
    return {"name": sibling.rfilename, "bytes": sibling.size, "git_sha1": sibling.blob_id or ""}


def _start_of(headers: Any) -> int:
    match = _RANGE.match(headers.get("content-range", ""))
    return int(match[1]) if match else 0
