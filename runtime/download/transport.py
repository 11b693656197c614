"""What a download needs of the other side."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from runtime.download.answers import Answer
from runtime.download.files import RemoteFile


class Transport(Protocol):
    """Opens files from an offset on."""

    def open(self, file: RemoteFile, start: int, etag: str) -> AbstractAsyncContextManager[Answer]:
        """The answer to a request for what follows `start`, if it is still version `etag` (empty: unknown).

        Raises UnreachableError, also while pieces are read, when the connection breaks; ChangedError where
        only beginning anew helps.
        """
        ...

    async def close(self) -> None:
        """End everything that `open` began."""
        ...
