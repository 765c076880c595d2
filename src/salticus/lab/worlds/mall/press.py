"""The publishers of a mall, their articles and readers: made from a seed, and told as the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

import numpy as np

from salticus.errors import InputError
from salticus.lab.worlds.mall.audit import AnsweredVisits
from salticus.lab.worlds.mall.newsroom import MOST_NEWS, NEWS, Newsroom, Publisher
from salticus.lab.worlds.mall.render import Shelves
from salticus.lab.worlds.mall.shoppers import Shopping
from salticus.lab.worlds.mall.stock import MallPage, Stock, offsets_of
from salticus.types import Columns, Floats, Ints, Times, instant
from salticus.types.dates import DAY_US, HOUR_US, epoch_us, utc

PAST = 7 * DAY_US  # for which publishers have written when the mall opens
_MOST_ARTICLES = 1_000_000
_MOST_FLOOD = 1_000_000
_LARGEST = 20.0  # times the usual number of articles or clicks, or the usual half-life
_NEVER = np.datetime64("NaT", "us")
_STREAM = 17  # so that publishers and shops of one seed share no random numbers

_FEEDS: tuple[Literal["rss", "atom", "json"], ...] = ("rss", "atom", "rss", "json")
_DEATHS: tuple[Literal["404", "410", "stale"], ...] = ("404", "410", "stale")
_NAMES = ("Courier", "Herald", "Post", "Echo", "Mirror", "Times", "Gazette", "Observer")
_CATEGORIES = ("politics", "sport", "culture", "science", "travel", "business", "local", "opinion")
_WHO = ("Council", "Minister", "Coach", "Orchestra", "Museum", "Harbour", "Farmers", "Students")
_DID = ("opens", "rejects", "praises", "delays", "wins", "plans", "loses", "restores")
_WHAT = ("bridge", "budget", "season", "festival", "ferry", "library", "treaty", "record", "garden")
_WORDS = (
    "the", "a", "of", "and", "to", "in", "on", "for", "with", "after", "before", "while", "again",
    "yesterday", "evening", "morning", "river", "town", "square", "people", "work", "report",
    "street", "winter", "market", "teachers", "engineers", "citizens", "votes", "songs", "goals",
    "trains", "bridges", "letters", "answer", "question", "promise", "begins", "remains", "returns",
)  # fmt: skip
_LENGTH = 30  # words of an article


@dataclass(frozen=True, slots=True)
class PressSettings:
    """How the publishers of a mall are.

    The median publisher writes `articles` a day, which get `clicks` each and half of them within
    `half_life` hours; others differ from it, by a factor of 20 at most. Each has `categories`, and
    its main page, categories and feed show the last `shown` articles. The feeds of the first `dead`
    publishers are dead: 404, 410, stale, in turn. The last publisher's main page has `flood` more
    links an hour.
    """

    publishers: int = 0
    articles: float = 12.0
    categories: int = 4
    shown: int = 30
    clicks: float = 20.0
    half_life: float = 8.0
    dead: int = 0
    flood: int = 0


class PressSource(NamedTuple):
    """A page on which a publisher shows articles: its port's number, its path and its form."""

    shop: int
    path: str
    form: str


@dataclass(frozen=True, slots=True)
class PressLinks(Columns):
    """Links to articles: on which of the sources, to which row of the stock, and from when until
    when (NaT = to the end) they stand."""

    source: Ints
    row: Ints
    appeared: Times
    vanished: Times


@dataclass(frozen=True, slots=True, eq=False)
class Press:
    """All that is true of the publishers of a mall.

    `stock` has the pages of the `shops` and then, from row `first` on, the articles: each is born
    when its first value begins. `readers` are all clicks on articles, by row of the stock.
    """

    shops: Stock
    stock: Stock
    publishers: tuple[Publisher, ...]
    readers: Shopping

    @property
    def first(self) -> int:
        """The row of the first article."""
        return len(self.shops)

    @property
    def born(self) -> Times:
        """When each article was born, from row `first` on."""
        return self.stock.times[self.stock.offsets[self.first : -1]]

    @property
    def sources(self) -> list[PressSource]:
        """The sources of all publishers."""
        return [
            PressSource(own.shop, path, form)
            for own in self.publishers
            for path, form in own.sources.items()
        ]

    def urls(self, offers: Sequence[str], hosts: Mapping[int, str]) -> list[str]:
        """The URL of each row of the stock: those of the `offers` as they are given, then those of
        the articles on the `hosts` of their publishers."""
        articles = self.stock.pages[self.first :]
        return [*offers, *(f"http://{hosts[page.shop]}{page.path}" for page in articles)]

    def rows(self, start: datetime, end: datetime) -> Ints:
        """The articles born from `start` until before `end`."""
        here = (self.born >= instant(start)) & (self.born < instant(end))
        return self.first + np.flatnonzero(here)

    def delays(self, rows: Ints, visits: AnsweredVisits) -> Floats:
        """Days from the birth of each of these articles to the first visit that found it; infinite
        if none did."""
        held = np.array([value is not None for value in visits.values], dtype=np.bool_)
        got = np.full(len(self.stock), np.iinfo(np.int64).max)
        np.minimum.at(got, visits.rows[held], visits.at[held].view(np.int64))
        born = self.stock.times[self.stock.offsets[rows]].view(np.int64)
        seen = got[rows] < np.iinfo(np.int64).max
        return np.where(seen, (np.where(seen, got[rows], born) - born) / DAY_US, np.inf)

    def links(self) -> PressLinks:
        """When which article stood on which source; a flood's links are no articles."""
        nothing = np.empty(0, dtype=np.int64)
        found = [PressLinks(nothing, nothing, nothing.view("M8[us]"), nothing.view("M8[us]"))]
        shop = np.array([page.shop for page in self.stock.pages])
        for own in self.publishers:
            rows: list[int] = np.flatnonzero(shop == own.shop).tolist()
            room = Newsroom(own, Shelves(self.stock, "", rows))
            for path in own.sources:
                found.append(_links_of(room, path, source=len(found) - 1))
        columns = ("source", "row", "appeared", "vanished")
        return PressLinks(*(np.concatenate([getattr(f, c) for f in found]) for c in columns))


def _links_of(room: Newsroom, path: str, source: int) -> PressLinks:
    own, form, place = room.publisher, room.publisher.sources[path], np.arange(len(room.rows))
    if form == "category":
        place = room.by_category[path.strip("/")]
    elif form == "feed" and own.dead:
        still = room.born.view(np.int64) <= own.since
        place = place[still & (own.dead == "stale")]
    born = room.born[place]
    gone = np.full(len(place), _NEVER)
    most = {"sitemap": len(place), "news sitemap": MOST_NEWS}.get(form, own.shown)
    if most < len(place):
        gone[: len(place) - most] = born[most:]
    if form == "news sitemap":
        gone = np.fmin(gone, born + np.timedelta64(NEWS, "us"))
    return PressLinks(np.full(len(place), source), room.rows[place], born, gone)


# ------------------------------------------------------------------------------- made from a seed


def make_press(
    shops: Stock, settings: PressSettings, *, start: datetime, days: float, seed: int = 0
) -> Press:
    """A mall of these shops and of publishers, who write from a week before `start` for so many
    days after it.

    The same arguments give the same publishers, and each of them is the same however many there
    are. Cost: about 50 µs and 1 KB an article, and 32 bytes a click. InputError if they cannot be
    or would write too much.
    """
    _check(settings, days)
    numbers = range(settings.publishers)
    streams = [np.random.default_rng([seed, _STREAM, number]) for number in numbers]
    made = [
        _work(_publisher(settings, number, shops.shops + number, epoch_us(start), rng), days, rng)
        for number, rng in enumerate(streams)
    ]
    first, rows = len(shops), np.repeat(np.arange(len(shops)), np.diff(shops.offsets))
    pages = [*shops.pages, *(page for work in made for page in work.pages)]
    stock = Stock(
        pages,
        offsets_of(np.concatenate([rows, np.arange(first, len(pages))]), len(pages)),
        np.concatenate([shops.times, *(work.born for work in made)]),
        [*shops.values, *(text for work in made for text in work.texts)],
    )
    nobody = np.empty(0, dtype=np.int64)
    clicks = np.concatenate([nobody, *(work.clicks for work in made)])
    row = np.arange(first, len(pages)).repeat(clicks)
    ages = np.concatenate([nobody, *(work.ages for work in made)]).view("m8[us]")
    readers = Shopping(row, stock.times[stock.offsets[row]] + ages, row**0, row * 0)
    readers = readers.take(np.argsort(readers.at, kind="stable"))
    return Press(shops, stock, tuple(work.own for work in made), readers)


class _Work(NamedTuple):
    """A publisher, its articles in order of their birth, how many clicks each gets, and the age
    (µs) of the article at each of these."""

    own: Publisher
    born: Times
    pages: list[MallPage]
    texts: list[str]
    clicks: Ints
    ages: Ints


def _work(own: Publisher, days: float, rng: np.random.Generator) -> _Work:
    born = _births(own, days, rng)
    pages, texts = _articles(own, born, rng)
    # articles differ; the rate of clicks on each falls by half in every half-life
    clicks = rng.poisson(own.profit * rng.gamma(2.0, 0.5, len(born)))
    ages = rng.exponential(own.half_life / np.log(2.0), int(clicks.sum())) * HOUR_US
    return _Work(own, born, pages, texts, clicks, ages.astype(np.int64))


def _check(settings: PressSettings, days: float) -> None:
    """InputError if there is no such press, or if it would not fit into memory."""
    many = settings.publishers * settings.articles * (days + PAST / DAY_US)
    if not 1 <= settings.categories <= len(_CATEGORIES):
        raise InputError(f"publishers have 1 to {len(_CATEGORIES)} categories")
    amounts = (settings.articles, settings.clicks, settings.half_life, settings.shown)
    if not all(amount > 0 for amount in amounts):
        raise InputError("articles a day, their clicks and half-life are numbers above 0")
    if not 0 <= settings.dead <= settings.publishers:
        raise InputError(
            f"{settings.dead} dead feeds: there are as many feeds as publishers, "
            f"{settings.publishers}"
        )
    if not 0 <= settings.flood <= (_MOST_FLOOD if settings.publishers else 0):
        raise InputError(
            f"a flood of {settings.flood:,} links an hour: it needs a publisher, and has at most "
            f"{_MOST_FLOOD:,}"
        )
    if many > _MOST_ARTICLES:
        raise InputError(
            f"these publishers would write {many:,.0f} articles; {_MOST_ARTICLES:,} are the most: "
            "ask for fewer publishers, days, or articles a day"
        )


def _publisher(
    settings: PressSettings, number: int, shop: int, since: int, rng: np.random.Generator
) -> Publisher:
    factors = np.exp(np.clip(rng.normal(0.0, (1.0, 0.7, 0.5)), -np.log(_LARGEST), np.log(_LARGEST)))
    categories = rng.permutation(_CATEGORIES)[: settings.categories].tolist()
    return Publisher(
        shop=shop,
        name=f"The {_NAMES[number % len(_NAMES)]} {number}",
        categories=tuple(categories),
        rate=float(settings.articles * factors[0]),
        peak=float(rng.uniform(8, 18)),
        profit=float(settings.clicks * factors[1]),
        half_life=float(settings.half_life * factors[2]),
        feed=_FEEDS[number % len(_FEEDS)],
        shown=settings.shown,
        since=since,
        dead=_DEATHS[number % len(_DEATHS)] if number < settings.dead else "",
        flood=settings.flood if number == settings.publishers - 1 else 0,
    )


def rhythm(peak: float) -> Floats:
    """How busy a publisher is in each hour of the week, from Monday at midnight UTC on; 1 in the
    mean. A tenth of the day's most at night, and two thirds on weekends.

    >>> pace = rhythm(peak=12.0)
    >>> [float(x.round(2)) for x in (pace.mean(), pace[12], pace[0], pace[5 * 24 + 12])]
    [1.0, 2.51, 0.25, 1.67]
    """
    hour = np.arange(7 * 24) + 0.5
    pace = 0.1 + 0.9 * (0.5 + 0.5 * np.cos(2.0 * np.pi * (hour - peak) / 24.0)) ** 2
    pace[5 * 24 :] *= 2.0 / 3.0
    return np.asarray(pace / pace.mean())


def _births(own: Publisher, days: float, rng: np.random.Generator) -> Times:
    """A Poisson process whose rate follows the hours of the week."""
    end = own.since + int(days * DAY_US)
    hours = np.arange((own.since - PAST) // HOUR_US, end // HOUR_US + 1)
    pace = rhythm(own.peak)[(hours + 3 * 24) % (7 * 24)]  # 1970 began on a Thursday
    counts = rng.poisson(own.rate / 24.0 * pace)
    at = np.repeat(hours, counts) * HOUR_US + rng.integers(0, HOUR_US, int(counts.sum()))
    return np.unique(at[at < end]).view("M8[us]")


def _articles(
    own: Publisher, born: Times, rng: np.random.Generator
) -> tuple[list[MallPage], list[str]]:
    """The pages and texts of articles. The first categories have the most."""
    weights = 1.0 / np.arange(1, len(own.categories) + 1)
    category = rng.choice(len(own.categories), len(born), p=weights / weights.sum())
    titles = [rng.integers(0, len(words), len(born)) for words in (_WHO, _DID, _WHAT)]
    words = rng.integers(0, len(_WORDS), (len(born), _LENGTH)).tolist()
    pages, texts = [], []
    chosen = zip(category.tolist(), *(each.tolist() for each in titles), strict=True)
    for number, (section, who, did, what) in enumerate(chosen):
        title = f"{_WHO[who]} {_DID[did]} {_WHAT[what]}"
        page = MallPage(
            page_id=f"{own.shop}-{number}",
            shop=own.shop,
            path=f"/{own.categories[section]}/{number}-{title.lower().replace(' ', '-')}",
            title=title,
            category=own.categories[section],
            kind="article",
            published=utc(int(born[number].astype(np.int64))),
        )
        pages.append(page)
        line = " ".join(_WORDS[word] for word in words[number])
        texts.append(f"{title}, number {number}: {line}.")
    return pages, texts
