"""What a crawler would have seen that tosses a coin for every page in every step of time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from salticus.features.events import EventKind, Events, make_events
from salticus.features.truths import Truths, log_ratio
from salticus.types import Floats, Ints
from salticus.types.coins import coins


def tossed(
    truths: Truths, rates: tuple[float, float], step: int, *, seed: int, until: int = 0
) -> Iterator[Events]:
    """Events in order, by whole UTC days; `step` is in hours.

    Coins are tossed from the first birth to the last change, or on to the hour `until`.
    Every page has visits a day of its own, drawn evenly on a scale of ratios between the two
    `rates`. A visit in an hour sees what the page holds at the end of it. A page that is away does
    not answer.
    """
    if not len(truths.page):
        return
    crawler = _Crawler(truths)
    start = int(truths.hour.min()) // step * step
    end = max(until, int(truths.hour.max()) + 1)
    chance, lives = _chances(rates, crawler.pages, seed) * step / 24, truths.lives()
    for day in range(start // 24, (end - 1) // 24 + 1):
        first = max(start, -(-24 * day // step) * step)
        hours = range(first, min(24 * day + 24, end), step)
        low, high = np.searchsorted(lives.hour, [24 * day, 24 * day + 24])
        events = lives.take(np.arange(low, high))
        for hour in hours:
            heads = coins(seed, crawler.pages, hour // step) < chance
            events = events.join(crawler.visit(np.flatnonzero(heads), hour))
        if len(events):
            yield events.ordered()


def _chances(rates: tuple[float, float], pages: Ints, seed: int) -> Floats:
    """Visits a day of each page."""
    low, high = rates
    return np.asarray(low * (high / low) ** coins(seed, pages, -1))


class _Crawler:
    """Knows what every page holds, and what it held at its last visit."""

    def __init__(self, truths: Truths) -> None:
        n = len(truths.born)
        self.truths = truths
        self.pages = np.arange(n)
        self._order = np.argsort(truths.hour, kind="stable")
        self._at = truths.hour[self._order]
        self._done = 0
        self.point = np.full(n, -1, dtype=np.int64)  # the row of `truths` that holds now
        self.seen = np.full(n, -1, dtype=np.int64)  # the one that the last answer saw
        self.answer = np.full(n, -1, dtype=np.int64)

    def visit(self, page: Ints, hour: int) -> Events:
        """The events of visits to these pages in an hour."""
        end = int(np.searchsorted(self._at, hour, side="right"))
        new = self._order[self._done : end]
        self.point[self.truths.page[new]] = new  # in order of time, so the last one stays
        self._done = end
        point = self.point[page]
        answers = (point >= 0) & (self.truths.value[point] >= 0)
        page, point = page[answers], point[answers]
        events = self._answers(page, point, hour)
        self.seen[page], self.answer[page] = point, hour
        return events

    def _answers(self, page: Ints, point: Ints, hour: int) -> Events:
        t, old, since = self.truths, self.seen[page], self.answer[page]
        gap = np.where(since >= 0, hour - since, np.nan).astype(np.float32)
        at = np.full(len(page), hour)
        visits = make_events(EventKind.VISIT, at, page, gap, t.price[point], t.stock[point])
        c = (old >= 0) & (t.value[old] != t.value[point])
        moved = log_ratio(t.price[point[c]], t.price[old[c]])
        new = point[c]
        return visits.join(
            make_events(EventKind.CHANGE, at[c], page[c], t.price[new], moved, t.stock[new])
        )
