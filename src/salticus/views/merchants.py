"""How far merchants' feeds can be trusted: their accuracy and lag, as visits found them.

A *statement* is a row of a feed that said something new of a page; it is in force until the same
merchant's next one for that page. A *sighting* is an answered visit with the value that held then.

*Accuracy* is the share of sightings, from a merchant's first statement for the page on, whose value
is the one in force; *price accuracy* looks at the price alone, since feeds and pages differ in how
much they say of stock.

*Lag* is the time from a change to the statement that tells of it. Two sightings a, b in a row with
different values bound the change: it came after a, and at b at the latest. So a statement at t lags
by t − b at least and by less than t − a, and every quantile of the true lags lies between the
same quantiles of both. Negative means that the feed was first. Changes that were over and done
between two visits are not seen at all; the rarer the visits, the wider the bounds, and the more
changes are missing. A change that the feed has not told of counts as one that lags for ever.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import msgspec

from salticus.crawl.opening import Crawl
from salticus.views.times import moment

_KIND = "feed:"
_ANSWERED = ("ok", "not_modified")

Scan = Callable[[str], Iterator[dict[str, Any]]]


class Said(NamedTuple):
    """A value from a time (µs) on: stated by a feed, or seen by a visit."""

    at: int
    text: str


class Lag(NamedTuple):
    """The least and the most by which a statement can lag behind a change, in µs."""

    least: float
    most: float


@dataclass(slots=True)
class Merchant:
    """What is known of one merchant's feed."""

    rows: int = 0
    pages: int = 0
    last: int = 0
    unchecked: int = 0  # pages that no visit has come to since they were told of
    sightings: int = 0
    right: int = 0
    right_price: int = 0
    open: int = 0  # changes since which the merchant has sent nothing
    lags: list[Lag] = field(default_factory=list)


class MerchantView(msgspec.Struct, frozen=True):
    """What is known of a merchant's feed, in figures; lags in seconds, None = nothing is known."""

    merchant: str
    rows: int
    pages: int
    last: datetime
    visits: int
    accuracy: float | None
    price_accuracy: float | None
    unchecked_pages: int
    changes: int
    untold_changes: int
    open_changes: int
    feed_first: int
    page_first: int
    lag_median_s: list[float | None] | None
    lag_p90_s: list[float | None] | None


async def merchants(crawl: Crawl) -> list[MerchantView]:
    """One row a merchant, by name."""
    return [facts(name, known) for name, known in measure(crawl.store.scan).items()]


def measure(scan: Scan) -> dict[str, Merchant]:
    """What a store's signals, visits and values say of every merchant; sorted by name."""
    told: dict[str, dict[Any, list[Said]]] = defaultdict(lambda: defaultdict(list))
    for row in scan("signals"):
        if row["kind"].startswith(_KIND):
            name = row["kind"].removeprefix(_KIND)
            told[name][row["page_id"]].append(Said(row["at"], row["value"] or ""))
    seen = _sightings(scan, {page for pages in told.values() for page in pages})
    return {name: _merchant(told[name], seen) for name in sorted(told)}


def _sightings(scan: Scan, pages: set[Any]) -> dict[Any, list[Said]]:
    values: dict[Any, list[Said]] = defaultdict(list)
    for row in scan("values"):
        if row["page_id"] in pages:
            values[row["page_id"]].append(Said(row["at"], row["value"] or ""))
    seen: dict[Any, list[Said]] = defaultdict(list)
    for row in scan("visits"):
        if row["page_id"] in pages and row["status"] in _ANSWERED:
            held = _in_force(values[row["page_id"]], row["at"])
            if held is not None:
                seen[row["page_id"]].append(Said(row["at"], held.text))
    return seen


def _in_force(said: Sequence[Said], at: int) -> Said | None:
    """What was said last at a time; None before anything was."""
    place = bisect_right(said, at, key=lambda each: each.at)
    return said[place - 1] if place else None


def _merchant(told: dict[Any, list[Said]], seen: dict[Any, list[Said]]) -> Merchant:
    found = Merchant(pages=len(told))
    found.rows = sum(map(len, told.values()))
    found.last = max(said[-1].at for said in told.values())
    for page, said in told.items():
        sightings = seen.get(page, [])
        later = [each for each in sightings if each.at >= said[0].at]
        found.unchecked += not later
        found.sightings += len(later)
        for each in later:
            stated = _in_force(said, each.at) or each
            found.right += stated.text == each.text
            found.right_price += _price(stated.text) == _price(each.text)
        _add_lags(found, said, sightings)
    return found


def _price(text: str) -> str:
    return text.partition(" ")[0]


def _add_lags(found: Merchant, said: list[Said], sightings: list[Said]) -> None:
    runs = [list(run) for _, run in groupby(sightings, key=lambda each: each.text)]
    ends = [run[0].at for run in runs[2:]] + [math.inf]
    for (old, new), end in zip(pairwise(runs), ends, strict=False):
        if said[0].at > old[-1].at:  # the merchant did not tell of this page yet
            continue
        at = _told_at(said, new[0], end)
        if at is None and found.last <= new[0].at:
            found.open += 1
        elif at is None:
            found.lags.append(Lag(math.inf, math.inf))
        elif at > old[0].at:  # else it never noticed the old value, and tells no lag
            found.lags.append(Lag(at - new[0].at, at - old[-1].at))


def _told_at(said: list[Said], new: Said, end: float) -> int | None:
    """When the feed told of a new value, before or after it was seen; None if it did not."""
    held = _in_force(said, new.at)
    if held is not None and held.text == new.text:
        return held.at
    later = (each.at for each in said if new.at < each.at < end and each.text == new.text)
    return next(later, None)


def facts(name: str, known: Merchant) -> MerchantView:
    """What is known, as figures."""
    told = [lag for lag in known.lags if math.isfinite(lag.least)]
    return MerchantView(
        merchant=name,
        rows=known.rows,
        pages=known.pages,
        last=moment(known.last),
        visits=known.sightings,
        accuracy=_share(known.right, known.sightings),
        price_accuracy=_share(known.right_price, known.sightings),
        unchecked_pages=known.unchecked,
        changes=len(known.lags),
        untold_changes=len(known.lags) - len(told),
        open_changes=known.open,
        feed_first=sum(lag.most <= 0 for lag in told),
        page_first=sum(lag.least > 0 for lag in told),
        lag_median_s=_bounds(known.lags, 0.5),
        lag_p90_s=_bounds(known.lags, 0.9),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _bounds(lags: Sequence[Lag], share: float) -> list[float | None] | None:
    """The least and the most that a quantile can be, in seconds; None in it means: never told."""
    if not lags:
        return None
    return [quantile([lag[side] / 1e6 for lag in lags], share) for side in (0, 1)]


def quantile(values: Iterable[float], share: float) -> float | None:
    """The least value that at least this share does not exceed; None if that is for ever.

    >>> quantile([3, 1, 2], 0.5), quantile([1, 2, 3, math.inf], 0.9)
    (2, None)
    """
    ordered = sorted(values)
    found = ordered[math.ceil(share * len(ordered)) - 1]
    return found if math.isfinite(found) else None
