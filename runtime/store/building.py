"""Making a model: a staging folder that survives interruptions, and the one rename that publishes it."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.store import atomic, folders, integrity, manifest, settling
from runtime.store.folders import IDENTITY
from runtime.store.locks import exclusive
from runtime.store.names import checked
from runtime.store.oserrors import translated
from runtime.store.records import ModelRecord, delete, open_folder


@contextmanager
def building(
    name: str, identity: dict[str, Any] | None = None, ctx: JobContext | None = None
) -> Iterator[Path]:
    """Hold the lock of a model and give its staging folder, with everything good that is already made.

    Files of a published model of the same name are linked in when their hashes are right, so that a damaged
    or extended model only needs what is missing. The folder stays when the block is left, until `publish`.
    `identity` is JSON that says what the files were made from (source, settings): files made from anything
    else are dropped. Write new files by rename (`runtime.store.atomic`), never into an existing one.
    """
    with exclusive(f"model-{checked(name)}", f"Work on {name}"):
        staging = folders.staging(name)
        with translated(staging, f"Preparing the folder of {name}"):
            settling.recover(name)
            _require_own(folders.final(name))
            _drop_foreign(staging, identity)
            staging.mkdir(parents=True, exist_ok=True)
            _drop_temporaries(staging)
        try:
            _sign(staging, identity)
            _seed(name, staging, identity, ctx or JobContext.silent())
            yield staging
        finally:
            _drop_empty(staging)


def publish(name: str, staging: Path, record: dict[str, Any], ctx: JobContext | None = None) -> ModelRecord:
    """Hash all files into manifest.json and make the staging folder the model, in place of a former one.

    `record` must say `source` and `bits_per_weight`. Call it inside the `building` block of the same name.
    Raises DecdecError, also when somebody removed the staging folder meanwhile: what is there now is a rest.
    """
    if staging != folders.staging(checked(name)):
        raise DecdecError(f"The model {name} cannot be kept", f"{staging} is not its staging folder")
    _require_signed(staging)
    with translated(staging, f"Publishing {name}"):
        _drop_temporaries(staging)
        total = sum((staging / file).stat().st_size for file in manifest.contents(staging))
    manifest.write(staging, record, integrity.counting(ctx or JobContext.silent(), "hash", total))
    # A removal that went on while the files were listed has taken this one too by now.
    _require_signed(staging)
    with translated(staging, f"Publishing {name}"):
        # Names that a crash of the machine takes back would leave a record of files that are not there.
        atomic.sync_tree(staging)
        _take_place(name)
        for leftover in (folders.old(name), folders.quarantine(name)):
            shutil.rmtree(leftover, ignore_errors=True)
        _drop_if_empty(folders.quarantine(name).parent)
    return open_folder(folders.final(name))


def removed_meanwhile(staging: Path) -> DecdecError:
    """The error for a model that lost files while it was being made."""
    return DecdecError(
        "The model is not whole", f"files in {staging} were removed meanwhile", "start it again"
    )


def _require_own(final: Path) -> None:
    """Refuse to put a model in the place of a folder that is somebody else's."""
    if final.exists() and not folders.is_ours(final) and any(final.iterdir()):
        raise DecdecError(
            f"The model {final.name} cannot be made",
            f"{final} is there and holds no model of this program",
            "move that folder away",
        )


def _require_signed(staging: Path) -> None:
    """Refuse a staging folder that is not the one that `building` gave any more."""
    if not (staging / IDENTITY).is_file():
        raise removed_meanwhile(staging)


def _sign(staging: Path, identity: dict[str, Any] | None) -> None:
    """Say what the files are made from; a folder that is removed and appears again does not say it."""
    if identity is not None:
        atomic.write_json(staging / IDENTITY, identity)
    elif not (staging / IDENTITY).exists():
        atomic.write_bytes(staging / IDENTITY, b"")


def _take_place(name: str) -> None:
    final, old = folders.final(name), folders.old(name)
    if final.exists():
        os.rename(final, old)
    try:
        os.rename(folders.staging(name), final)
    except OSError:
        settling.recover(name)
        raise
    atomic.sync_folder(final.parent)


def _drop_foreign(folder: Path, identity: dict[str, Any] | None) -> None:
    if folder.exists() and not _made_from(folder, identity):
        delete(folder)


def _made_from(folder: Path, identity: dict[str, Any] | None) -> bool:
    if identity is None:
        return True
    try:
        known = msgspec.json.decode(folders.identity(folder))
    except (msgspec.DecodeError, RecursionError):
        return False
    return bool(known == msgspec.json.decode(msgspec.json.encode(identity)))


def _drop_empty(folder: Path) -> None:
    """Leave nothing of a source that was refused before its first file was made."""
    if folder.is_dir() and not manifest.contents(folder):
        shutil.rmtree(folder, ignore_errors=True)


def _drop_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _drop_temporaries(folder: Path) -> None:
    for path in folder.rglob("*"):
        if atomic.is_temporary(path):
            path.unlink(missing_ok=True)


def _seed(name: str, staging: Path, identity: dict[str, Any] | None, ctx: JobContext) -> None:
    final = folders.final(name)
    try:
        content = manifest.read(final) if _made_from(final, identity) else None
    except DecdecError:
        content = None
    wanted = {} if content is None else {n: e for n, e in content.files.items() if not (staging / n).exists()}
    on_piece = integrity.counting(ctx, "verify", sum(entry.bytes for entry in wanted.values()))
    for file, entry in wanted.items():
        if integrity.is_good(final / file, entry, False, on_piece):
            _link(final / file, staging / file)
        else:
            integrity.quarantine(name, final, file)


def _link(source: Path, target: Path) -> None:
    """A second name for a file, or a copy where the file system has none."""
    with translated(target, f"Keeping {target.name}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except OSError:
            with source.open("rb") as data, atomic.replacing(target) as file:
                shutil.copyfileobj(data, file)
