"""What visits to sources are worth at a visit price."""

from __future__ import annotations

import math

import numpy as np

from salticus.types import Floats, Harvest, Ints, Pages, Prospects, days_between, instant

KNOWN = 2.0  # looks after the first that a source needs before it is judged
_TRIES = 0.1  # of the visits, for sources that have had fewer
_POINTS = 120  # of the time between visits at which worth is looked at


def source_worth(
    prospects: Prospects, rows: Ints, ages: Floats, price: float
) -> tuple[Floats, Floats]:
    """V of a visit to each source so many days after the last, in clicks, and how many pages it
    would find that are worth the price.

    A visit gains G(τ) = n(τ)·max(R(τ) − Λ, 0): n pages are found, each worth R clicks and a visit
    of its own. To come every τ days is best where (G − Λ)/τ is greatest, that is when
    V = G(τ) − τG'(τ) reaches the price. If links appear at the rate λ and stay, and interest in
    their pages decays from P at the rate m, this is λP/m·g(mτ) at the price 0 (ALGORITHMS §0).
    Links appear in own time: by night V hardly grows.

    Before its first visit (after inf days) a source is worth as much as it may ever be, and all
    that it shows is old.
    """
    worth, finds = np.zeros(len(rows)), np.zeros(len(rows))
    met = np.isfinite(ages)
    worth[met], finds[met] = _worth(prospects, rows[met], ages[met], price)
    for gap in prospects.harvest.gaps if not met.all() else ():
        some = rows[~met]
        late, _ = _worth(prospects, some, np.full(len(some), gap), price)
        worth[~met] = np.maximum(worth[~met], late)
    return worth, finds


def _worth(prospects: Prospects, rows: Ints, ages: Floats, price: float) -> tuple[Floats, Floats]:
    harvest, own = prospects.harvest, prospects.row[rows]
    net, since = _net(harvest, own, price), harvest.own(ages)
    finds, each = harvest.at(own, ages, since)

    def gain(by: float) -> Floats:
        found = harvest.at(own, ages * by, since * by)[0]
        return np.asarray(found * _between(harvest.gaps, net, ages * by))

    slope = gain(math.sqrt(2.0)) - gain(math.sqrt(0.5))
    worth = gain(1.0) - slope / math.log(2.0)
    return np.maximum(worth, 0.0), np.where(each > price, finds, 0.0)


def unseen_for(pages: Pages, rows: Ints) -> Floats:
    """Days for which what each source shows was not seen; inf if it never answered."""
    if pages.prospects is not None and pages.prospects.unseen is not None:
        return pages.prospects.unseen[rows]
    days = days_between(pages.unanswered_since()[rows], instant(pages.tick.start))
    return np.where(np.isnan(days), np.inf, days)


def untried(pages: Pages, visits: float) -> Ints:
    """Sources that were looked at once or twice and are due by custom, the latest first; no more
    than a tenth of the visits is for.

    What a source shows at first is old, and tells little of what it will show. At a price above
    what is supposed of it no source would be looked at again, and its worth never be learnt. One
    that did not answer last time is left to its worth.
    """
    assert pages.prospects is not None
    rows = np.flatnonzero((pages.prospects.row >= 0) & (pages.prospects.looks < KNOWN))
    late = unseen_for(pages, rows) / pages.prospects.usual[rows]
    answered = pages.last_answer[rows] == pages.last_visit[rows]
    due = np.flatnonzero((late >= 1.0) & np.isfinite(late) & answered)
    each, number = _TRIES * visits, pages.tick.number
    many = math.floor((number + 1) * each) - math.floor(number * each)
    return rows[due[np.argsort(-late[due], kind="stable")[:many]]]


def source_intervals(prospects: Prospects, rows: Ints, price: float) -> Floats:
    """Days after which a visit to each source is worth the price; inf if it never is."""
    intervals, gaps = np.full(len(rows), np.inf), prospects.harvest.gaps
    for age in np.geomspace(gaps[-1], gaps[0], _POINTS):
        worth, _ = source_worth(prospects, rows, np.full(len(rows), age), price)
        intervals[worth >= price] = age
    return intervals


def _net(harvest: Harvest, rows: Ints, price: float) -> Floats:
    """Clicks that each page found after each gap brings above the price, if it is visited when that
    is best: at once, or if its link still stands after as long again, and so on."""
    net = np.maximum(harvest.each[rows] - price, 0.0)
    if harvest.stays is not None:
        for gap in range(len(harvest.gaps) - 2, -1, -1):
            np.maximum(net[:, gap], harvest.stays[gap] * net[:, gap + 1], out=net[:, gap])
    return np.asarray(net)


def _between(gaps: Floats, values: Floats, ages: Floats) -> Floats:
    """Values of each row, in proportion to the logarithm of the days between two gaps."""
    place = np.clip(np.log2(np.maximum(ages, 1e-12) / gaps[0]), 0.0, len(gaps) - 1.0)
    low = np.minimum(place.astype(np.int64), len(gaps) - 2)
    row, part = np.arange(len(ages)), place - low
    return np.asarray((1.0 - part) * values[row, low] + part * values[row, low + 1])


def page_worth(harvest: Harvest) -> float:
    """Clicks on a new page, on average over all that visits at the shortest gap find."""
    finds, each = harvest.finds[:, 0], harvest.each[:, 0]
    return float(finds @ each / finds.sum()) if finds.any() else 0.0
