"""Who may ask: API key, Host and Origin of a request. A decision by headers alone, without a socket."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from runtime.errors import DecdecError
from runtime.server.errors import CLOSE, ApiError

ANY_ORIGIN = "*"
# A probe has no key; what it learns is a word.
OPEN_PATHS = frozenset({"/health"})
# A guesser gets nowhere against so many characters that nobody chose by hand.
MIN_KEY = 16
MAX_HEAD_BYTES = 32 << 10
# Headers that two readers could understand differently if they came twice.
_ONCE = ("host", "origin", "content-type", "content-length", "transfer-encoding")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\[\]\\]+)(:[0-9]*)?")
# What a browser says of a request that a page of another place caused.
_FOREIGN = ("cross-site", "same-site")


@dataclass(frozen=True, slots=True)
class Access:
    """`key`: what a client must bring, "" for none. `origins`: of web pages that may ask, "*" for any.

    `hosts`: names by which this server may be called, beside addresses of this machine itself; None for any.
    On a loopback address they keep out pages whose name was made to point here (DNS rebinding).
    """

    key: str = field(default="", repr=False)
    origins: frozenset[str] = frozenset()
    hosts: frozenset[str] | None = frozenset()

    def __post_init__(self) -> None:
        if not all("!" <= character <= "~" for character in self.key):
            raise _bad_key("it holds blanks or characters beyond ASCII")
        if 0 < len(self.key) < MIN_KEY:
            raise _bad_key(f"it has fewer than {MIN_KEY} characters")
        for origin in self.origins:
            _check_origin(origin)

    def stranger(self, scope: Scope) -> ApiError | None:
        """Why a request is not let in, by the name it calls and the page it comes from; None if it is."""
        headers = Headers(scope=scope)
        if refusal := _ambiguous(headers):
            return refusal
        if not self._knows_host(headers.get("host", "")):
            return ApiError(403, "This server is not called by that name.", "host_refused")
        if not self._knows_page(headers):
            fix = "the server's --allow-origin lets one in"
            return ApiError(403, f"Web pages of this origin may not ask here; {fix}.", "origin_refused")
        return None

    def keyless(self, scope: Scope) -> ApiError | None:
        """Why a request is not let in, by the key it brings; None if it is."""
        if not self.key or scope["path"] in OPEN_PATHS:
            return None
        return None if self._has_key(Headers(scope=scope).getlist("authorization")) else _no_key()

    def _has_key(self, authorizations: list[str]) -> bool:
        """Takes as long whatever was given, so that no guess learns how near it was."""
        scheme, _, given = (authorizations or [""])[0].partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self.key.encode())
        return same and len(authorizations) == 1 and scheme.lower() == "bearer"

    def _knows_host(self, host: str) -> bool:
        if self.hosts is None:
            return True
        name = _host_name(host)
        return name == "localhost" or name in self.hosts or _is_loopback(name)

    def _knows_page(self, headers: Headers) -> bool:
        """Not every request of a page names its origin, but browsers say that a page caused it."""
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "") not in _FOREIGN
        return bool(self.origins & {origin, ANY_ORIGIN})


class Gate:
    """Middleware: what `refusal` has a reason against goes no further. It is told so after `delay_s`."""

    def __init__(
        self, app: ASGIApp, refusal: Callable[[Scope], ApiError | None], delay_s: float = 0.0
    ) -> None:
        self._app, self._refusal, self._delay_s = app, refusal, delay_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refusal, hand on the rest."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal:
            await asyncio.sleep(self._delay_s)
        await (refusal.response if refusal else self._app)(scope, receive, send)


def _ambiguous(headers: Headers) -> ApiError | None:
    """Why a head is not read at all: something between may have understood it otherwise."""
    # Each line has a colon, a blank and an end of two bytes.
    if sum(len(name) + len(value) + 4 for name, value in headers.raw) > MAX_HEAD_BYTES:
        return ApiError(
            431, f"The headers are larger than {MAX_HEAD_BYTES} bytes.", "too_large", headers=CLOSE
        )
    twice = [name for name in _ONCE if len(headers.getlist(name)) > 1]
    if "content-length" in headers and "transfer-encoding" in headers:
        twice.append("length of the body")
    if twice:
        return ApiError(400, f"The {twice[0]} is given twice.", "ambiguous", headers=CLOSE)
    return None


def _bad_key(why: str) -> DecdecError:
    fix = 'take a random one, as of python3 -c "import secrets; print(secrets.token_urlsafe())"'
    return DecdecError("This API key cannot be used", why, fix, code=2)


def _no_key() -> ApiError:
    sentence = "A valid API key is missing: send it as Authorization: Bearer KEY."
    return ApiError(401, sentence, "invalid_api_key", headers={"WWW-Authenticate": "Bearer"})


def _host_name(host: str) -> str:
    """Of a Host header: without its port and the brackets of IPv6; empty for what is none."""
    found = _HOST.fullmatch(host)
    return found[1].strip("[]").lower() if found else ""


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _check_origin(origin: str) -> None:
    parts = urlsplit(origin)
    whole = parts.scheme and parts.netloc and not (parts.path or parts.query or parts.fragment)
    if origin not in (ANY_ORIGIN, "null") and not whole:
        fix = "give scheme, host and port alone, as https://chat.example.org or http://localhost:3000"
        raise DecdecError(f"{origin!r} is no origin of web pages", "", fix, code=2)
