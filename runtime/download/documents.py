"""Small documents, as lists of files: whole or not at all, by the same rules as files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from runtime.download import answers
from runtime.download.errors import BusyError, UnreachableError
from runtime.download.fetching import Wait
from runtime.download.http import CHECK_NETWORK, Address, ClientMaker, explained, lower, new_client, request
from runtime.download.limits import Attempts, Limits
from runtime.download.running import run
from runtime.errors import DecdecError

if TYPE_CHECKING:
    import httpx2

MAX_BYTES = 16 << 20
PATIENCE = Limits(tries=4, longest_asked_s=60.0)


class Document(msgspec.Struct, frozen=True):
    """A document, the headers of its answer by lower-case names, and the address it came from at last."""

    body: bytes
    headers: dict[str, str]
    url: str


def read_document(
    address: Address,
    doing: str,
    tick: Callable[[], None],
    limit: int = MAX_BYTES,
    client: ClientMaker | None = None,
    limits: Limits = PATIENCE,
    wait: Wait = asyncio.sleep,
    pages: bool = False,
) -> Document:
    """Read what lies at an address. `tick` is called about every 0.1 s and may raise to stop it.

    Tries again only where the server asks for patience (429, 503). Raises UnreachableError, StatusError, or
    DecdecError for more than `limit` bytes, or for a page for people unless `pages` are what is wanted.
    """
    wanted = _Wanted(address, doing, limit, pages)
    return run(_read(wanted, client or new_client, limits, wait), tick)


@dataclass(frozen=True, slots=True)
class _Wanted:
    address: Address
    doing: str
    limit: int
    pages: bool


async def _read(wanted: _Wanted, make: ClientMaker, limits: Limits, wait: Wait) -> Document:
    attempts = Attempts(limits, 0)
    async with make() as client:
        while True:
            try:
                async with asyncio.timeout(limits.answer_s):
                    return await _once(client, wanted)
            except BusyError as error:
                await wait(attempts.wait_after(error, 0))
            except TimeoutError as error:
                why = f"{wanted.address.server} did not answer within {limits.answer_s:.0f} s"
                raise UnreachableError(f"{wanted.doing} failed", why, CHECK_NETWORK) from error


async def _once(client: httpx2.AsyncClient, wanted: _Wanted) -> Document:
    doing, server = wanted.doing, wanted.address.server
    async with request(client, wanted.address, answers.ALWAYS, doing) as (response, _):
        headers = lower(response.headers)
        answers.check_status(response.status_code, headers, doing)
        answers.check_encoding(headers, doing, server)
        if not wanted.pages and answers.is_page(headers):
            raise answers.page_instead(doing, server)
        body = bytearray()
        with explained(doing, server):
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > wanted.limit:
                    raise DecdecError(f"{doing} failed", f"{server} sent more than {wanted.limit} bytes")
        return Document(bytes(body), headers, str(response.url))
