"""The only place that speaks HTTP: one server, redirects not followed, sizes bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

import httpx2

from runtime.client.remote import failures, limits
from runtime.client.remote.documents import Piece, read_error, read_piece
from runtime.client.remote.failures import Refused
from runtime.client.remote.server import Server
from runtime.errors import DecdecError

_EVENTS = "text/event-stream; charset=utf-8"


class Connection:
    """Asks a server. Raises DecdecError for what goes wrong, `Refused` for a status that is no success."""

    def __init__(self, server: Server) -> None:
        """Opens nothing yet. DecdecError where the environment's settings of proxies are unusable."""
        self._server = server
        headers = {"Accept-Encoding": "identity"}
        if server.key:
            headers["Authorization"] = f"Bearer {server.key}"
        try:
            self._http = httpx2.AsyncClient(
                headers=headers,
                timeout=httpx2.Timeout(limits.SILENCE_S, connect=limits.CONNECT_S),
                follow_redirects=False,
                # A proxy between this machine and itself is never meant.
                trust_env=not server.local,
            )
        except (ValueError, ImportError, OSError, httpx2.InvalidURL) as error:
            fix = "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
            raise DecdecError("No connection can be made", str(error), fix) from error

    async def get(self, url: str) -> bytes:
        """A whole document, which does not come in drops."""
        try:
            async with asyncio.timeout(limits.LIST_S):
                return await self._document(url)
        except TimeoutError:
            raise failures.late(self._server, limits.LIST_S) from None

    async def _document(self, url: str) -> bytes:
        with self._explained():
            async with self._http.stream("GET", url, timeout=limits.SHORT_S) as response:
                await self._check(response)
                with self._explained(begun=True):
                    return await self._read(response, limits.MAX_DOCUMENT_BYTES)

    async def answer(self, body: bytes) -> AsyncGenerator[Piece, None]:
        """The pieces of a chat completion, streamed or not."""
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
        url = f"{self._server.url}/chat/completions"
        with self._explained():
            async with self._http.stream("POST", url, content=body, headers=headers) as response:
                await self._check(response)
                with self._explained(begun=True):
                    async for piece in self._pieces(response):
                        yield piece

    async def close(self) -> None:
        """End every request."""
        await self._http.aclose()

    async def _pieces(self, response: httpx2.Response) -> AsyncGenerator[Piece, None]:
        kind = response.headers.get("content-type", "").lower()
        if "html" in kind:
            raise failures.no_page(self._server)
        if "json" in kind and "ndjson" not in kind:
            yield read_piece(await self._read(response, limits.MAX_DOCUMENT_BYTES))
            return
        # Servers that label their stream otherwise send the same events.
        response.headers["content-type"] = _EVENTS
        async for event in httpx2.EventSource(response, limits.MAX_EVENT_BYTES):
            if event.data.strip():
                yield read_piece(event.data.strip())

    async def _check(self, response: httpx2.Response) -> None:
        if response.is_success:
            return
        headers = response.headers
        body = await self._beginning(response)
        after = headers.get("retry-after", "")
        raise Refused(
            response.status_code,
            read_error(body, headers.get("content-type", "")),
            headers.get("location", ""),
            int(after) if after.isascii() and after.isdigit() and len(after) < 6 else 0,
        )

    async def _beginning(self, response: httpx2.Response) -> bytes:
        read = b""
        async for part in response.aiter_bytes():
            read += part
            if len(read) >= limits.MAX_ERROR_BYTES:
                break
        return read[: limits.MAX_ERROR_BYTES]

    async def _read(self, response: httpx2.Response, limit: int) -> bytes:
        if "html" in response.headers.get("content-type", "").lower():
            raise failures.no_page(self._server)
        read = bytearray()
        async for part in response.aiter_bytes():
            read += part
            if len(read) > limit:
                raise failures.too_large(self._server, "a document", limit)
        return bytes(read)

    @contextmanager
    def _explained(self, begun: bool = False) -> Iterator[None]:
        try:
            yield
        except httpx2.SSEError as error:
            raise failures.too_large(self._server, "an event", limits.MAX_EVENT_BYTES) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise failures.transport(error, self._server, begun) from error
