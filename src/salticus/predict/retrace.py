"""Stored visits, cut as a crawl would have learnt from them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np

from salticus.types import Outcomes, instant, moment


def ticks(
    history: Iterator[Outcomes],
    length: timedelta,
    start: datetime | None = None,
    end: datetime | None = None,
) -> Iterator[tuple[datetime, Outcomes]]:
    """The outcomes of [start, end) tick by tick, from the first on if no start is given.

    Law: it does not matter in which chunks the history comes.
    """
    step, waiting = np.timedelta64(length // timedelta(microseconds=1), "us"), None
    now = None if start is None else instant(start)
    for chunk in history:
        known = chunk.at >= (chunk.at[:1] if now is None else now)
        some = chunk.take(known if end is None else known & (chunk.at < instant(end)))
        if not len(some):
            continue
        now = some.at[0] if now is None else now
        waiting = some if waiting is None else waiting.join(some)
        while len(waiting) and waiting.at[-1] >= now + step:
            due = int(np.searchsorted(waiting.at, now + step))
            yield moment(now), waiting.take(np.arange(due))
            waiting, now = waiting.take(np.arange(due, len(waiting))), now + step
    if waiting is not None and now is not None and len(waiting):
        yield moment(now), waiting
