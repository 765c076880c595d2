"""The sources of a crawl: how many new pages each brings, and what state it is in."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from salticus.crawl.opening import Crawl
from salticus.crawl.standing import Standing
from salticus.predict.links import LinkRates, SourceVisits
from salticus.store.base import Store
from salticus.store.nouns import PageState, Query
from salticus.types import ANSWERED, Floats, Ints, Looks, Times
from salticus.types.dates import DAY_US
from salticus.views.promises import Promise, promised, span_words
from salticus.views.times import ago, known

HEADER = (
    "new a day", "±", "clicks a page", "half-life", "interval", "a visit", "links", "format",
    "state", "visited", "newest link", "source",
)  # fmt: skip
_LABELS = frozenset(status.label for status in ANSWERED)
_SETTLED = 30.0  # days without a new link after which a source that is not worth a visit is retired


class SourceFacts(msgspec.Struct, frozen=True):
    """A source: its `links` (of a sitemap those that stand there, of others all ever named), how
    many new ones appear a day by its last seven visits, the relative standard error of that, the
    same by the hour of the day (UTC), and when the last new one was seen. Before a second visit its
    rate is that of others like it.

    A new page of it gets `clicks_per_page`, half of them within `half_life` days. At the visit
    price it is visited after `interval` days (None: it is not worth one), and a visit now brings
    `worth` clicks more. `why` says so in words."""

    url: str
    state: str
    format: str | None
    links: int
    new_per_day: float
    error: float
    by_hour: list[float]
    visits: int
    last_visit: datetime | None
    last_new: datetime | None
    clicks_per_page: float | None = None
    half_life: float | None = None
    interval: float | None = None
    worth: float | None = None
    visit_price: float | None = None
    why: str = ""
    fault: str | None = None


async def sources_of(crawl: Crawl) -> list[SourceFacts]:
    """All sources, those that bring the most first."""
    pages = sorted(await crawl.store.find(Query(kind="source")), key=lambda page: page.page)
    if not pages:
        return []
    standing = await crawl.foreseeing()
    looks = await _all_looks(crawl.store)
    found = await asyncio.to_thread(_facts, crawl.store, pages, standing, looks)
    return sorted(found, key=lambda source: (-source.new_per_day, source.url))


def as_row(source: SourceFacts, now: datetime) -> tuple[Any, ...]:
    """A source for people: the columns of `HEADER`."""
    return (
        f"{source.new_per_day:.3g}",
        f"{source.error:.0%}",
        None if source.clicks_per_page is None else f"{source.clicks_per_page:.3g}",
        None if source.half_life is None else span_words(source.half_life),
        None if source.interval is None else span_words(source.interval),
        None if source.worth is None else f"{source.worth:.3g}",
        source.links,
        source.format,
        source.state,
        ago(source.last_visit, now),
        ago(source.last_new, now),
        source.url,
    )


async def _all_looks(store: Store) -> Looks:
    looks = await store.looks()
    while len(more := await store.looks(looks.last)):
        looks = looks.join(more)
    return looks


def _facts(
    store: Store, pages: list[PageState], standing: Standing, looks: Looks
) -> list[SourceFacts]:
    links, rates = StoredLinks(store.scan("links")), LinkRates()
    for page in pages:
        rates.learn(links.told(page.page, _answers(store, page.page)))
    ids = np.array([page.page for page in pages])
    _, group = np.unique([page.host for page in pages], return_inverse=True)
    told = rates.links(ids, group)
    hours = by_hour(looks, ids, told.rate)
    promises = promised(standing, ids)
    facts = [
        SourceFacts(
            url=page.url,
            state=page.state,
            format=page.fields.get("format"),
            links=links.standing[page.page],
            new_per_day=float(told.rate[row]),
            error=float(told.error[row]),
            by_hour=[round(rate, 4) for rate in hours[row].tolist()],
            visits=page.visits,
            last_visit=known(page.last_visit),
            last_new=known(links.last_new(page.page)),
            fault=page.fault,
        )
        for row, page in enumerate(pages)
    ]
    return [
        _promising(each, promises.get(page.page), standing.now)
        for each, page in zip(facts, pages, strict=True)
    ]


def _promising(source: SourceFacts, promise: Promise | None, now: datetime) -> SourceFacts:
    """The source with what visits to it promise, and whether it is retired."""
    if promise is None:
        return msgspec.structs.replace(source, why="no visit to it was answered yet")
    quiet = source.last_new is None or (now - source.last_new).days >= _SETTLED
    poor = promise.visit_price is not None and promise.interval is None
    retired = poor and quiet and source.visits > 1 and source.state == "well"
    return msgspec.structs.replace(
        source,
        state="retired" if retired else source.state,
        clicks_per_page=promise.clicks_per_page,
        half_life=promise.half_life,
        interval=promise.interval,
        worth=promise.worth,
        visit_price=promise.visit_price,
        why=promise.words(),
    )


def by_hour(looks: Looks, sources: Ints, usual: Floats) -> Floats:
    """New links a day on each source in each hour of the day (UTC), drawn to the `usual` rate with
    the weight of a day. What came between two looks may have come at any time between them."""
    later = looks.take(~np.isnat(looks.since) & np.isin(looks.source, sources))
    hours = [_time_in_hours(at) for at in (later.since, later.at)]
    watched = hours[1] - hours[0]
    days = np.maximum(watched.sum(axis=1, keepdims=True), 1e-9)
    row = np.searchsorted(sources, later.source)
    new, through = np.zeros((2, len(sources), 24))
    np.add.at(new, row, later.new[:, None] * watched / days)
    np.add.at(through, row, watched)
    return np.asarray((new + usual[:, None]) / (through + 1.0))


def _time_in_hours(at: Times) -> Floats:
    """Days that each hour of the day has lasted until then, of all time."""
    days = at.view(np.int64) / DAY_US
    into = days[:, None] % 1.0 - np.arange(24) / 24
    return np.floor(days)[:, None] / 24 + np.clip(into, 0.0, 1 / 24)


def _answers(store: Store, page: int) -> list[int]:
    """When a page answered, µs, in order."""
    return [visit["at"] for visit in store.scan("visits", page) if visit["status"] in _LABELS]


class StoredLinks:
    """What a store knows of links: how many appeared and vanished on each source, and when."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self.standing: Counter[int] = Counter()
        self._came: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._went: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for row in rows:
            source, vanished = row["source_id"], row["vanished"]
            self._came[source][row["appeared"]] += 1
            if vanished is None:
                self.standing[source] += 1
            else:
                self._went[source][vanished] += 1

    def last_new(self, source: int) -> int | None:
        """When the last link appeared that was not there from the first."""
        times = sorted(self._came[source])
        return times[-1] if len(times) > 1 else None

    def told(self, source: int, answers: list[int]) -> SourceVisits:
        """What each visit but the first told of the source's links."""
        came, went = self._came[source], self._went[source]
        there, rows = came[answers[0]] if answers else 0, []
        for before, at in pairwise(answers):
            gone = min(went[at], there)
            rows.append(((at - before) / DAY_US, came[at], there - gone, gone))
            there += came[at] - gone
        columns = np.array(rows, dtype=np.float64).reshape(-1, 4).T
        return SourceVisits(np.full(len(rows), source, dtype=np.int64), *columns)
