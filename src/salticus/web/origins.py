"""Which requests are meant for the desk: by its own names, and from its own pages.

A browser that shows a foreign page can be made to send requests to any address, this machine's
included; what it cannot hide is the name that it asks for (Host) and the page that asks (Origin).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:@/\\?#\[\]]+)(?::\d+)?")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def foreign(host: str, origin: str | None, names: Collection[str], trusted: Collection[str]) -> str:
    """What is foreign about a request, in words; empty if nothing is.

    `names` are the desk's own; pages of `trusted` hosts may send requests too.

    >>> foreign("127.0.0.1:8470", "http://127.0.0.1:8470", own_names("127.0.0.1"), ())
    ''
    >>> foreign("127.0.0.1:8470", "https://evil.example", own_names("127.0.0.1"), ())
    'a page of https://evil.example may not ask this desk; see desk.allowed_hosts'
    """
    name = name_of(host)
    if not name or name not in {*names, *trusted}:
        return f"this desk is not {host!r}; see desk.allowed_hosts"
    if origin is None:
        return ""
    scheme, _, asking = origin.lower().partition("://")
    own = asking == host.lower() or name_of(asking) in trusted
    if scheme not in ("http", "https") or not own:
        return f"a page of {origin} may not ask this desk; see desk.allowed_hosts"
    return ""


def name_of(host: str) -> str:
    """The name in a Host header or an Origin, without its port; empty if there is none.

    >>> name_of("Localhost:8470"), name_of("[::1]"), name_of("a@b")
    ('localhost', '::1', '')
    """
    found = _HOST.fullmatch(host.lower())
    return found[1].strip("[]").rstrip(".") if found else ""


def own_names(address: str) -> frozenset[str]:
    """The names of an address at which the desk was asked."""
    return (_LOOPBACK if is_loopback(address) else frozenset()) | {address.lower()}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "0.0.0.0", "desk.example")]
    [True, True, False, False]
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
