"""One spelling for one page."""

from __future__ import annotations

import can_ada

from salticus.errors import InputError


def canonical(url: str) -> tuple[str, str]:
    """The URL as it is stored, without fragment, and its host (with the port if it is unusual).

    Law: the canonical form of a canonical form is itself. InputError names what cannot be visited.

    >>> canonical("HTTP://Example.org:80/a/../b?q=1#top")
    ('http://example.org/b?q=1', 'example.org')
    >>> canonical("https://example.org:8443")
    ('https://example.org:8443/', 'example.org:8443')
    """
    try:
        parsed = can_ada.parse(url)
    except (ValueError, TypeError):  # TypeError: a string that is not valid Unicode
        raise InputError(f"{url!a} is not a URL") from None
    if parsed.protocol not in ("http:", "https:"):
        raise InputError(f"{url!a} cannot be visited: only http and https can")
    return parsed.href.partition("#")[0], parsed.host
