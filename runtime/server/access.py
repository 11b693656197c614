"""Who may ask: API key, Host and Origin of a request. A decision by headers alone, without a socket."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from runtime.errors import DecdecError
from runtime.server.errors import ApiError

ANY_ORIGIN = "*"
# A probe has no key; what it learns is a word.
OPEN_PATHS = frozenset({"/health"})


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
            raise DecdecError(
                "This API key cannot be used", "it holds blanks or characters beyond ASCII", code=2
            )
        for origin in self.origins:
            _check_origin(origin)

    def stranger(self, scope: Scope) -> ApiError | None:
        """Why a request is not let in, by the name it calls and the page it comes from; None if it is."""
        headers = Headers(scope=scope)
        if not self._knows_host(headers.get("host", "")):
            return ApiError(403, "This server is not called by that name.", "host_refused")
        origin = headers.get("origin")
        if origin is not None and not self.origins & {origin, ANY_ORIGIN}:
            fix = "the server's --allow-origin lets one in"
            return ApiError(403, f"Web pages of this origin may not ask here; {fix}.", "origin_refused")
        return None

    def keyless(self, scope: Scope) -> ApiError | None:
        """Why a request is not let in, by the key it brings; None if it is."""
        authorization = Headers(scope=scope).get("authorization", "")
        return None if scope["path"] in OPEN_PATHS or self._has_key(authorization) else _no_key()

    def _has_key(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self.key.encode())
        return not self.key or (same and scheme.lower() == "bearer")

    def _knows_host(self, host: str) -> bool:
        if self.hosts is None:
            return True
        name = _host_name(host)
        return name == "localhost" or name in self.hosts or _is_loopback(name)


class Gate:
    """Middleware: what `refusal` has a reason against goes no further."""

    def __init__(self, app: ASGIApp, refusal: Callable[[Scope], ApiError | None]) -> None:
        self._app, self._refusal = app, refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refusal, hand on the rest."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal.response if refusal else self._app)(scope, receive, send)


def _no_key() -> ApiError:
    sentence = "A valid API key is missing: send it as Authorization: Bearer KEY."
    return ApiError(401, sentence, "invalid_api_key", headers={"WWW-Authenticate": "Bearer"})


def _host_name(host: str) -> str:
    """Of a Host header: without its port and the brackets of IPv6; empty for what is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


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
