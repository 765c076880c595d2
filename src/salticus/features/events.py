"""What was seen of pages, as columns in order of time: what the features are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from salticus.types import Codes, Columns, Floats32, Ints


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

    @classmethod
    def none(cls) -> Events:
        """No events."""
        nothing = np.empty(0, dtype=np.float32)
        ints = np.empty(0, dtype=np.int64)
        return cls(ints, ints, np.empty(0, dtype=np.int8), nothing, nothing, nothing)

    def ordered(self) -> Events:
        """The same events in order of hour, page and kind; equals stay as they are."""
        return self.take(np.lexsort((self.kind, self.page, self.hour)))


def make_events(kind: EventKind, hour: Ints, page: Ints, *numbers: Floats32) -> Events:
    """Events of one kind; numbers that are not given are unknown."""
    n = len(hour)
    told = [np.asarray(each, dtype=np.float32) for each in numbers]
    told += [np.full(n, np.nan, dtype=np.float32)] * (3 - len(told))
    return Events(
        hour.astype(np.int64), page.astype(np.int64), np.full(n, kind, dtype=np.int8), *told
    )


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
