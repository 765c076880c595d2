"""Where and when offers change: what Han 2019 §3 says in words, from the study of `analyze`."""

from __future__ import annotations

import numpy as np

from salticus.exchange.folder import Log
from salticus.lab.analyze.groups import GroupShares, groups_of
from salticus.lab.analyze.intervals import Intervals, intervals_of
from salticus.lab.analyze.pages import known_pages
from salticus.lab.analyze.shares import ChangeShare
from salticus.lab.analyze.truth import values_record
from salticus.lab.analyze.week import week_of
from salticus.lab.studies.calibration.published import Measured
from salticus.types import Floats, Ints


def patterns(log: Log) -> dict[str, Measured]:
    """Countries and categories that change most and least, and the shape of day, week, intervals.

    A probability is downloads with a change over downloads, every offer being downloaded every hour
    (Han 2019, Fig. 2); hours and weekdays are the merchant's.
    """
    known = known_pages(log)
    record = values_record(log, known)
    groups = groups_of(record, known)
    week = week_of(record, known)
    hours, weekdays = _probabilities(week.hours), _probabilities(week.weekdays)
    gaps = hourly(intervals_of(record))
    countries, categories = ranked(groups["country"]), ranked(groups["category"])
    return {
        "countries_high": countries[:3],
        "countries_low": countries[:-4:-1],
        "category_first": categories[:1],
        "categories_next": categories[1:3],
        "categories_low": categories[:-3:-1],
        "midnight": over(hours[0], hours[1:].max()),
        "midnight_mean": over(hours[0], hours.mean()),
        "weekday": over(weekdays[:5].mean(), weekdays[5:].mean()),
        "interval_24h": peak(gaps, 24),
        "interval_48h": peak(gaps, 48),
    }


def ranked(groups: GroupShares) -> tuple[str, ...]:
    """The names of the groups, the one that changes most first."""
    rows = sorted(groups.rows, key=lambda share: -(share.probability or 0.0))
    return tuple(share.name for share in rows)


def _probabilities(shares: list[ChangeShare]) -> Floats:
    return np.array([share.probability or 0.0 for share in shares])


def hourly(intervals: Intervals) -> Ints:
    """Changes by whole hours since the change before, from 0 to 59."""
    counts = np.zeros(60, dtype=np.int64)
    for row in intervals.rows:
        if row.hours < len(counts):
            counts[int(row.hours)] += row.changes
    return counts


def peak(counts: Ints, hours: int) -> float:
    """How far a count stands above its four neighbours: over 1 at a local maximum.

    >>> peak(np.array([3, 4, 9, 6, 5]), 2)
    1.5
    """
    around = counts[[hours - 2, hours - 1, hours + 1, hours + 2]]
    return over(counts[hours], around.max())


def over(part: float, whole: float) -> float:
    """A ratio; infinite over nothing, and not a number if both are nothing.

    >>> over(3.0, 2.0), over(3.0, 0.0)
    (1.5, inf)
    """
    if whole:
        return float(part / whole)
    return float("inf") if part else float("nan")
