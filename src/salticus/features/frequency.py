"""Change frequencies of a page and of its category (Han et al. 2019, Table 1), batch over a log.

All sums are of integers (counts and whole hours) and each feature is one division of two of them,
so that a version that streams over observations can agree to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.features.history import NEVER_GONE, History
from salticus.types import Floats, Ints

WINDOWS = {"day": 24, "week": 168, "month": 720}  # hours


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Columns over predictions: changes an hour within the last day, week and month, and hours
    since the most recent change; of the page itself, and over all pages of its category.
    """

    page_day: Floats
    page_week: Floats
    page_month: Floats
    page_recent: Floats
    category_day: Floats
    category_week: Floats
    category_month: Floats
    category_recent: Floats


def frequencies(history: History, page: Ints, hour: Ints) -> Frequencies:
    """The features of the given pages (rows) at the given hours; only earlier hours are looked at.

    A frequency is changes seen / hours seen: the window, or less if the page is younger; for a
    category, the hours of all its pages. Without an hour seen it is 0. A page that has not
    changed counts from its birth, an unborn one from the start of the log; a category averages
    this over the pages it has.
    """
    own, group = _Own(history), _Group(history)
    code, when, back = _distinct(history.group[page], hour)  # many pages share a category
    return Frequencies(
        **{f"page_{name}": own.frequency(page, hour, w) for name, w in WINDOWS.items()},
        page_recent=own.recent(page, hour).astype(np.float64),
        **{f"category_{name}": group.frequency(code, when, w)[back] for name, w in WINDOWS.items()},
        category_recent=group.recent(code, when)[back],
    )


def _distinct(key: Ints, hour: Ints) -> tuple[Ints, Ints, Ints]:
    """Every pair of key and hour once, and where each pair went."""
    first = int(hour.min(initial=0))
    span = int(hour.max(initial=0)) - first + 1
    pairs, back = np.unique(key * span + (hour - first), return_inverse=True)
    return pairs // span, pairs % span + first, back


class Steps:
    """Sums of integer steps by key and hour: a step counts from the hour after its own.

    >>> steps = Steps(np.array([0, 0, 1]), np.array([5, 7, 6]), np.array([1, 10, 100]))
    >>> steps.before(np.array([0, 0, 0, 1]), np.array([5, 6, 8, 9]))
    array([  0,   1,  11, 100])
    """

    def __init__(self, key: Ints, hour: Ints, size: Ints | None = None) -> None:
        self._first = int(hour.min(initial=NEVER_GONE))
        self._span = max(1, int(hour.max(initial=0)) - self._first + 2)
        self.at = self._place(key, hour)
        if len(self.at) and (np.diff(self.at) < 0).any():
            order = np.argsort(self.at, kind="stable")
            self.at = self.at[order]
            size = None if size is None else size[order]
        steps = np.ones(len(self.at), dtype=np.int64) if size is None else size
        self._sum = np.concatenate([[0], np.cumsum(steps, dtype=np.int64)])

    def before(self, key: Ints, hour: Ints) -> Ints:
        """The sum of the key's steps in hours before the given one."""
        base: Ints = self._sum[np.searchsorted(self.at, self._base(key))]
        return self._sum[self.count(key, hour)] - base

    def count(self, key: Ints, hour: Ints) -> Ints:
        """How many steps come before, those of lower keys included."""
        return np.searchsorted(self.at, self._place(key, hour))

    def last(self, key: Ints, hour: Ints, default: Ints) -> Ints:
        """The hour of the key's last step before the given hour, `default` if there is none."""
        at = self.count(key, hour) - 1
        base = self._base(key)
        found = self.at[np.maximum(at, 0)] - base if len(self.at) else base
        known = (at >= 0) & (found >= 0) if len(self.at) else np.zeros(len(key), dtype=np.bool_)
        return np.where(known, found + self._first, default)

    def _base(self, key: Ints) -> Ints:
        return key * self._span

    def _place(self, key: Ints, hour: Ints) -> Ints:
        return self._base(key) + np.clip(hour - self._first, 0, self._span - 1)


class _Own:
    """The changes of each page by itself."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.changes = Steps(history.page, history.hour)

    def frequency(self, page: Ints, hour: Ints, window: int) -> Floats:
        count = self.changes.count(page, hour) - self.changes.count(page, hour - window)
        seen = self._seen(page, hour) - self._seen(page, hour - window)
        return _ratio(count, seen)

    def recent(self, page: Ints, hour: Ints) -> Ints:
        born = self.history.born[page]
        since = np.where(born < hour, born, self.history.start)
        return hour - self.changes.last(page, hour, since)

    def _seen(self, page: Ints, hour: Ints) -> Ints:
        """Hours of the page's life before the given one."""
        end = np.minimum(hour, self.history.gone[page])
        return np.maximum(0, end - self.history.born[page])


class _Group:
    """The changes of each category, and the hours that its pages lived."""

    def __init__(self, history: History) -> None:
        code, left = history.group, history.gone < NEVER_GONE
        self.start = history.start
        self.changes = Steps(code[history.page], history.hour)
        self.born = Steps(code, history.born)
        self.born_hours = Steps(code, history.born, history.born)
        self.gone = Steps(code[left], history.gone[left])
        self.gone_hours = Steps(code[left], history.gone[left], history.gone[left])
        self.moves = _moves(history)

    def frequency(self, code: Ints, hour: Ints, window: int) -> Floats:
        count = self.changes.count(code, hour) - self.changes.count(code, hour - window)
        return _ratio(count, self._seen(code, hour) - self._seen(code, hour - window))

    def recent(self, code: Ints, hour: Ints) -> Floats:
        """Mean hours since the last change of the pages there are; since the start if none is."""
        alive = self.born.before(code, hour) - self.gone.before(code, hour)
        since = alive * hour - self.moves.before(code, hour)
        return np.where(alive > 0, since / np.maximum(alive, 1), hour - self.start)

    def _seen(self, code: Ints, hour: Ints) -> Ints:
        """Hours that the category's pages lived before the given one, all pages together."""
        living = self.born.before(code, hour) * hour - self.born_hours.before(code, hour)
        lost = self.gone.before(code, hour) * hour - self.gone_hours.before(code, hour)
        return living - lost


def _moves(history: History) -> Steps:
    """Steps whose sum is the sum, over the category's living pages, of the last change's hour.

    A birth adds its hour, a change the hours since the one before, and a page that goes takes
    its last hour away.
    """
    page, hour = history.page, history.hour
    fresh = np.diff(page, prepend=-1) != 0
    before = np.where(fresh, history.born[page], np.roll(hour, 1)) if len(page) else hour
    last = history.born.copy()
    last[page] = hour  # in order of time, so the last one stays
    left = np.flatnonzero(history.gone < NEVER_GONE)
    return Steps(
        np.concatenate([history.group, history.group[page], history.group[left]]),
        np.concatenate([history.born, hour, history.gone[left]]),
        np.concatenate([history.born, hour - before, -last[left]]),
    )


def _ratio(count: Ints, hours: Ints) -> Floats:
    return np.where(hours > 0, count / np.maximum(hours, 1), 0.0)
