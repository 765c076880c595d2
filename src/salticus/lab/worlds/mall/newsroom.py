"""What a publisher of the mall shows: main page, categories, feed, sitemaps, floods of links."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from functools import cached_property
from html import escape
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from salticus.lab.worlds.mall.faults import HTML
from salticus.lab.worlds.mall.render import Padding, Shelves, listing, page_head
from salticus.lab.worlds.mall.stock import MallPage
from salticus.types import Ints, Times
from salticus.types.dates import DAY_US, HOUR_US, utc

NEWS, MOST_NEWS = 2 * DAY_US, 1000  # a news sitemap has the articles of two days, and no more
MOST_FLOOD = 20_000  # links of a flood that stand at a time, some 2 MB
FLOOD = "/live/0"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_XML = {"Content-Type": "application/xml; charset=utf-8"}
_TYPES = {"rss": "application/rss+xml", "atom": "application/atom+xml"}
_TYPES |= {"json": "application/feed+json"}
_FEEDS = {"rss": "/feed.xml", "atom": "/atom.xml", "json": "/feed.json"}
_SPACES = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
)
_DECLARED = '<?xml version="1.0" encoding="UTF-8"?>\n'
_TRACKED = {"main": "utm_source=home", "feed": "utm_source=feed&utm_medium=rss"}
_TRACKS = 4  # one link in so many has parameters that track

_LETTERS = "abcdefghijklmnop"
_TURN, _BITS = 0x9E3779B97F4A7C15 | 1, 40  # an odd factor mixes numbers, and can be undone
_BACK = pow(_TURN, -1, 1 << _BITS)

Form = Literal["main", "category", "feed", "sitemap", "news sitemap"]


class Publisher(msgspec.Struct, frozen=True):
    """What is true of a publisher, at the port of a `shop` of its own.

    It writes `rate` articles a day in the mean of a week, most of them around the hour `peak` (UTC)
    and fewer on weekends. An article gets `profit` clicks in the mean, half of them within
    `half_life` hours. Main page, categories and feed show the last `shown` articles each. The feed
    may be `dead`: it answers 404 or 410, or is stale and has nothing of after `since` (µs), when
    the mall opened. From then on the main page has `flood` more links an hour, which lead to pages
    that nobody reads.
    """

    shop: int
    name: str
    categories: tuple[str, ...]
    rate: float
    peak: float
    profit: float
    half_life: float
    feed: Literal["rss", "atom", "json"]
    shown: int
    since: int
    dead: Literal["", "404", "410", "stale"] = ""
    flood: int = 0

    @property
    def sources(self) -> dict[str, Form]:
        """All paths on which new articles are shown, or are said to be."""
        found: dict[str, Form] = {"/": "main"}
        found |= dict.fromkeys((f"/{name}/" for name in self.categories), "category")
        found[_FEEDS[self.feed]] = "feed"
        found["/sitemap.xml"] = "sitemap"
        found["/news-sitemap.xml"] = "news sitemap"
        return found


class Answer(NamedTuple):
    """A response: its status, body and headers."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class Newsroom:
    """Answers for one publisher. The rows of the shelves are its articles in order of birth.

    Cost of an answer: linear in the links that it shows, and logarithmic in all articles; of a
    sitemap, linear in the stock.
    """

    def __init__(self, publisher: Publisher, shelves: Shelves) -> None:
        self.publisher = publisher
        self.shelves = shelves
        self.stock = stock = shelves.stock
        self.host = shelves.host
        self.rows: Ints = np.array(shelves.rows, dtype=np.int64)
        self.born: Times = stock.times[stock.offsets[self.rows]]

    @cached_property
    def by_category(self) -> dict[str, Ints]:
        """Which of the articles are in each category."""
        category = np.array([self.stock.pages[row].category or "" for row in self.rows], dtype=str)
        return {name: np.flatnonzero(category == name) for name in self.publisher.categories}

    @property
    def sitemaps(self) -> list[str]:
        """The paths that robots.txt names."""
        return [path for path, form in self.publisher.sources.items() if "sitemap" in form]

    def standing(self, path: str, world: int) -> list[int]:
        """The rows of the articles that stand on a source at `world` (µs), newest first."""
        form, own = self.publisher.sources[path], np.arange(len(self.rows))
        most, since = self.publisher.shown, -(2**62)
        if form == "category":
            own = self.by_category[path.strip("/")]
        elif form == "feed" and self.publisher.dead:
            world = min(world, self.publisher.since) if self.publisher.dead == "stale" else since
        elif form == "sitemap":
            most = len(own)
        elif form == "news sitemap":
            most, since = MOST_NEWS, world - NEWS
        low, high = np.searchsorted(self.born[own].view(np.int64), [since, world], side="right")
        rows: list[int] = self.rows[own[max(low, high - most) : high]].tolist()
        return rows[::-1]

    def answer(self, path: str, world: int) -> Answer:
        """What is at a path at `world` (µs), if not an article."""
        form = self.publisher.sources.get(path)
        when = _EPOCH + timedelta(microseconds=world)
        if form in ("main", "category"):
            return Answer(200, self._hub(path, world), HTML)
        if form == "feed":
            return self._feed(path, world)
        if form == "news sitemap":
            return Answer(200, self._news(self.standing(path, world)), _XML)
        if (found := self.shelves.sitemap(path, when)) is not None:
            return Answer(200, found, _XML)
        if 0 <= flood_number(path) < self._flooded(world):
            page = MallPage("", self.publisher.shop, path, "Live", kind="article")
            text = f"Live, number {flood_number(path)}: there is nothing new to be said of it."
            return Answer(200, Padding(0).page(page_head(page, text), utc(world)), HTML)
        return Answer(404, b"There is no such page.\n", HTML)

    # ----------------------------------------------------------------------------------- the forms

    def _hub(self, path: str, world: int) -> bytes:
        """The main page or a category: the ways to all categories, articles, and the flood."""
        own = self.publisher
        links = [(f"/{name}/", name.title()) for name in own.categories]
        for row in self.standing(path, world):
            page = self.stock.pages[row]
            links.append((self._link(row, "main" if path == "/" else ""), page.title))
        if path == "/" and own.flood:
            first = max(0, self._flooded(world) - min(own.flood, MOST_FLOOD))
            links += ((flood_path(n), "Live") for n in range(first, self._flooded(world)))
        feed = _FEEDS[own.feed]
        announced = f'<link rel="alternate" type="{_TYPES[own.feed]}" href="{feed}">'
        return listing(own.name if path == "/" else path.strip("/").title(), links, announced)

    def _feed(self, path: str, world: int) -> Answer:
        own = self.publisher
        if own.dead in ("404", "410"):
            return Answer(int(own.dead), b"This feed has moved.\n", HTML)
        rows = self.standing(path, world)
        write = {"rss": self._rss, "atom": self._atom, "json": self._json}[own.feed]
        return Answer(200, write(rows, path), {"Content-Type": _TYPES[own.feed]})

    def _rss(self, rows: list[int], path: str) -> bytes:
        items = "".join(
            f"<item><title>{escape(page.title)}</title><link>{escape(self._url(row))}</link>"
            f'<guid isPermaLink="false">{page.page_id}</guid>'
            f"<pubDate>{formatdate(self._born(row) / 1e6, usegmt=True)}</pubDate></item>\n"
            for row, page in self._pages(rows)
        )
        about = f"<title>{self.publisher.name}</title><link>http://{self.host}/</link>"
        text = f'{_DECLARED}<rss version="2.0"><channel>{about}\n{items}</channel></rss>\n'
        return text.encode()

    def _atom(self, rows: list[int], path: str) -> bytes:
        entries = "".join(
            f"<entry><title>{escape(page.title)}</title><id>urn:article:{page.page_id}</id>"
            f'<link href="{escape(self._url(row))}"/><published>{utc(self._born(row))}</published>'
            f"<updated>{utc(self._born(row))}</updated></entry>\n"
            for row, page in self._pages(rows)
        )
        about = f"<title>{self.publisher.name}</title><id>http://{self.host}{path}</id>"
        space = 'xmlns="http://www.w3.org/2005/Atom"'
        return f"{_DECLARED}<feed {space}>{about}\n{entries}</feed>\n".encode()

    def _json(self, rows: list[int], path: str) -> bytes:
        items = [
            {
                "id": page.page_id,
                "url": self._url(row),
                "title": page.title,
                "date_published": utc(self._born(row)),
            }
            for row, page in self._pages(rows)
        ]
        version = "https://jsonfeed.org/version/1.1"
        feed = {"version": version, "title": self.publisher.name, "items": items}
        return json.dumps(feed).encode()

    def _news(self, rows: list[int]) -> bytes:
        about = f"<news:name>{self.publisher.name}</news:name><news:language>en</news:language>"
        items = "".join(
            f"<url><loc>http://{self.host}{page.path}</loc><news:news>"
            f"<news:publication>{about}</news:publication>"
            f"<news:publication_date>{utc(self._born(row))}</news:publication_date>"
            f"<news:title>{escape(page.title)}</news:title></news:news></url>\n"
            for row, page in self._pages(rows)
        )
        return f"{_DECLARED}<urlset {_SPACES}>\n{items}</urlset>\n".encode()

    # ------------------------------------------------------------------------------------ the parts

    def _pages(self, rows: list[int]) -> list[tuple[int, MallPage]]:
        return [(row, self.stock.pages[row]) for row in rows]

    def _born(self, row: int) -> int:
        return int(self.stock.times[self.stock.offsets[row]].astype(np.int64))

    def _url(self, row: int) -> str:
        return f"http://{self.host}{self._link(row, 'feed')}"

    def _link(self, row: int, form: str) -> str:
        """The path of an article; here and there with parameters that say who linked to it."""
        path = self.stock.pages[row].path
        return path if row % _TRACKS or form not in _TRACKED else f"{path}?{_TRACKED[form]}"

    def _flooded(self, world: int) -> int:
        """How many links the flood has brought so far, evenly over each hour."""
        return max(0, (world - self.publisher.since) * self.publisher.flood // HOUR_US)


def flood_path(number: int) -> str:
    """Where a link of a flood leads: no two look alike, and none leads to the next.

    >>> flood_path(0), flood_path(1)
    ('/live/0aaaaaaaaaa', '/live/0fbmhkephjl')
    """
    mixed = number * _TURN % (1 << _BITS)
    return FLOOD + "".join(_LETTERS[mixed >> shift & 15] for shift in range(0, _BITS, 4))


def flood_number(path: str) -> int:
    """The number of a link of a flood; -1 if a path is none.

    >>> flood_number(flood_path(17)), flood_number("/live/0x"), flood_number("/sport/")
    (17, -1, -1)
    """
    letters = path.removeprefix(FLOOD)
    if len(path) - len(letters) != len(FLOOD) or len(letters) != _BITS // 4:
        return -1
    digits = [_LETTERS.find(letter) for letter in letters]
    if min(digits) < 0:
        return -1
    mixed = sum(digit << 4 * place for place, digit in enumerate(digits))
    return mixed * _BACK % (1 << _BITS)
