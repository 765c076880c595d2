"""What adaptive schedulers share: an interval and a due time for each page, moved by each visit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from salticus.types import ANSWERED, DAY, Floats, Ints, Outcomes, Pages, Times
from salticus.types.state import Keyed, State, rank_within

DAY_US = float(DAY.astype(np.int64))


@dataclass(kw_only=True)
class Adaptive:
    """Keeps when each page is due, and asks its subclass for the next time after every answer.

    A failed visit is made up for one interval later, the interval unchanged; a dropped one changes
    nothing. A page never visited is due since it was added; one of which only the last visit is
    known, a first interval after it. Due times are µs since 1970 (exact in a float), intervals are
    in days, NaN where no visit has been learnt from.
    """

    first_days: float
    interval_: Keyed = field(default_factory=Keyed, init=False, repr=False)
    due_: Keyed = field(default_factory=Keyed, init=False, repr=False)

    def due(self, pages: Pages) -> Floats:
        """When each page is due, µs since 1970."""
        due = self.due_.get(pages.ids, np.full(len(pages), np.nan))
        new = np.flatnonzero(np.isnan(due))
        last = pages.last_visit[new]
        known = micros(last) + self.first_days * DAY_US
        due[new] = np.where(np.isnat(last), micros(pages.added[new]), known)
        return due

    def learn(self, outcomes: Outcomes) -> None:
        """Move the due times of the pages that were visited."""
        for visits in _once_each(outcomes.take(outcomes.made)):
            self._meet(visits.page)
            answered = np.isin(visits.status, [int(status) for status in ANSWERED])
            self._fail(visits.take(~answered))
            self._answer(visits.take(answered))

    def _answer(self, visits: Outcomes) -> None:
        """Set interval and due time of pages that were answered, each at most once."""
        raise NotImplementedError

    def _fail(self, visits: Outcomes) -> None:
        rows, interval = self._intervals(visits.page)
        self.due_.values[rows] = after(micros(visits.at), interval)

    def _intervals(self, ids: Ints) -> tuple[Ints, Floats]:
        """Where these pages are kept, and their intervals so far."""
        rows, _ = self.interval_.rows(ids)
        interval = self.interval_.values[rows]
        return rows, np.where(np.isnan(interval), self.first_days, interval)

    def _kept(self) -> dict[str, Keyed]:
        return {"interval": self.interval_, "due": self.due_}

    def _meet(self, ids: Ints) -> None:
        """Have a row for each of these pages; those met before are kept."""
        if np.array_equal(ids, self.due_.ids):
            return
        _, known = self.due_.rows(ids)
        new = np.sort(ids[~known])  # np.unique hashes first, which takes longer than all the rest
        new = new[np.diff(new, prepend=new[:1] - 1) > 0]
        if len(new):
            at = np.searchsorted(self.due_.ids, new)
            together = np.insert(self.due_.ids, at, new)
            for kept in self._kept().values():
                kept.put(together, np.insert(kept.values, at, np.nan))

    def state(self) -> State:
        values = {name: kept.values for name, kept in self._kept().items()}
        return {"ids": self.due_.ids, **values}

    def restore(self, state: State) -> None:
        for name, kept in self._kept().items():
            kept.put(state["ids"], state[name].copy())


def micros(times: Times) -> Floats:
    """Times as µs since 1970."""
    return times.view(np.int64).astype(np.float64)


def after(start_us: Floats, days: Floats) -> Floats:
    """The times so many days later, in whole µs."""
    return np.rint(start_us + days * DAY_US)


def _once_each(outcomes: Outcomes) -> Iterator[Outcomes]:
    """The visits in rounds in which no page occurs twice; one round as a rule."""
    number = rank_within(outcomes.page)
    for k in range(int(number.max(initial=-1)) + 1):
        yield outcomes.take(number == k)
