"""A page as it stands: its value, its validators and its bytes, until it next changes."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import formatdate
from hashlib import blake2b

import msgspec
import numpy as np

from salticus.lab.worlds.mall.render import page_head
from salticus.lab.worlds.mall.stock import Stock

SECOND = 1_000_000  # µs
_EVER = 2**63 - 1


class DisplayedPage(msgspec.Struct, gc=False):
    """A page from `since` until `until` (µs): `status` is 200, 404 before its birth, 410 if gone.

    `sole` is False if the page changed more than once in the second of its last change: then
    Last-Modified cannot tell its values apart.
    """

    since: int
    until: int
    status: int
    value: str | None = None
    etag: str = ""
    modified: str = ""
    sole: bool = True
    head: bytes = b""


def show(stock: Stock, row: int, world: int) -> DisplayedPage:
    """Page `row` at world time `world` (µs)."""
    times = stock.times.view(np.int64)
    point = stock.point(row, np.datetime64(world, "us"))
    first, end = int(stock.offsets[row]), int(stock.offsets[row + 1])
    if point < 0:
        return DisplayedPage(-_EVER, int(times[first]) if first < end else _EVER, 404)
    since = int(times[point])
    until = int(times[point + 1]) if point + 1 < end else _EVER
    text = stock.values[point]
    if text is None:
        return DisplayedPage(since, until, 410)
    return DisplayedPage(
        since=since,
        until=until,
        status=200,
        value=text,
        etag=f'W/"{blake2b(text.encode(), digest_size=8).hexdigest()}"',
        modified=formatdate(since // SECOND, usegmt=True),
        sole=point == first or int(times[point - 1]) // SECOND < since // SECOND,
        head=page_head(stock.pages[row], text),
    )


def unmodified(shown: DisplayedPage, headers: Mapping[str, str]) -> bool:
    """Whether the client's copy is still good, by ETag if it sent one, else by Last-Modified.

    A date must be the very one that was sent: a later one, of whatever clock, proves nothing.
    """
    tags = headers.get("If-None-Match")
    if tags is not None:
        known = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return "*" in known or shown.etag.removeprefix("W/") in known
    return shown.sole and headers.get("If-Modified-Since") == shown.modified
