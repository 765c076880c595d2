"""Policies that find new pages: ECHO's, and what others do (Lefortier et al. 2013, §4, §5).

A visit to a source brings pages that are to be visited too, at once if the policy leaves visits for
them. So a source takes up more than its own visit: also those to the new links that it has to show.
Pages that are neither sources nor waiting for their first visit get what
is left, the oldest visit first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from salticus.allocate.adaptive import Adaptive, after, micros
from salticus.allocate.base import Policy
from salticus.allocate.echo import EchoIntervals, EchoSources, oldest, revisits
from salticus.allocate.share import first, in_turn
from salticus.types import CHANGED, UNCHANGED, Floats, Ints, Outcomes, Pages, days_between, instant
from salticus.types.coins import coins

_LONG = 36_500.0  # days since a visit that never was
_WEEK = 7.0
_NEAR = 1e-4  # to which share of it ECHO's price is looked for
_LATELY = 16  # answers that are remembered


@dataclass(frozen=True, slots=True)
class Standing:
    """What there is to visit: rows of waiting pages, the latest found last, of those that are not
    worth their price, the best first, of sources, and of other pages; the days since each source
    was visited, and the links that it has to show."""

    waiting: Ints
    cheap: Ints
    sources: Ints
    others: Ints
    ages: Floats
    found: Floats


class Discovery(Policy):
    """Found pages are visited at once, first those that have waited longest; what is left goes to
    the sources in the order of their `urgency`, if that is above 0.

    Leaves visits for the pages that these sources will bring. Without sources: the oldest visit
    first. Cost: n log n in sources.
    """

    spends = False

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def expected(self, pages: Pages, visits: float) -> Floats:
        if pages.prospects is None:
            return first(pages.last_visit.view(np.int64), visits)
        standing = self.admitted(pages, standing_of(pages, self.seed), visits)
        order = self.order(pages, standing, visits)
        burden = np.ones(len(pages))
        burden[standing.sources] += standing.found
        return in_turn(order, burden, visits)

    def admitted(self, pages: Pages, standing: Standing, visits: float) -> Standing:
        """What of it may be visited: everything."""
        return standing

    def order(self, pages: Pages, standing: Standing, visits: float) -> Ints:
        """The rows to visit as far as the visits go, in their order."""
        due = self.sources_due(pages, standing, visits)
        return np.concatenate([standing.waiting, due, standing.others])

    def sources_due(self, pages: Pages, standing: Standing, visits: float) -> Ints:
        """The sources to visit, the most urgent first."""
        urgency = self.urgency(pages, standing, visits)
        order = np.argsort(-urgency, kind="stable")
        return standing.sources[order[urgency[order] > 0.0]]

    def urgency(self, pages: Pages, standing: Standing, visits: float) -> Floats:
        """By how much each source is to be visited before others; 0 = not in this tick."""
        raise NotImplementedError


class Bfs(Discovery):
    """All sources in turn, and every page found on them at once."""

    def urgency(self, pages: Pages, standing: Standing, visits: float) -> Floats:
        return standing.ages


class EchoNewpages(Discovery):
    """Found pages at once, then the source that is most overdue by ECHO's intervals, argmax τ/I.

    Sources are looked at while no page is waiting; those that are not worth a visit, when all
    others are just visited.

    A page must be worth the price at which the intervals were found (ALGORITHMS §1.3), or it waits
    until no source is due. Else a source that is kept for a share of the time, or comes late, would
    bring so many old pages that nothing new is visited for days. Where sources bring less than was
    expected of them, the price is too high, and what is left goes to these pages.
    """

    published = False
    equal = False
    part_time = True  # a source may be kept for a share of the time
    part, page_cost = 1.0, 1.0  # of the visits, for sources and for a part of what they bring

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.price_ = 0.0
        self.pace_ = math.nan  # visits a tick, on average
        self._asked = 0.0  # the price of the last answer
        self._lately: dict[tuple[float | bytes, ...], EchoIntervals] = {}

    def pace(self, per_tick: float) -> None:
        """Intervals are for these visits: by those of a tick, which vary, too many sources stay."""
        self.pace_ = per_tick

    def begin(self, pages: Pages) -> None:
        """Nothing is left from the last tick."""

    def adopt(self) -> None:
        """The price of the last answer is that of the plan."""
        self.price_ = self._asked

    def admitted(self, pages: Pages, standing: Standing, visits: float) -> Standing:
        if self.published or not len(standing.sources):
            return standing
        assert pages.prospects is not None
        sources = sources_of(pages, standing.sources)
        self._asked = price = self.solved(pages, sources, visits).price
        remaining = pages.prospects.remaining[standing.waiting]
        worth = remaining >= price
        rest = np.argsort(-remaining, kind="stable")[np.count_nonzero(worth) :]
        cheap = standing.waiting[rest[remaining[rest] > 0.0]]
        ages = np.where(standing.ages == _LONG, 0.0, standing.ages)
        ages = np.minimum(ages, oldest(sources, price))
        found = pages.prospects.finds(standing.sources, ages)
        return replace(standing, waiting=standing.waiting[worth], cheap=cheap, found=found)

    def order(self, pages: Pages, standing: Standing, visits: float) -> Ints:
        urgency = self.urgency(pages, standing, visits)
        sources = standing.sources[np.argsort(-urgency, kind="stable")]
        due, early = np.split(sources, [np.count_nonzero(urgency >= 1.0)])
        return np.concatenate([standing.waiting, due, standing.cheap, early, standing.others])

    def urgency(self, pages: Pages, standing: Standing, visits: float) -> Floats:
        return overdue(standing.ages, self.intervals(pages, standing, visits))

    def intervals(self, pages: Pages, standing: Standing, visits: float) -> Floats:
        """Days between visits to each source, inf if it is not worth any."""
        sources = sources_of(pages, standing.sources)
        if self.equal:
            sources = sources._replace(profit=np.full(len(sources.profit), sources.profit.mean()))
        found = self.solved(pages, sources, visits)
        if not self.part_time:
            return np.where(found.share < 1.0, np.inf, found.interval)
        with np.errstate(divide="ignore", over="ignore"):
            return found.interval / found.share

    def solved(self, pages: Pages, sources: EchoSources, visits: float) -> EchoIntervals:
        """ECHO's intervals; for what was asked lately, as they were found then."""
        a_day = self.part * (visits if math.isnan(self.pace_) else self.pace_) / pages.tick.days
        told: tuple[float | bytes, ...] = a_day, *(column.tobytes() for column in sources)
        if told not in self._lately:
            if len(self._lately) >= _LATELY:
                self._lately.clear()
            cost, published = self.page_cost, self.published
            found = revisits(sources, a_day, page_cost=cost, published=published, exact=_NEAR)
            self._lately[told] = found
        return self._lately[told]


class EchoNewpagesPublished(EchoNewpages):
    """As `echo_newpages`, by the published rule: all pages of the sources kept are visited.

    Sources stay that are not worth their pages, and every page is visited: even those of a source
    that is to be kept for a share of the time, so none is."""

    published = True
    part_time = False


class EchoSchedule(EchoNewpages):
    """Sources strictly at ECHO's intervals; what is left goes to the pages found last."""

    def order(self, pages: Pages, standing: Standing, visits: float) -> Ints:
        due = self.sources_due(pages, standing, visits)
        return np.concatenate([due, standing.waiting[::-1], standing.cheap, standing.others])

    def urgency(self, pages: Pages, standing: Standing, visits: float) -> Floats:
        late = super().urgency(pages, standing, visits)
        half = 0.5 * pages.tick.days  # a tick is nearer to the time it is due than the next one
        on_time = standing.ages + half >= self.intervals(pages, standing, visits)
        return np.where(on_time, late, 0.0)


class EchoSchedulePublished(EchoSchedule):
    """As `echo_schedule`, by the published rule."""

    published = True


class Frequency(EchoSchedulePublished):
    """As `echo_schedule_published`, as if all pages were worth the same: only their rate counts."""

    equal = True


class Quota(EchoSchedulePublished):
    """As `echo_schedule_published`, with half of the visits for sources and half for pages."""

    part, page_cost = 0.5, 0.0

    def expected(self, pages: Pages, visits: float) -> Floats:
        if pages.prospects is None:
            return super().expected(pages, visits)
        standing, one = standing_of(pages, self.seed), np.ones(len(pages))
        due = self.sources_due(pages, standing, visits)
        sources = in_turn(due, one, visits / 2.0)
        coming = float(standing.found @ sources[standing.sources])
        left = visits - max(float(sources.sum()), visits / 2.0) - coming
        return sources + in_turn(standing.waiting[::-1], one, left)


class EchoGreedy(Discovery):
    """The source with the most to show, argmax λPτ, and all that is found on it; needs no decay."""

    def urgency(self, pages: Pages, standing: Standing, visits: float) -> Floats:
        sources = sources_of(pages, standing.sources)
        return sources.rate * sources.profit * standing.ages


class Miniflux(Discovery):
    """What the feed reader miniflux does: sources by how many entries they had in a week.

    With `entry_frequency` it waits for a week over the entries in a week as they came lately, at
    least 5 minutes and at most a day; a day where there are fewer than two.
    """

    def urgency(self, pages: Pages, standing: Standing, visits: float) -> Floats:
        return late(standing.ages, self.intervals(pages, standing), pages.tick.days)

    def intervals(self, pages: Pages, standing: Standing) -> Floats:
        """Days between visits to each source."""
        prospects = pages.prospects
        assert prospects is not None
        entries, span = (column[standing.sources] for column in (prospects.entries, prospects.span))
        known = (entries >= 2.0) & (span > 0.0)
        gaps = np.maximum(entries - 1.0, 1.0)
        weekly = np.ceil(_WEEK / (np.where(known, span, 1.0) / gaps))
        return np.where(known, np.clip(_WEEK / weekly, 5.0 / 1440.0, 1.0), 1.0)


class FixedSources(Discovery):
    """Feeds every 30 minutes, front pages every 12 hours, sitemaps once a day."""

    def urgency(self, pages: Pages, standing: Standing, visits: float) -> Floats:
        assert pages.prospects is not None
        usual = pages.prospects.usual[standing.sources]
        return late(standing.ages, usual, pages.tick.days)


class NewsCrawl(Adaptive, Discovery):
    """What Common Crawl's news crawler does: it waits longer after a visit with nothing new.

    A source with nothing new waits half as long again, at most 90 days, one with something new a
    fifth less, at least 90 minutes."""

    inc_rate, dec_rate, least, most = 0.5, 0.2, 1.5 / 24.0, 90.0

    def __init__(self, *, seed: int = 0) -> None:
        Adaptive.__init__(self, first_days=self.least)
        self.seed = seed

    def urgency(self, pages: Pages, standing: Standing, visits: float) -> Floats:
        due = self.due(pages)[standing.sources]
        now = float(instant(pages.tick.end).astype(np.int64))
        return np.maximum(now - due, 0.0)

    def _answer(self, visits: Outcomes) -> None:
        rows, interval = self._intervals(visits.page)
        told = [visits.changed == UNCHANGED, visits.changed == CHANGED]
        new = np.select(told, [(1 + self.inc_rate) * interval, (1 - self.dec_rate) * interval])
        new = np.clip(np.where(new > 0.0, new, interval), self.least, self.most)
        self.interval_.values[rows] = new
        self.due_.values[rows] = after(micros(visits.at), new)


def standing_of(pages: Pages, seed: int = 0) -> Standing:
    """What there is to visit; who is alike goes by a hash of (seed, id)."""
    prospects = pages.prospects
    assert prospects is not None
    source, new = prospects.rate > 0.0, ~np.isnan(prospects.remaining)
    if prospects.backlog is not None:
        new &= ~prospects.backlog
    sources, waiting = np.flatnonzero(source), np.flatnonzero(new & ~source)
    sources = sources[np.argsort(coins(seed, pages.ids[sources], 0), kind="stable")]
    hash_ = coins(seed, pages.ids[waiting], 0)
    waiting = waiting[np.lexsort((hash_, pages.added[waiting]))]
    others = np.flatnonzero(~source & ~new)
    others = others[np.argsort(pages.last_visit[others].view(np.int64), kind="stable")]
    ages = days_between(pages.last_visit[sources], instant(pages.tick.start))
    never = np.isnan(ages)
    found = prospects.finds(sources, np.where(never, 0.0, np.maximum(ages, 0.0)))
    cheap = np.empty(0, dtype=np.int64)
    return Standing(waiting, cheap, sources, others, np.where(never, _LONG, ages), found)


def sources_of(pages: Pages, rows: Ints) -> EchoSources:
    """Rate, profit and decay of sources, by their rows."""
    prospects = pages.prospects
    assert prospects is not None
    return EchoSources(*(getattr(prospects, name)[rows] for name in EchoSources._fields))


def overdue(ages: Floats, intervals: Floats) -> Floats:
    """τ/I of each source; of those without an interval, less than of any other, by their age.

    >>> overdue(np.array([1.0, 3.0, 9.0]), np.array([2.0, 2.0, np.inf])).round(3).tolist()
    [0.5, 1.5, 0.0]
    """
    return np.where(np.isfinite(intervals), ages / np.maximum(intervals, 1e-12), 1e-9 * ages)


def late(ages: Floats, intervals: Floats, tick: float) -> Floats:
    """Days since each source was due, or 0 if this tick (days) is not the nearest to that time.

    >>> late(np.array([1.0, 3.0]), np.array([2.0, 2.0]), 0.5).tolist()
    [0.0, 1.25]
    """
    return np.maximum(ages + 0.5 * tick - intervals, 0.0)
