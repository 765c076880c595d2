"""One spelling for one page."""

from __future__ import annotations

import re

import can_ada

from salticus.errors import InputError

TRACKING = (
    r"(?:(?:utm|itm|mtm|hsa)_\w*|pk_(?:campaign|kwd|source|medium|content|cid)"
    r"|(?:fb|g|d|y|tw|tt|wic)clid|msclkid|gclsrc|gad_source|[gw]braid|srsltid|igsh(?:id)?"
    r"|li_fat_id|mc_[ce]id|mkt_tok|_hs(?:enc|mi)|vero_id|oly_\w+_id|at_(?:medium|campaign)"
    r"|cmpid|wt_mc|xtor|s_cid|_g[al]|ref_src)=[^&]*"
)
"""A parameter that only says where a visitor came from, as a pattern."""
_TRACKING = re.compile(TRACKING, re.I)


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


def without_tracking(url: str) -> str:
    """The URL without the parameters that only say where a visitor came from.

    >>> without_tracking("https://shop.example/p?id=1&utm_source=feed&gclid=x#top")
    'https://shop.example/p?id=1#top'
    """
    address, mark, fragment = url.partition("#")
    path, _, query = address.partition("?")
    parts = query.split("&")
    kept = [part for part in parts if not _TRACKING.fullmatch(part)]
    if len(kept) == len(parts):
        return url
    rest = "?" + "&".join(kept) if any(kept) else ""
    return path + rest + mark + fragment
