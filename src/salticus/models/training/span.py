"""Of which time a log tells, and how it can be divided for training."""

from __future__ import annotations

import json
from datetime import timedelta
from hashlib import blake2b

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.tables import span_of, spelt
from salticus.models.training.recipe import TimeSplit
from salticus.models.training.split import PARTS, shrunk
from salticus.types import instant
from salticus.types.dates import DAY_US, HOUR_US


def log_span(log: Log) -> tuple[int, int]:
    """The time of which a log tells, [first, end) in µs: as `log.json` says, else by its tables."""
    try:
        ends = log.about.ends()
    except ValueError as error:
        raise InputError(f"{log.folder / 'log.json'}: `span`: {error}") from None
    if ends is not None:
        first, last = (int(instant(end).astype(np.int64)) for end in ends)
        return first, last + 1
    found = span_of(log.folder, [table for table in ("values", "visits") if log.has(table)])
    if found is None:
        raise InputError(f"{log.folder}: there are neither values nor visits to learn from")
    first, last = (int(np.datetime64(text.rstrip("Z"), "us").astype(np.int64)) for text in found)
    return first, last + 1


def provenance(log: Log) -> str:
    """A hash of what a log says of where it comes from: the same when it has grown."""
    said = {k: v for k, v in log.about.rest.items() if k not in ("span", "rows")}
    told = json.dumps([log.about.name, said], sort_keys=True, default=str)
    return blake2b(told.encode(), digest_size=16).hexdigest()


def hours_span(span: tuple[int, int]) -> tuple[int, int]:
    """The same in whole hours since 1970, rounded outwards."""
    return span[0] // HOUR_US, -(-span[1] // HOUR_US)


def usual_every(log: Log) -> timedelta:
    """How often predictions are made if nobody says: hourly, or as finely as times are known."""
    return max(log.about.resolution or timedelta(0), timedelta(hours=1))


def fitting_split(log: Log, split: TimeSplit, *, exactly: bool) -> TimeSplit:
    """The split, cut down in proportion if the log is too short for it; `exactly`: refused then."""
    first, end = log_span(log)
    end = -(-end // DAY_US) * DAY_US  # the last day may lack a moment
    start = -(-first // DAY_US) * DAY_US
    if split.start is not None:
        start = int(instant(split.start).astype(np.int64))
    whole = sum((getattr(split, part) for part in PARTS), timedelta(0))
    if start + whole // timedelta(microseconds=1) <= end:
        return split
    less = shrunk(split, start, end)
    if less == split or exactly:
        days = max(0, (end - start) // DAY_US)
        fits = "/".join(spelt(getattr(less, part)) for part in PARTS)
        hint = f"; `--split {fits}` would fit" if less != split else ""
        raise InputError(
            f"{log.folder}: the split takes {whole / timedelta(days=1):g} days, but from "
            f"{np.datetime64(start, 'us').astype('M8[D]')} on the log has {days}{hint}"
        )
    return less
