"""The only place that talks to a Hugging Face compatible hub, and what its failures mean.

The hub's library gives address, token and offline mode by its own environment variables (HF_ENDPOINT,
HF_TOKEN, HF_HUB_OFFLINE, HF_HOME), and its cache is read. It is imported when first used: a start without a
download needs none of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import msgspec

from runtime.download.answers import Headers
from runtime.download.documents import PATIENCE, Document, read_document
from runtime.download.errors import StatusError, UnreachableError
from runtime.download.files import RemoteFile, check_distinct
from runtime.download.http import Address, HttpTransport
from runtime.download.limits import Limits
from runtime.errors import DecdecError
from runtime.sources import layout
from runtime.store.records import has_size

_MAX_DOCUMENT_BYTES = 32 << 20
_TAG = re.compile(r'(?:W/)?"?([0-9a-f]{40}|[0-9a-f]{64})"?')


class Listing(msgspec.Struct, frozen=True):
    """The files of one commit of a repository that make a model. `repo`: empty where older versions wrote."""

    commit: str
    files: tuple[RemoteFile, ...]
    repo: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", self.commit):
            raise ValueError(f"{self.commit!r} is no name of a commit")

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)


class Hub(msgspec.Struct, frozen=True):
    """A hub's address, and the headers that tell it who asks."""

    url: str
    headers: dict[str, str] = {}

    @property
    def shown(self) -> str:
        """The address without a password, for people."""
        return re.sub(r"//[^/]*@", "//", self.url)


class _Lfs(msgspec.Struct):
    size: int
    sha256: str


class _Sibling(msgspec.Struct):
    rfilename: str
    size: int | None = None
    blobId: str | None = None  # noqa: N815
    lfs: _Lfs | None = None


class _Info(msgspec.Struct):
    sha: str
    siblings: list[_Sibling]


def list_files(repo: str, tick: Callable[[], None]) -> Listing:
    """What the hub has for a repository now; `tick` may raise to stop it.

    Raises DecdecError; UnreachableError when offline.
    """
    hub = settings(f"{repo} is not on this machine")
    address = Address(f"{hub.url}/api/models/{quote(repo)}?blobs=true", hub.headers, server=hub.shown)
    with explained(repo):
        return _listing(ask(address, f"Asking for {repo}", tick), repo)


def ask(
    address: Address,
    doing: str,
    tick: Callable[[], None],
    limits: Limits = PATIENCE,
    most: int = _MAX_DOCUMENT_BYTES,
) -> Document:
    """A document of the hub, of at most `most` bytes. Raises as `read_document`."""
    try:
        return read_document(address, doing, tick, most, limits=limits)
    except UnreachableError as error:
        fix = "check the network and HF_ENDPOINT; models that are already here work offline"
        raise UnreachableError(error.what, error.why, fix) from error


def transport(repo: str, commit: str) -> HttpTransport:
    """Opens the files of one commit of a repository."""
    hub = settings(f"{repo} is not on this machine")

    def address(file: RemoteFile) -> Address:
        url = f"{hub.url}/{quote(repo)}/resolve/{commit}/{quote(file.name)}"
        return Address(url, hub.headers, lambda status, found: _check(status, found, file, commit), "the hub")

    return HttpTransport(address)


def in_hub_cache(repo: str, listing: Listing | None = None) -> Path | None:
    """The folder of a model in the hub library's own cache, where every listed file is there with its size.

    No listing: of the commit that it knows as main, as whole as can be told.
    """
    from huggingface_hub import snapshot_download

    commit, files = (listing.commit, listing.files) if listing else (None, ())
    # Another program may have fetched no more than the weights; what we would not fetch may be missing.
    names = [file.name for file in files] or None
    try:
        found = snapshot_download(repo, revision=commit, allow_patterns=names, local_files_only=True)
        layout.check_folder(Path(found))
    except (OSError, ValueError, DecdecError):  # a ValueError for names that the library does not accept
        return None
    return Path(found) if all(has_size(Path(found, file.name), file.bytes) for file in files) else None


@contextmanager
def explained(repo: str) -> Iterator[None]:
    """Statuses of the hub as what they mean for a repository."""
    try:
        yield
    except StatusError as error:
        raise _explain(error, repo) from error
    except msgspec.MsgspecError as error:
        raise DecdecError(f"The hub's answer for {repo} could not be understood", str(error)[:300]) from error


def settings(what_is_missing: str) -> Hub:
    """The hub as the environment names it; UnreachableError in its offline mode."""
    # Not the library's own headers: making them asks the hub for a list of programs that it counts.
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        fix = "unset it; models that are here work offline"
        raise UnreachableError(what_is_missing, "HF_HUB_OFFLINE is set", fix)
    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else _token()
    if token is None:
        return Hub(constants.ENDPOINT)
    if not re.fullmatch(r"[!-~]+", token):
        raise DecdecError("HF_TOKEN cannot be used", "it holds characters that no token has", "set it anew")
    return Hub(constants.ENDPOINT, {"Authorization": f"Bearer {token}"})


def _token() -> str | None:
    """The token of the environment, or the one that was saved on this machine."""
    from huggingface_hub import constants, get_token

    try:
        return get_token()
    except (OSError, ValueError) as error:  # a ValueError for what is no text
        why = f"{constants.HF_TOKEN_PATH} cannot be read as text"
        raise DecdecError("The hub's token cannot be used", why, "delete it, or set HF_TOKEN") from error


def _explain(error: StatusError, repo: str) -> DecdecError:
    from huggingface_hub import constants

    hub, code = Hub(constants.ENDPOINT).shown, error.headers.get("x-error-code", "")
    if code == "GatedRepo":
        fix = f"accept it at {hub}/{repo} and set HF_TOKEN to a token of yours"
        return DecdecError(f"{repo} is gated", "its licence must be accepted first", fix)
    # A hub does not tell strangers which of its repositories are private.
    if code == "RepoNotFound" or (error.status == 404 and not code):
        fix = "check the name; for a private model set HF_TOKEN to a token that may read it"
        return DecdecError(f"{repo} was not found on {hub}", "it does not exist there, or it is private", fix)
    if error.status in (401, 403):
        fix = "check the name, and set HF_TOKEN to a token that may read it"
        return DecdecError(f"{hub} refused {repo}", error.why, fix)
    return DecdecError(f"{hub} did not give {repo}", error.why, "check the name and HF_ENDPOINT")


def _listing(document: Document, repo: str) -> Listing:
    info = msgspec.json.decode(document.body, type=_Info)
    siblings = {sibling.rfilename: sibling for sibling in info.siblings}
    chosen = set(layout.select(siblings, f"{repo} on the hub"))
    # Not by the dictionary: of a name that is listed twice both must be seen.
    found = [_remote_file(sibling) for sibling in info.siblings if sibling.rfilename in chosen]
    files = msgspec.convert(sorted(found, key=lambda file: str(file["name"])), tuple[RemoteFile, ...])
    check_distinct(files, repo)
    return msgspec.convert({"commit": info.sha, "files": files, "repo": repo}, Listing)


def _remote_file(sibling: _Sibling) -> dict[str, str | int | None]:
    if sibling.lfs is not None:
        return {"name": sibling.rfilename, "bytes": sibling.lfs.size, "sha256": sibling.lfs.sha256}
    return {"name": sibling.rfilename, "bytes": sibling.size, "git_sha1": sibling.blobId or ""}


def _check(status: int, headers: Headers, file: RemoteFile, commit: str) -> None:
    """Refuse an answer whose headers tell of another file than the hub's own list."""
    if status >= 400:
        return
    told = _TAG.fullmatch(headers.get("x-linked-etag", ""))
    known = {len(name): name for name in (file.sha256, file.git_sha1) if name}
    pairs = [
        ("commit", headers.get("x-repo-commit", commit), commit),
        ("size", headers.get("x-linked-size", str(file.bytes)), str(file.bytes)),
        ("hash", told[1] if told else "", known.get(len(told[1]), told[1]) if told else ""),
    ]
    for what, found, wanted in pairs:
        if found != wanted:
            raise DecdecError(
                f"Downloading {file.name} failed",
                f"the hub contradicts itself: its list says {what} {wanted}, its answer {found[:80]}",
                "start again; if it stays so, the hub or a proxy before it is at fault",
            )
