"""Events that were counted and are still to be taken back: packed, for there are many of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from salticus.types import Ints, Ints32

Octets = NDArray[np.uint8]

_MOST = 30  # bytes that an event takes at most


class PackedEvents(NamedTuple):
    """Events of one class that were counted at lag 0, in blocks of an hour each.

    An event is a few numbers, each in as many bytes as it needs, seven bits in a byte: how far its
    page is from the one before, then what `kernels` says of its class.
    """

    hour: Ints32  # of each block
    end: Ints  # of each block, in `data`
    data: Octets
    marks: Ints  # the next block at every lag and, last, the number of blocks


def nothing_packed(lags: int) -> PackedEvents:
    """No events."""
    hour, end = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    return PackedEvents(hour, end, np.empty(0, dtype=np.uint8), np.zeros(lags + 1, dtype=np.int64))


def roomy(log: PackedEvents, lag: int, room: tuple[int, int]) -> PackedEvents:
    """The same with room for so many events and hours more; if need be, what the last `lag` has
    passed is forgotten."""
    events, hours = room
    blocks = int(log.marks[-1])
    end = int(log.end[blocks - 1]) if blocks else 0
    if end + _MOST * events <= len(log.data) and blocks + hours <= len(log.hour):
        return log
    log = trimmed(log, lag)
    more = _MOST * events + len(log.data) // 8
    hour, ends = _longer(log.hour, hours), _longer(log.end, hours)
    return PackedEvents(hour, ends, _longer(log.data, more), log.marks)


def _longer(column: NDArray[Any], room: int) -> NDArray[Any]:
    """Memory that nobody has touched yet costs nothing."""
    longer = np.empty(len(column) + room, dtype=column.dtype)
    longer[: len(column)] = column
    return longer


def trimmed(log: PackedEvents, lag: int) -> PackedEvents:
    """No more than the last `lag` has still to pass."""
    blocks = int(log.marks[-1])
    gone = int(log.marks[lag])
    low = int(log.end[gone - 1]) if gone else 0
    high = int(log.end[blocks - 1]) if blocks else 0
    hour, end = log.hour[gone:blocks], log.end[gone:blocks] - low
    return PackedEvents(hour, end, log.data[low:high], np.maximum(log.marks - gone, 0))
