"""What counts as the product's own refusal of an input."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from runtime.errors import DecdecError

MAX_SENTENCE = 4000


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Suppresses a DecdecError of a readable length that does not hide a lack of memory."""
    try:
        yield
    except DecdecError as error:
        cause = error.__cause__ or error.__context__
        while cause is not None:
            if isinstance(cause, MemoryError) or "can't allocate" in str(cause):
                raise MemoryError(f"hidden by: {error.sentence}") from error
            cause = cause.__cause__ or cause.__context__
        if len(error.sentence) > MAX_SENTENCE:
            raise AssertionError(error.sentence) from error
