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
from salticus.predict.links import LinkRates, SourceVisits
from salticus.store.base import Store
from salticus.store.nouns import PageState, Query
from salticus.types import ANSWERED
from salticus.types.dates import DAY_US
from salticus.views.times import ago, known

HEADER = ("new a day", "±", "links", "format", "state", "visited", "newest link", "source")
_LABELS = frozenset(status.label for status in ANSWERED)


class SourceFacts(msgspec.Struct, frozen=True):
    """A source: its `links` (of a sitemap those that stand there, of others all ever named), how
    many new ones appear a day by its last seven visits, the relative standard error of that, and
    when the last new one was seen. Before a second visit its rate is that of others like it."""

    url: str
    state: str
    format: str | None
    links: int
    new_per_day: float
    error: float
    visits: int
    last_visit: datetime | None
    last_new: datetime | None
    fault: str | None = None


async def sources_of(crawl: Crawl) -> list[SourceFacts]:
    """All sources, those that bring the most first."""
    pages = sorted(await crawl.store.find(Query(kind="source")), key=lambda page: page.page)
    if not pages:
        return []
    found = await asyncio.to_thread(_facts, crawl.store, pages)
    return sorted(found, key=lambda source: (-source.new_per_day, source.url))


def as_row(source: SourceFacts, now: datetime) -> tuple[Any, ...]:
    """A source for people: the columns of `HEADER`."""
    return (
        f"{source.new_per_day:.3g}",
        f"{source.error:.0%}",
        source.links,
        source.format,
        source.state,
        ago(source.last_visit, now),
        ago(source.last_new, now),
        source.url,
    )


def _facts(store: Store, pages: list[PageState]) -> list[SourceFacts]:
    links, rates = StoredLinks(store.scan("links")), LinkRates()
    for page in pages:
        rates.learn(links.told(page.page, _answers(store, page.page)))
    ids = np.array([page.page for page in pages])
    _, group = np.unique([page.host for page in pages], return_inverse=True)
    told = rates.links(ids, group)
    return [
        SourceFacts(
            url=page.url,
            state=page.state,
            format=page.fields.get("format"),
            links=links.standing[page.page],
            new_per_day=float(told.rate[row]),
            error=float(told.error[row]),
            visits=page.visits,
            last_visit=known(page.last_visit),
            last_new=known(links.last_new(page.page)),
            fault=page.fault,
        )
        for row, page in enumerate(pages)
    ]


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
