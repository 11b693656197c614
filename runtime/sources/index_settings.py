"""How pip was told to reach its index, as far as a request of our own can do the same."""

from __future__ import annotations

import ast
import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from runtime.download.http import CONNECT_S, SILENCE_S, ClientMaker
from runtime.progress import JobContext
from runtime.sources import index_pip

_LINE = re.compile(r"^([\w:-]+)\.([\w-]+)=(.+?)\s*$", re.MULTILINE)
_ONE_COMMAND = frozenset({"install", "download"})
_INDEX_KEYS = frozenset(
    {"index-url", "extra-index-url", "find-links", "no-index", "proxy", "cert", "client-cert", "trusted-host"}
)


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of a proxy and a file or folder of certificates; empty where pip was told of none."""

    proxy: str = field(default="", repr=False)
    certificates: str = ""


def connection(work: Path, ctx: JobContext) -> Connection | None:
    """What pip's settings say; None where they say what only pip can do, or cannot be read."""

    def enough(text: str) -> bool:
        ctx.check()
        return False

    ended = index_pip.run(["config", "list"], work / "tmp", enough)
    if ended.code:
        return None
    known: dict[str, str] = {}
    for section, key, value in _LINE.findall(ended.text):
        if key == "client-cert" or (section in _ONE_COMMAND and key in _INDEX_KEYS):
            return None
        # What the environment says goes before what files say.
        if section == ":env:" or (section == "global" and key not in known):
            known[key] = _unquoted(value)
    usual = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE", "")
    return Connection(known.get("proxy", ""), known.get("cert") or usual)


def client_maker(settings: Connection) -> ClientMaker | None:
    """What makes clients of such a connection; None where they cannot be made."""
    import httpx2

    timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S, pool=None)

    def make() -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            proxy=settings.proxy or None, verify=trust, timeout=timeout, follow_redirects=False
        )

    try:
        trust = _trust(settings.certificates)
        make()
    except (ValueError, ImportError, OSError, httpx2.InvalidURL):
        return None
    return make


def _trust(certificates: str) -> ssl.SSLContext | bool:
    if not certificates:
        return True
    if Path(certificates).is_dir():
        return ssl.create_default_context(capath=certificates)
    return ssl.create_default_context(cafile=certificates)


def _unquoted(value: str) -> str:
    try:
        return str(ast.literal_eval(value))
    except (ValueError, SyntaxError):
        return ""
