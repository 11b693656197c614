"""What can go wrong between here and a server, as sentences a person can act on."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from runtime.client.remote.server import Server
from runtime.errors import DecdecError

if TYPE_CHECKING:
    import httpx2

_MAX_PLACE = 200
_AGAIN = "try again; an answer can go on where it broke off"
_LOADING = ("loading model", "model is loading")


class Refused(Exception):
    """A status that is not success. `said`: the server's words; `place`: where it sends us instead;
    `after_s`: when it wants to be asked again.
    """

    def __init__(self, status: int, said: str = "", place: str = "", after_s: int = 0) -> None:
        super().__init__(status, said)
        self.status, self.said, self.place, self.after_s = status, said, place, after_s


def refusal(refused: Refused, server: Server) -> DecdecError:
    """The sentence for a status."""
    host, status = server.host, refused.status
    said = server.quoted(refused.said)
    why = said or f"its answer is {status}"
    if status in (301, 302, 303, 307, 308):
        return _elsewhere(refused, server)
    if status in (401, 403):
        return _locked(server, why)
    if status == 404:
        fix = "check the address, which mostly ends in /v1, and the model's name (--server-model)"
        return DecdecError(
            f"{host} does not know what was asked for", said or f"{server.url} is not there", fix
        )
    if status == 413:
        return DecdecError(f"{host} takes no conversation this long", why, "start a new chat")
    if status == 429:
        wait = f"wait {refused.after_s} seconds" if refused.after_s else "wait a little"
        return DecdecError(f"{host} takes no more questions now", why, f"{wait}, then ask again")
    if any(words in said.lower() for words in _LOADING):
        return DecdecError(
            f"{host} is not ready", "it still loads its model", "wait a little, then try again"
        )
    if status >= 500 or status == 408:
        return DecdecError(f"{host} failed", why, "try again; if it stays so, look into the server's log")
    return DecdecError(f"{host} refused the request", why)


def transport(error: BaseException, server: Server, begun: bool = False) -> DecdecError:
    """The sentence for a connection that failed; `begun`: its answer had started."""
    import httpx2

    if begun and not isinstance(error, httpx2.TimeoutException):
        closed = isinstance(error, httpx2.RemoteProtocolError)
        why = "it was closed before everything had come" if closed else _words(error)
        return DecdecError(f"The connection to {server.host} broke", why, _AGAIN)
    if isinstance(error, httpx2.ConnectError):
        return _unreachable(error, server)
    if isinstance(error, httpx2.ProxyError):
        fix = "check HTTPS_PROXY and HTTP_PROXY, or name the server in NO_PROXY"
        return DecdecError(f"The proxy on the way to {server.host} refused", _words(error), fix)
    if isinstance(error, httpx2.ConnectTimeout):
        return _out_of_reach(server, "it does not answer")
    if isinstance(error, httpx2.TimeoutException):
        return silent(server)
    if isinstance(error, httpx2.ProtocolError):
        fix = f"check the port, and whether the address begins with {_other_scheme(server)}"
        return DecdecError(f"{server.host} does not speak HTTP", _words(error), fix)
    return _out_of_reach(server, _words(error))


def silent(server: Server) -> DecdecError:
    """Nothing came for a long time."""
    fix = "look whether the server still works, then try again"
    return DecdecError(f"{server.host} fell silent", "nothing came for minutes", fix)


def late(server: Server, seconds: float) -> DecdecError:
    """A list of models that comes too slowly."""
    why = f"what it offers had not come after {seconds:g} s"
    return DecdecError(
        f"{server.host} is too slow", why, "look whether the server still works, then try again"
    )


def cut(server: Server) -> DecdecError:
    """The stream ended before the answer did."""
    return DecdecError(f"{server.host} broke off", "its stream ended before the answer did", _AGAIN)


def no_page(server: Server) -> DecdecError:
    """A web page where an answer should be: a login, a proxy's notice, another service."""
    fix = "check the address, and whether a login stands before it"
    return DecdecError(f"{server.host} is no OpenAI-compatible API", "its answer is a web page", fix)


def too_large(server: Server, what: str, limit: int) -> DecdecError:
    """More than is read."""
    why = f"the limit is {limit >> 20} MB" if limit >> 20 else f"the limit is {limit >> 10} kB"
    return DecdecError(f"{server.host} sent {what} that is too large", why)


def local_only(what: str) -> DecdecError:
    """Something that only an engine of one's own can do."""
    fix = "start decdec-chat without --server for it"
    return DecdecError(
        f"{what} is not possible here", "a server answers, and this needs the local engine", fix
    )


def _unreachable(error: httpx2.ConnectError, server: Server) -> DecdecError:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = f"its certificate is not trusted: {cause.verify_message or cause}"
            fix = "trust its authority on this system, or name a file with it in SSL_CERT_FILE"
            return DecdecError(f"{server.host} cannot be trusted", why, fix)
        if isinstance(cause, ssl.SSLError):
            fix = "check the port, and whether the address begins with http://"
            return DecdecError(f"{server.host} does not speak TLS", cause.reason or "", fix)
        if isinstance(cause, socket.gaierror):
            why = "no host of this name is known"
            return _out_of_reach(server, why, "check the address and the network")
        if isinstance(cause, ConnectionRefusedError):
            return _out_of_reach(server, "nothing listens there", "start the server, or check the port")
    return _out_of_reach(server, _words(error))


def _out_of_reach(
    server: Server, why: str, fix: str = "check the address, the network and the server"
) -> DecdecError:
    return DecdecError(f"{server.host} cannot be reached", why, fix)


def _locked(server: Server, why: str) -> DecdecError:
    if server.key:
        return DecdecError(
            f"{server.host} refused the API key", why, f"check the variable {server.key_variable}"
        )
    fix = "set a variable to the key and name it with --api-key-env"
    return DecdecError(f"{server.host} wants an API key", why, fix)


def _elsewhere(refused: Refused, server: Server) -> DecdecError:
    """Not followed: the question and the key were meant for one server."""
    fix = "give --server the address it names, if you trust it"
    place = server.quoted(_place(refused.place), _MAX_PLACE)
    return DecdecError(f"{server.host} sends questions elsewhere", f"to {place}", fix)


def _place(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return "an address that cannot be read"
    text = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else parts.path
    return " ".join(text.split()) or "an address that it does not name"


def _other_scheme(server: Server) -> str:
    return "http://" if server.url.startswith("https") else "https://"


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:_MAX_PLACE] or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it came from, groups of parallel attempts included."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        waiting += [*getattr(cause, "exceptions", ()), cause.__cause__, cause.__context__]
