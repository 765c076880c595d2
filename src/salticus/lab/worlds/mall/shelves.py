"""What a shop shows: its pages as they stand, and the ways in (home, listings, sitemap)."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from email.utils import formatdate
from functools import cached_property
from hashlib import blake2b

import msgspec
import numpy as np

from salticus.lab.worlds.mall import render
from salticus.lab.worlds.mall.render import page_head
from salticus.lab.worlds.mall.stock import MallPage, Stock

SECOND = 1_000_000  # µs
_EVER = 2**63 - 1

_SHELF = 500  # links on a listing
_SITEMAP = 50_000  # URLs in a sitemap, the protocol's limit


class Shelves:
    """The listings of one shop; they show what exists at the time."""

    def __init__(self, stock: Stock, host: str, rows: list[int]) -> None:
        self.stock = stock
        self.host = host
        self.rows = rows

    @cached_property
    def shelves(self) -> dict[str, list[int]]:
        """Rows by category, in order of the names."""
        found: dict[str, list[int]] = {}
        for row in self.rows:
            found.setdefault(slug(self.stock.pages[row]), []).append(row)
        return dict(sorted(found.items()))

    def home(self) -> bytes:
        """Links to all categories."""
        return render.listing(self.host, [(f"/c/{name}", name) for name in self.shelves])

    def category(self, path: str, when: datetime) -> bytes | None:
        """Links to the pages of a category, 500 at a time: ``/c/name``, ``/c/name/2`` and so on."""
        name, _, number = path.removeprefix("/c/").partition("/")
        rows = self.shelves.get(name, [])
        start = (int(number) - 1) * _SHELF if number.isdecimal() else 0
        if not 0 <= start < len(rows) or number not in ("", str(start // _SHELF + 1)):
            return None
        links = [
            (self.stock.pages[row].path, self.stock.pages[row].title)
            for row in rows[start : start + _SHELF]
            if self.stock.value(row, when) is not None
        ]
        if start + _SHELF < len(rows):
            links.append((f"/c/{name}/{start // _SHELF + 2}", "more"))
        return render.listing(name, links)

    def sitemap(self, path: str, when: datetime) -> bytes | None:
        """``/sitemap.xml``: the shop's pages with the time of their last change; an index of
        ``/sitemap-1.xml`` and so on if they do not fit into one."""
        whole = len(self.rows) <= _SITEMAP
        number = re.fullmatch(r"/sitemap(?:-([1-9]\d{0,3}))?\.xml", path)
        if number is None or (whole and number[1]):
            return None
        if whole:
            return render.sitemap(self._listed(self.rows, when))
        parts = -(-len(self.rows) // _SITEMAP)
        if number[1] is None:
            now = _iso(np.datetime64(when.replace(tzinfo=None), "us"))
            return render.sitemap_index(
                (f"http://{self.host}/sitemap-{part + 1}.xml", now) for part in range(parts)
            )
        start = (int(number[1]) - 1) * _SITEMAP
        if start >= len(self.rows):
            return None
        return render.sitemap(self._listed(self.rows[start : start + _SITEMAP], when))

    def _listed(self, rows: list[int], when: datetime) -> list[tuple[str, str]]:
        points = self.stock.values_at(when)[rows]
        return [
            (f"http://{self.host}{self.stock.pages[row].path}", _iso(self.stock.times[point]))
            for row, point in zip(rows, points, strict=True)
            if point >= 0 and self.stock.values[point] is not None
        ]


def slug(page: MallPage) -> str:
    """The category of a page as part of a path.

    >>> slug(MallPage("1", 0, "/o/1", "Lamp", category="Home > Lighting"))
    'home-lighting'
    """
    return "-".join(re.findall(r"[a-z0-9]+", (page.category or "").lower())) or "other"


def _iso(when: np.datetime64) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(when.astype(np.int64)) // 1_000_000))


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
