"""The only place of downloads that speaks HTTP: with our own rule for redirects, and errors as sentences."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from runtime.download import answers, redirects
from runtime.download.answers import Answer, Headers, Question
from runtime.download.errors import UnreachableError
from runtime.download.files import RemoteFile
from runtime.errors import DecdecError

if TYPE_CHECKING:
    import httpx2

CONNECT_S, SILENCE_S = 15.0, 30.0
CHECK_NETWORK = "check the network, then start again: what is here is kept"
ClientMaker = Callable[[], "httpx2.AsyncClient"]
_LINKED_SHA256 = re.compile(r'(?:W/)?"?([0-9a-f]{64})"?')


def nothing(status: int, headers: Headers) -> None:
    """No check of answers of the first origin."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a file is. `headers` go to the origin of `url` alone.

    `check` sees status and headers of every answer of that origin, and raises to refuse one. `server`: what
    people call the other side.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[int, Headers], None] = nothing
    server: str = "the server"


class HttpTransport:
    """Opens files by their addresses; one set of connections for all of them."""

    def __init__(
        self, address_of: Callable[[RemoteFile], Address], client: ClientMaker | None = None
    ) -> None:
        self._address_of, self._make = address_of, client or new_client
        self._client: httpx2.AsyncClient | None = None

    @classmethod
    def of(
        cls, url: str, headers: Mapping[str, str] | None = None, client: ClientMaker | None = None
    ) -> HttpTransport:
        """For one plain URL."""
        address = Address(url, headers or {})
        return cls(lambda file: address, client)

    @asynccontextmanager
    async def open(self, file: RemoteFile, start: int, etag: str) -> AsyncIterator[Answer]:
        """As `runtime.download.transport.Transport`."""
        address = self._address_of(file)
        question = Question(file, start, etag, address.server)
        if self._client is None:
            self._client = self._make()
        async with request(self._client, address, question.headers, question.doing) as (response, linked):
            headers = lower(response.headers)
            begins = answers.start_of(response.status_code, headers, question)
            pieces = _pieces(response, headers, question)
            yield Answer(begins, pieces, answers.valid_etag(headers.get("etag", "")), linked)

    async def close(self) -> None:
        """End all connections; a later `open` makes new ones."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def new_client() -> httpx2.AsyncClient:
    """Connections by the environment's settings: HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE."""
    import httpx2

    timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S, pool=None)
    try:
        return httpx2.AsyncClient(timeout=timeout, follow_redirects=False)
    except (ValueError, ImportError, OSError, httpx2.InvalidURL) as error:
        fix = "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
        raise DecdecError("No connection can be made", str(error), fix) from error


@asynccontextmanager
async def request(
    client: httpx2.AsyncClient, address: Address, headers: Mapping[str, str], doing: str
) -> AsyncIterator[tuple[httpx2.Response, str]]:
    """The answer at the end of all redirects, not read yet, and the SHA-256 that the first origin told."""
    if not redirects.is_valid(address.url):
        raise _unusable(doing, address.server)
    url, private = _without_password(address)
    own, linked = url, ""
    for _ in range(redirects.MAX_REDIRECTS + 1):
        server = address.server if redirects.same_origin(url, own) else redirects.host(url)
        with explained(doing, server):
            response = await _send(client, url, {**headers, **private})
        try:
            found = lower(response.headers)
            if redirects.same_origin(url, own):
                address.check(response.status_code, found)
                match = _LINKED_SHA256.fullmatch(found.get("x-linked-etag", ""))
                linked = match[1] if match else linked
            if response.status_code not in redirects.STATUSES:
                yield response, linked
                return
        finally:
            await response.aclose()
        url = redirects.next_url(url, found.get("location", ""), doing)
        if not redirects.same_origin(url, own):
            private = {}
    raise redirects.too_many(doing)


def _without_password(address: Address) -> tuple[str, dict[str, str]]:
    """An address and its own headers; what stands before its host becomes a header like the others."""
    parts, headers = urlsplit(address.url), dict(address.headers)
    before, at, host = parts.netloc.rpartition("@")
    if at and not any(name.lower() == "authorization" for name in headers):
        user, _, password = before.partition(":")
        token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    return parts._replace(netloc=host).geturl(), headers


async def _send(client: httpx2.AsyncClient, url: str, headers: dict[str, str]) -> httpx2.Response:
    # A cookie that one host set must not reach another on the same address.
    client.cookies.clear()
    return await client.send(client.build_request("GET", url, headers=headers), stream=True)


async def _pieces(response: httpx2.Response, headers: Headers, question: Question) -> AsyncIterator[bytes]:
    # In no pieces of a set size: those would hold back what came before a cut.
    first = True
    with explained(question.doing, question.server):
        async for piece in response.aiter_raw():
            if first:
                answers.check_first(piece, headers, question)
            first = False
            yield piece


@contextmanager
def explained(doing: str, server: str) -> Iterator[None]:
    """Failures of connections as UnreachableError, impossible addresses as DecdecError."""
    import httpx2

    try:
        yield
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as error:
        raise _unusable(doing, server) from error
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
        detail = " ".join(str(error).split())[:200] or type(error).__name__
        why = f"{server} cannot be reached: {detail}"
        raise UnreachableError(f"{doing} failed", why, CHECK_NETWORK) from error


def _unusable(doing: str, server: str) -> DecdecError:
    """Without the address and the headers themselves: those may hold secrets."""
    why = f"the address or the headers for {server} cannot be used"
    return DecdecError(f"{doing} failed", why, "check HF_ENDPOINT and HF_TOKEN")


def lower(headers: httpx2.Headers) -> dict[str, str]:
    """Headers with lower-case names."""
    return {name.lower(): value for name, value in headers.items()}
