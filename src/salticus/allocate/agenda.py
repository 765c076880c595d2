"""The event-driven form of the index policy: which page is due next, at O(log n) a decision."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from salticus.allocate.base import known
from salticus.allocate.heap import (
    Book,
    fill,
    note_visit,
    open_book,
    plan_visits,
    set_interval,
    take_next,
)
from salticus.allocate.intervals import Curves, guess_price, of_rates, solve_price
from salticus.errors import InputError
from salticus.types import Bools, Floats, Ints, Survival


class Agenda:
    """Pages in the order in which they fall due, for crawlers that take one visit at a time.

    A page is due τ days after its last visit, when V(τ) reaches the visit price; `reprice` solves
    the price for the budget and every page's τ from it (once an epoch: an hour, a day). `next` then
    gives the page that is due first, early or late: whoever asks as often as the budget allows
    spends it exactly. Pages whose V never reaches the price are not due at all; the quota `explore`
    of the decisions goes to them, the oldest visit first (ALGORITHMS §6.1).

    Times are in days since any fixed moment, `last` is NaN for pages that were never visited; these
    come first. The price is solved, not steered: feedback on lateness settles at wrong prices, and
    one that is wrong by a factor of two costs several points of freshness.

    Cost: `next`, `visited`, `update` O(log n), `reprice` about ten passes over known rates and a
    hundred over curves; 64 bytes a page.

    >>> agenda = Agenda(last=np.zeros(3), explore=0.0)
    >>> rates, demand = np.array([1.0, 0.5, 0.0]), np.array([1.0, 3.0, 9.0])
    >>> agenda.reprice(demand, rates, visits=2.0)  # a day
    >>> agenda.interval_.round(2)  # what never changes is never due
    array([1.31, 0.81,  inf])
    >>> row = agenda.next()
    >>> agenda.visited(row, at=0.5)
    >>> agenda.plan(4, start=1.0, spacing=0.5)  # the visits to come, at 1.0, 1.5, 2.0, 2.5
    array([1, 0, 1, 1])
    """

    def __init__(self, last: Floats, *, explore: float = 0.02) -> None:
        n = len(last)
        self.explore = explore
        self.price_ = math.nan
        self._numbers = np.full((4, n + 2), np.inf)
        self._places = np.full((4, n + 2), -1, dtype=np.int64)
        self._numbers[2] = np.append(np.where(np.isnan(last), -np.inf, last), (0.0, explore))
        self._arrange(np.zeros(n, dtype=np.bool_))

    @property
    def interval_(self) -> Floats:
        """Days between visits of each page; infinity for those that only exploration visits."""
        return self._book().interval

    @property
    def last_(self) -> Floats:
        """When each page was last visited, in days; minus infinity if never."""
        return self._book().last

    @property
    def due_(self) -> float:
        """When the page that is due first is due, in days; infinity if none ever is."""
        heap = self._book().due
        return float(heap.keys[0]) if heap.size[0] else math.inf

    def reprice(self, demand: Floats, curves: Survival | Floats, visits: float) -> None:
        """Solve the price at which `visits` a day are spent, and order the pages anew.

        `curves` are survival curves, or simply change rates a day.
        """
        spent = visits * (1.0 - self.explore)
        rows = np.arange(len(demand))
        rates = curves if isinstance(curves, np.ndarray) else curves.rates()
        known("demand", demand, rows), known("change rate", rates, rows)
        intervals = self._intervals(demand, curves)
        self.price_ = solve_price(intervals, spent, guess_price(rates, demand, spent))
        self.interval_[:] = intervals(self.price_)
        self._arrange(~self._listed())

    @staticmethod
    def _intervals(demand: Floats, curves: Survival | Floats) -> Callable[[float], Floats]:
        if isinstance(curves, np.ndarray):
            return partial(of_rates, curves, demand)
        return Curves(curves, demand)

    def next(self) -> int | None:
        """The row of the page to visit now. It is off the agenda until `visited` puts it back."""
        row = take_next(self._numbers, self._places)
        return None if row < 0 else row

    def visited(self, row: int, at: float) -> None:
        """The page was visited; it is due again an interval later.

        A visit that could not be made is undone with the time of the one before.
        """
        note_visit(self._numbers, self._places, self._checked(row, at), float(at))

    def update(self, row: int, interval: float) -> None:
        """What is known of the page has changed, and with it the days between its visits."""
        set_interval(self._numbers, self._places, self._checked(row, interval), float(interval))

    def plan(self, visits: int, *, start: float, spacing: float) -> Ints:
        """The rows of the next `visits`, the first at `start` and one every `spacing` days.

        The same as so many calls of `next` and `visited`. Fewer if there are no pages.
        """
        return plan_visits(self._numbers, self._places, int(visits), float(start), float(spacing))

    def _checked(self, row: int, days: float) -> int:
        """The row, unless it or the days would spoil the order: compiled loops trust both."""
        if not 0 <= row < self._numbers.shape[1] - 2 or days != days:
            raise InputError(f"row {row} at {days} days: there is no such row or no such time")
        return row

    def _book(self) -> Book:
        return open_book(self._numbers, self._places)

    def _listed(self) -> Bools:
        """Pages that are not being visited at the moment."""
        book = self._book()
        return (book.due.place >= 0) | (book.waiting.place >= 0)

    def _arrange(self, away: Bools) -> None:
        """Put all pages but those `away` where they belong."""
        book = self._book()
        wait = np.isinf(book.interval)
        ever = np.isneginf(book.last) | ~wait
        due = book.last + np.where(wait, 0.0, book.interval)
        fill(book.due, np.where(ever & ~away, due, np.inf))
        fill(book.waiting, np.where(ever | away, np.inf, book.last))
