"""Which server is meant, and the key that opens it."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from runtime.errors import DecdecError

# What people copy from an address bar or from documentation, behind the part that all requests share.
_ENDPOINTS = ("/chat/completions", "/models")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_QUOTED = 300
_FIX = "write it as http://localhost:8000/v1"


@dataclass(frozen=True, slots=True)
class Server:
    """`url`: what the OpenAI libraries call the base URL, without a slash at its end.

    `key` is sent to this server alone, and never shown or stored; `key_variable` names where it came from.
    """

    url: str
    key: str = field(default="", repr=False)
    key_variable: str = ""

    @classmethod
    def of(cls, url: str, key_variable: str | None = None) -> Server:
        """From what a person typed. Raises DecdecError for no address, and for a key that is not there."""
        parts = _split(url.strip())
        path = parts.path.rstrip("/")
        for endpoint in _ENDPOINTS:
            path = path.removesuffix(endpoint)
        base = f"{parts.scheme.lower()}://{parts.netloc}{path or '/v1'}"
        return cls(base, _key(key_variable) if key_variable else "", key_variable or "")

    @property
    def host(self) -> str:
        """Name and port, as people know the server."""
        return urlsplit(self.url).netloc

    @property
    def root(self) -> str:
        """The address without `/v1`."""
        return self.url.removesuffix("/v1")

    @property
    def local(self) -> bool:
        """Whether it runs on this machine."""
        name = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return name == "localhost" or name.endswith(".localhost")

    @property
    def exposes_key(self) -> bool:
        """Whether the key travels where others could read it."""
        return bool(self.key) and not self.local and urlsplit(self.url).scheme == "http"

    def quoted(self, text: str, limit: int = MAX_QUOTED) -> str:
        """A text of the server, shortened, without the key: first that, for no part of it would be found."""
        text = text.replace(self.key, "[key]") if self.key else text
        return text if len(text) <= limit else f"{text[:limit]}…"


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url if "://" in url else f"{_scheme(url)}://{url}")
        usable = parts.hostname and parts.port != 0 and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        usable = False
    if not usable or parts.scheme.lower() not in ("http", "https"):
        raise DecdecError("The server's address cannot be used", "it is no http or https address", _FIX, 2)
    if parts.username is not None or parts.password is not None:
        fix = "leave it out, set a variable to the key and name that with --api-key-env"
        raise DecdecError("The server's address cannot be used", "it holds a password", fix, 2)
    if parts.query or parts.fragment:
        raise DecdecError("The server's address cannot be used", "nothing may follow its path", _FIX, 2)
    return parts


def _scheme(address: str) -> str:
    """For an address without one: a name of the Internet is not spoken to in the clear."""
    name = urlsplit(f"//{address}").hostname or ""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "https" if "." in name and not name.endswith((".local", ".localhost")) else "http"
    return "http"


def _key(variable: str) -> str:
    # A key given in the place of a name must not be repeated on the screen.
    if not _VARIABLE.fullmatch(variable):
        fix = "give the variable that holds the key, such as OPENAI_API_KEY"
        raise DecdecError("--api-key-env is no name of a variable", "", fix, 2)
    key = os.environ.get(variable, "").strip()
    if not key:
        raise DecdecError("There is no API key", f"the variable {variable} is not set", "set it to the key")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise DecdecError("The API key cannot be sent", f"{variable} holds something else than one word")
    return key
