"""What visits to sources and to new pages promise, at the visit price, in numbers and in words."""

from __future__ import annotations

import math
from datetime import datetime

import msgspec
import numpy as np

from salticus.allocate.base import Priced
from salticus.allocate.finding import KNOWN, source_intervals, source_worth, unseen_for
from salticus.crawl.standing import Standing
from salticus.types import Floats, Harvest, Ints, instant, moment
from salticus.types.state import places
from salticus.views.times import when

_ALIKE = 1.25  # hours that have no more than so many times the mean are not named
_BARS = "▁▂▃▄▅▆▇█"


class Promise(msgspec.Struct, frozen=True):
    """What a source promises: `new_per_day` new pages, with a relative standard `error`, and
    `new_now` by now, each of which gets `clicks_per_page` in all and half of them within
    `half_life` days, so that a visit brings `worth` clicks more. At the visit price it is visited
    when what it shows was `unseen` for `interval` days, None if it is never worth that; or as
    custom has it, before it has had `looks` after the first."""

    new_per_day: float
    error: float
    new_now: float
    clicks_per_page: float
    half_life: float
    worth: float
    interval: float | None
    visit_price: float | None
    unseen: float
    looks: int

    def words(self) -> str:
        """For people, in a sentence."""
        said = (
            f"{self.new_per_day:.3g} a day (±{self.error:.0%}), by now about "
            f"{self.new_now:.2g} new pages, each good for {self.clicks_per_page:.2g} "
            f"clicks, half of them within {span_words(self.half_life)}; a visit is worth "
            f"{self.worth:.2g} clicks"
        )
        if self.visit_price is None:
            return said
        said += f", and must be worth {self.visit_price:.2g}"
        if self.looks < KNOWN and self.interval is not None:
            again = f"is tried again after {span_words(self.interval)}"
            return f"{said}; but it was looked at too seldom to know, and {again}"
        if self.interval is None:
            return f"{said}, which it never is: only exploration looks at it again"
        return f"{said}, as it is {span_words(self.interval)} after what it shows was last seen"


class FoundPage(msgspec.Struct, frozen=True):
    """A page that a source showed and that waits for its first visit: since when, and the clicks
    that it will get yet."""

    found: datetime
    source: str | None
    remaining: float

    def words(self) -> str:
        """For people, in a sentence."""
        by = f" on {self.source}" if self.source else ""
        return f"found{by} at {when(self.found)}; {self.remaining:.2g} clicks are still to come"


def span_words(days: float) -> str:
    """A length of time in the unit that fits.

    >>> span_words(0.01), span_words(0.5), span_words(3.25)
    ('14 min', '12 h', '3.2 d')
    """
    if days * 1440 < 90:
        return f"{days * 1440:.2g} min"
    return f"{days * 24:.2g} h" if days < 2 else f"{days:.2g} d"


def price_of(standing: Standing) -> float | None:
    """The visit price of the last plan; None if there is none."""
    policy = standing.parts.policy
    price = policy.price_ if isinstance(policy, Priced) else math.nan
    return price if math.isfinite(price) else None


def promised(standing: Standing, sources: Ints) -> dict[int, Promise]:
    """What each of these sources promises, by its id; those never answered are left out."""
    pages = standing.everyone(standing.coming)
    if pages.prospects is None:
        return {}
    rows, known = places(pages.ids, sources)
    rows = rows[known]
    rows = rows[(pages.prospects.row[rows] >= 0) & ~np.isnat(pages.last_answer[rows])]
    price = price_of(standing)
    unseen = unseen_for(pages, rows)
    worth, _ = source_worth(pages.prospects, rows, unseen, price or 0.0)
    new = pages.prospects.finds(rows, unseen)
    looks, intervals = pages.prospects.looks[rows], np.full(len(rows), np.inf)
    if price is not None:
        usual = np.where(looks < KNOWN, pages.prospects.usual[rows], np.inf)
        intervals = np.minimum(source_intervals(pages.prospects, rows, price), usual)
    links = standing.census.scout.finder.links_
    profit, decay = pages.prospects.profit[rows], pages.prospects.decay[rows]
    return {
        int(pages.ids[row]): Promise(
            new_per_day=float(links.rate[pages.prospects.row[row]]),
            error=float(links.error[pages.prospects.row[row]]),
            new_now=float(new[k]),
            clicks_per_page=float(profit[k]),
            half_life=math.log(2.0) / float(decay[k]),
            worth=float(worth[k]),
            interval=float(intervals[k]) if math.isfinite(intervals[k]) else None,
            visit_price=price,
            unseen=float(unseen[k]),
            looks=int(looks[k]),
        )
        for k, row in enumerate(rows.tolist())
    }


def by_hour(harvest: Harvest) -> Floats:
    """How many links appear in each hour of the day (UTC) on all sources together, in parts of the
    mean; all alike as long as nothing is known."""
    if harvest.week is None:
        return np.ones(24)
    return np.asarray(24.0 * np.diff(harvest.week).reshape(7, 24).mean(axis=0))


def hours_words(hours: Floats) -> str:
    """The hours of the day in a word: as bars, and those in which most links appear.

    >>> hours_words(np.repeat([0.5, 2.5, 0.5], [8, 6, 10]))
    '▁▁▁▁▁▁▁▁██████▁▁▁▁▁▁▁▁▁▁ most from 8 to 14'
    >>> hours_words(np.ones(24))
    'alike at all hours'
    """
    many = np.flatnonzero(hours > _ALIKE * hours.mean())
    if not len(many):
        return "alike at all hours"
    level = (hours - hours.min()) / np.ptp(hours)
    bars = "".join(_BARS[int(each)] for each in np.rint(level * (len(_BARS) - 1)))
    begin = many[np.diff(many, prepend=many[-1] - 24) > 1]
    end = many[np.diff(many, append=many[0] + 24) > 1] + 1
    spans = zip(begin, np.roll(end, -1) if end[0] <= begin[0] else end, strict=True)
    return f"{bars} most " + ", ".join(f"from {a} to {b % 24 or 24}" for a, b in spans)


async def found_page(standing: Standing, page: int) -> FoundPage | None:
    """What a page that waits for its first visit promises; None if it is none."""
    scout = standing.census.scout
    row, known = places(scout.found_.page, np.array([page]))
    left = scout.worth(np.array([page]), instant(standing.now))[0]
    if not known[0] or math.isnan(left):
        return None
    found = scout.found_.take(row)
    (source,) = await standing.census.store.targets(scout.ids_[found.via])
    return FoundPage(moment(found.at[0]), source.url, float(left))
