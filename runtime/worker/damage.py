"""Why a model cannot be used: often because a disk or a person changed its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runtime import store
from runtime.errors import Interrupted, MachineLimit
from runtime.progress import JobContext


@contextmanager
def blamed_on_files(model: str, ctx: JobContext) -> Iterator[None]:
    """When the block fails, compare the model's files with their hashes; a damaged one is the better reason.

    It is then in quarantine, and DecdecError says which and how to make it again. Else the failure stands, as
    do a stop and what the machine has not got.
    """
    try:
        yield
    except (Interrupted, MachineLimit):
        raise
    except Exception:
        store.verify_files(store.find(model), quick=False, ctx=ctx)
        raise
