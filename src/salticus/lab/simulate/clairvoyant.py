"""The crawler that knows every change beforehand, and the bound that not even it can pass."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import polars as pl

from salticus.lab.simulate.readers import Readership
from salticus.lab.simulate.stage import Stage
from salticus.lab.worlds.copies import UNBORN
from salticus.lab.worlds.replay import Replay
from salticus.types import Floats, Ints, Outcomes, Pages, Tick, Times, instant


class Clairvoyant:
    """Visits the stale pages whose new value will be read most before it changes again.

    It knows the world as it will be at the visit, when every page changes next, who will read it,
    and which visits will fail. Greedy: best visits first, tick by tick; `bound` tells how much
    better any other choice could be.
    """

    spends = False

    def __init__(self, world: Replay, readers: Readership, end: datetime) -> None:
        self.world, self.readers = world, readers
        truth = world.truth
        # the change points page by page, and for each page the next one to come
        counts = np.bincount(truth.page, minlength=len(truth))
        self._at: Times = np.append(truth.at[np.argsort(truth.page, kind="stable")], instant(end))
        self._stop: Ints = np.cumsum(counts)
        self._next: Ints = self._stop - counts
        self._passed = 0

    def expected(self, pages: Pages, visits: float) -> Floats:
        true = self._after(pages.tick)
        rows = np.flatnonzero(true != self.world.copies.held)
        rows = rows[(true[rows] != UNBORN) & (rows < len(pages))]
        rows = rows[~self.world.fails(rows, pages.tick)]
        gain = self._gain(rows, pages.tick)
        best = np.argsort(-gain, kind="stable")[: int(visits)]
        expected = np.zeros(len(pages))
        expected[rows[best]] = 1.0
        return expected

    def learn(self, outcomes: Outcomes) -> None:
        """There is nothing that it does not know."""

    def _after(self, tick: Tick) -> Ints:
        """The true values once the changes of the tick have happened."""
        truth = self.world.truth
        stop = truth.before(instant(tick.end))
        np.add.at(self._next, truth.page[self._passed : stop], 1)
        self._passed = max(self._passed, stop)
        return self.world.coming(instant(tick.end))

    def _gain(self, rows: Ints, tick: Tick) -> Floats:
        """Clicks that find the copy right if it is taken in this tick."""
        start, length = instant(tick.start), instant(tick.end) - instant(tick.start)
        following = self._next[rows]
        change = self._at[np.where(following < self._stop[rows], following, -1)]  # -1: the end
        until = start + (change - start) // length * length
        return self.readers.between(rows, np.full(len(rows), start), until)


def bound(stage: Stage, visits: float) -> float:
    """A share of the scored clicks that no crawler with so many visits in all can exceed.

    Lagrangian dual with one price for all visits: a visit is worth at most the clicks on its value
    from the tick in which it became true, its later returns included, so that `visits` of them
    are worth at most the sum of the largest. A copy that starts fresh serves for nothing.
    """
    truth, gap = stage.truth, np.timedelta64(stage.rules.tick)
    order = np.argsort(truth.page, kind="stable")
    page, value = truth.page[order], truth.value[order]
    crawl, score, end = (instant(t) for t in (stage.crawl, stage.score, stage.end))
    starts = crawl + (truth.at[order] - crawl) // gap * gap  # the tick that first shows the value
    ends = np.append(starts[1:], end)
    ends[np.append(page[1:] != page[:-1], True)] = end
    clicks = stage.readers.between(page, np.maximum(starts, score), np.maximum(ends, score))
    total = float(clicks.sum())
    worth = _with_returns(page, value, clicks)
    held = (starts < crawl) & (ends >= crawl) & (stage.rules.observe != "partial")
    paid = np.sort(worth[~held & (ends > crawl)])[::-1][: int(visits)]
    return min(1.0, (float(worth[held].sum()) + float(paid.sum())) / total) if total else 1.0


def _with_returns(page: Ints, value: Ints, clicks: Floats) -> Floats:
    """Clicks on each value from then on: its own, and those of its page's later returns to it.

    >>> _with_returns(np.zeros(3), np.array([7, 8, 7]), np.array([1.0, 2.0, 4.0])).tolist()
    [5.0, 2.0, 4.0]
    """
    points = pl.DataFrame({"page": page, "value": value, "clicks": clicks})
    later = pl.col("clicks").cum_sum(reverse=True).over("page", "value")
    return points.select(later)["clicks"].to_numpy()
