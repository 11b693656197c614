"""Where a redirect may lead, and what may be told there.

Headers of the first request that name or admit a person go to its own origin alone: a hub sends its clients
on to the hosts of its content, which need to know nobody.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urljoin, urlsplit

from runtime.errors import DecdecError

MAX_REDIRECTS = 8
STATUSES = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_MAX_URL = 16_384


def next_url(url: str, location: str, doing: str) -> str:
    """The address that a `Location` header means. Raises DecdecError for one that is not followed."""
    try:
        target = urljoin(url, location.strip())
        old, new = urlsplit(url), urlsplit(target)
    except ValueError as error:
        raise _refused(doing, "it has no valid address") from error
    if new.scheme not in _PORTS:
        raise _refused(doing, f"{new.scheme[:20]} is not http or https")
    if not location.strip() or not is_valid(target):
        raise _refused(doing, "it has no valid address")
    inside = _is_loopback(old.hostname or "") and _is_loopback(new.hostname or "")
    if old.scheme == "https" and new.scheme == "http" and not inside:
        raise _refused(doing, f"it leads from https to http at {host(target)}")
    if new.username is not None or new.password is not None:
        raise _refused(doing, "its address holds a password")
    return new._replace(fragment="").geturl()


def is_valid(url: str) -> bool:
    """Whether an address can be asked."""
    try:
        parts = urlsplit(url)
        return parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0 and len(url) <= _MAX_URL
    except ValueError:
        return False


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses have one scheme, host and port."""
    return _origin(urlsplit(one)) == _origin(urlsplit(other))


def host(url: str) -> str:
    """Of an address, for messages."""
    return (urlsplit(url).hostname or "")[:80]


def too_many(doing: str) -> DecdecError:
    """The error for redirects without an end."""
    return _refused(doing, f"there were more than {MAX_REDIRECTS} in a row")


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme, 0)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refused(doing: str, why: str) -> DecdecError:
    return DecdecError(
        f"{doing} failed", f"a redirect was not followed: {why}", "check HF_ENDPOINT and the proxy"
    )
