"""What was seen of pages, as columns in order of time, and how answers become such events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

import numpy as np

from salticus.types import Bools, Codes, Columns, Floats32, Ints
from salticus.types.compiled import compiled
from salticus.types.dates import HOUR_US

NEVER_US = np.iinfo(np.int64).min
_T = TypeVar("_T", Ints, Floats32)


class EventKind(IntEnum):
    """What an event tells; of one page and hour, a lower number comes first."""

    BORN = 0
    CHANGE = 1
    VISIT = 2
    GONE = 3
    DEMAND = 4


@dataclass(frozen=True, slots=True)
class Events(Columns):
    """Events in order of (`hour`, `page`, `kind`); hours are whole UTC hours since 1970.

    `page` is the row of the page. What the three numbers tell depends on `kind`; NaN is unknown:

    ====== ============================== ========================== ===================
    kind   first                          second                     third
    ====== ============================== ========================== ===================
    BORN   price                                                     in stock: 1 or 0
    CHANGE price                          ln(new price / old price)  in stock: 1 or 0
    VISIT  hours since the last answer    price                      in stock: 1 or 0
    GONE
    DEMAND clicks                         impressions
    ====== ============================== ========================== ===================

    A VISIT is one that was answered; one that found a change is a CHANGE and a VISIT. A DEMAND lies
    in the last hour of its bucket, as it is not known before.
    """

    hour: Ints
    page: Ints
    kind: Codes
    first: Floats32
    second: Floats32
    third: Floats32

    @staticmethod
    def none() -> Events:
        return make_events(EventKind.BORN, np.empty(0, np.int64), np.empty(0, np.int64))

    def ordered(self) -> Events:
        """The same events in order of hour, page and kind; equals stay as they are."""
        return self.take(np.lexsort((self.kind, self.page, self.hour)))


@compiled
def in_order(hour: Ints, page: Ints, kind: Codes) -> bool:
    """Whether events are ordered by hour, page and kind."""
    for i in range(1, len(hour)):
        if hour[i] != hour[i - 1]:
            if hour[i] < hour[i - 1]:
                return False
        elif page[i] < page[i - 1] or (page[i] == page[i - 1] and kind[i] < kind[i - 1]):
            return False
    return True


def make_events(kind: EventKind, hour: Ints, page: Ints, *numbers: Floats32) -> Events:
    """Events of one kind; numbers that are not given are unknown."""
    n = len(hour)
    told = [np.asarray(each, dtype=np.float32) for each in numbers]
    told += [np.full(n, np.nan, dtype=np.float32)] * (3 - len(told))
    kinds = np.full(n, kind, dtype=np.int8)
    return Events(hour.astype(np.int64), page.astype(np.int64), kinds, *told)


def among(days: Iterator[Events], more: Events) -> Iterator[Events]:
    """The events of UTC days, one after another, with more events each in its own day."""
    done = 0
    for events in days:
        day = int(events.hour[0]) // 24
        start, end = (int(np.searchsorted(more.hour, 24 * each)) for each in (day, day + 1))
        yield from by_days(more.take(np.arange(done, start)))
        yield events.join(more.take(np.arange(start, end))).ordered() if end > start else events
        done = end
    yield from by_days(more.take(np.arange(done, len(more))))


def by_days(events: Events) -> Iterator[Events]:
    """Events cut at the midnights of UTC."""
    for low, high in runs(events.hour // 24):
        yield events.take(np.arange(low, high))


def runs(numbers: Ints) -> Iterator[tuple[int, int]]:
    """Where each run of equal numbers starts and ends.

    >>> list(runs(np.array([4, 4, 7])))
    [(0, 2), (2, 3)]
    """
    cuts = np.flatnonzero(np.diff(numbers)) + 1
    ends = [0, *cuts.tolist(), len(numbers)] if len(numbers) else [0]
    return zip(ends[:-1], ends[1:], strict=True)


@dataclass(frozen=True, slots=True)
class Answered(Columns):
    """Answered visits by page and time: the page's row, µs, whether a change was found, what the
    page cost and whether it was in stock (1, 0; NaN = unknown)."""

    row: Ints
    at: Ints
    changed: Bools
    price: Floats32
    stock: Floats32


class Crawler:
    """Remembers when each page last answered and what it cost, from visit to visit."""

    def __init__(self, pages: int, *, announced: bool) -> None:
        self.announced = announced
        self.answer = np.full(pages, NEVER_US)
        self.price = np.full(pages, np.nan, dtype=np.float32)

    def grow(self, more: int) -> None:
        """So many pages more, of which nothing is known yet."""
        self.answer = np.append(self.answer, np.full(more, NEVER_US))
        self.price = np.append(self.price, np.full(more, np.nan, dtype=np.float32))

    def learn(self, visits: Answered) -> Events:
        """The events of visits that lie after all those before, ordered by page and time."""
        row, at, price, stock, c = visits.row, visits.at, visits.price, visits.stock, visits.changed
        hour = at // HOUR_US
        since = _before(row, at, self.answer)
        first = since == NEVER_US
        gap = (at - np.where(first, at, since)) / HOUR_US
        gap[first] = np.nan
        old = _before(row, _filled(row, price, self.price), self.price)
        events = make_events(EventKind.VISIT, hour, row, gap.astype(np.float32), price, stock)
        moved = log_ratio(price[c], old[c])
        changes = make_events(EventKind.CHANGE, hour[c], row[c], price[c], moved, stock[c])
        if self.announced:
            return changes.join(events)
        return make_events(EventKind.BORN, hour[first], row[first]).join(changes).join(events)


def _before(row: Ints, column: _T, last: _T) -> _T:
    """The cell of the visit before of the same page, or `last` of it; `last` moves on."""
    before = np.empty_like(column)
    before[1:] = column[:-1]
    fresh = np.diff(row, prepend=-1) != 0
    before[fresh] = last[row[fresh]]
    ends = np.flatnonzero(np.diff(row, append=-1))
    last[row[ends]] = column[ends]
    return before


def _filled(row: Ints, column: Floats32, last: Floats32) -> Floats32:
    """The column with unknown cells filled by the page's known cell before, or by `last`."""
    at = np.maximum.accumulate(np.where(np.isnan(column), -1, np.arange(len(column))))
    known = (at >= 0) & (row[np.maximum(at, 0)] == row)
    return np.where(known, column[np.maximum(at, 0)], last[row])


def log_ratio(new: Floats32, old: Floats32) -> Floats32:
    """ln(new / old), unknown unless both are above 0.

    >>> log_ratio(np.array([2, 1], dtype=np.float32), np.array([1, np.nan], dtype=np.float32))
    array([0.6931472,       nan], dtype=float32)
    """
    sound = (new > 0) & (old > 0)
    ratio = np.where(sound, new, 1).astype(np.float64) / np.where(sound, old, 1)
    return np.where(sound, np.log(ratio), np.nan).astype(np.float32)
