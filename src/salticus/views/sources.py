"""The sources of a crawl: how many new pages each brings, and what state it is in."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import numpy as np

from salticus.allocate.cover import cover
from salticus.crawl.opening import Crawl
from salticus.crawl.retiring import RETIRED, retired_sources
from salticus.crawl.standing import Standing
from salticus.store.nouns import AlertState, PageState, Query
from salticus.types import Floats, Times, moment
from salticus.views.promises import Promise, by_hour, hours_words, promised, span_words
from salticus.views.times import ago, known

HEADER = (
    "new a day", "±", "clicks", "half-life", "every", "worth", "format", "newest", "why", "source",
)  # fmt: skip


class SourceFacts(msgspec.Struct, frozen=True):
    """A source, as the crawl knows it when it decides: `links` stood there at the last visit,
    `new_per_day` pages are new, with a relative standard `error`, in each hour of the day (UTC)
    `by_hour`, and the last new link was seen at `last_new`. Before a second visit its rate is that
    of all others.

    A new page of it gets `clicks_per_page`, half of them within `half_life` days. At the visit
    price it is visited when what it shows was `unseen`, on any source of its site, for `interval`
    days (None: it is not worth one), and a visit now brings `worth` clicks more. `why` says so in
    words, also why it was `retired` at a time, if it was."""

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
    unseen: float | None = None
    why: str = ""
    retired: datetime | None = None
    fault: str | None = None

    def short(self) -> str:
        """Why it is visited when it is, in some words."""
        if self.retired is not None:
            return f"retired {self.retired:%Y-%m-%d}"
        if self.state != "well":
            return "not visited yet" if self.state == "new" else self.state
        if self.unseen is None or self.visit_price is None:
            return "no visit price"  # nothing was planned yet, or the policy knows none
        if self.interval is None:
            return "not worth a visit"
        left = self.interval - self.unseen
        return f"due in {span_words(left)}" if left > 0.0 else "due"


class SourcesView(msgspec.Struct, frozen=True):
    """All sources, those that bring the most first, and in words in which hours of the day (UTC)
    new links appear on all of them together."""

    sources: list[SourceFacts]
    hours: str


class CoverStep(msgspec.Struct, frozen=True):
    """A source that `adds` so many new pages to those that the ones before it show; then all of
    them together show this `share` of the new pages."""

    url: str
    adds: int
    share: float


async def cover_of(crawl: Crawl) -> list[CoverStep]:
    """The sources, each time the one that adds the most new pages; those that add none are left
    out. What a source showed at its first visit is old, and does not count. Cost: linear in links.
    """
    new, after = set[int](), 0
    while len(finds := await crawl.store.finds(after)):
        new.update(finds.page[~np.isnat(finds.since)].tolist())
        after = finds.last
    links = (row for row in crawl.store.scan("links") if row["page_id"] in new)
    pairs = np.array([(row["source_id"], row["page_id"]) for row in links], dtype=np.int64)
    order, gains = cover(*pairs.reshape(-1, 2).T)
    best = order[gains > 0]
    urls = {target.page: target.url for target in await crawl.store.targets(best)}
    named = [urls.get(page, f"a source that was forgotten ({page})") for page in best.tolist()]
    share = np.cumsum(gains[gains > 0]) / max(gains.sum(), 1)
    told = zip(named, gains.tolist(), share.tolist(), strict=False)
    return [CoverStep(url, adds, round(part, 4)) for url, adds, part in told]


async def sources_of(crawl: Crawl) -> SourcesView:
    """All sources of a crawl. Cost: linear in sources, once what the crawl knows is read."""
    pages = sorted(await crawl.store.find(Query(kind="source")), key=lambda page: page.page)
    if not pages:
        return SourcesView([], hours_words(np.ones(24)))
    standing = await crawl.foreseeing()
    retired = await retired_sources(crawl.store)
    facts = [_retired(one, retired.get(one.url)) for one in _facts(pages, standing)]
    hours = hours_words(by_hour(standing.census.scout.finder.harvest_))
    return SourcesView(sorted(facts, key=lambda one: (-one.new_per_day, one.url)), hours)


def as_row(source: SourceFacts, now: datetime) -> tuple[Any, ...]:
    """A source for people: the columns of `HEADER`."""
    return (
        f"{source.new_per_day:.3g}",
        f"{source.error:.0%}",
        None if source.clicks_per_page is None else f"{source.clicks_per_page:.3g}",
        None if source.half_life is None else span_words(source.half_life),
        None if source.interval is None else span_words(source.interval),
        None if source.worth is None else f"{source.worth:.3g}",
        source.format,
        ago(source.last_new, now),
        source.short(),
        source.url,
    )


def _facts(pages: list[PageState], standing: Standing) -> list[SourceFacts]:
    ids = np.array([page.page for page in pages])
    promises, scout = promised(standing, ids), standing.census.scout
    number = {page: row for row, page in enumerate(scout.ids_.tolist())}
    links, hours = scout.finder.links_, by_hour(scout.finder.harvest_)
    return [
        _promising(
            SourceFacts(
                url=page.url,
                state=page.state,
                format=page.fields.get("format"),
                links=int(page.fields.get("links", 0)),
                new_per_day=float(links.rate[row]),
                error=float(links.error[row]),
                by_hour=_rounded(links.rate[row] * hours),
                visits=page.visits,
                last_visit=known(page.last_visit),
                last_new=_moment(scout.news_[row : row + 1]),
                fault=page.fault,
            ),
            promises.get(page.page),
        )
        for page in pages
        for row in (number[page.page],)
    ]


def _retired(source: SourceFacts, alert: AlertState | None) -> SourceFacts:
    """The source, with when and why it was retired, if it was."""
    if alert is None:
        return source
    since, why = known(alert.since), f"{alert.fault}; {source.why}"
    return msgspec.structs.replace(source, state=RETIRED, retired=since, why=why)


def _rounded(rates: Floats) -> list[float]:
    return [round(rate, 4) for rate in rates.tolist()]


def _moment(times: Times) -> datetime | None:
    return None if np.isnat(times[0]) else moment(times[0])


def _promising(source: SourceFacts, promise: Promise | None) -> SourceFacts:
    """The source with what visits to it promise."""
    if promise is None:
        return msgspec.structs.replace(source, why="no visit to it was answered yet")
    return msgspec.structs.replace(
        source,
        clicks_per_page=promise.clicks_per_page,
        half_life=promise.half_life,
        interval=promise.interval,
        worth=promise.worth,
        visit_price=promise.visit_price,
        unseen=promise.unseen,
        why=promise.words(),
    )
