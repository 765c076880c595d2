"""How long pages stay as they are between two changes (Han et al. 2019, Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.lab.analyze.record import DAY, HOUR, MICRO, Downloads
from salticus.types import Ints

_PEAKS = 12


@dataclass(frozen=True, slots=True)
class Interval:
    """Changes that came so many hours after the one before (or after the first observation)."""

    hours: float
    changes: int
    share: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """All intervals that occur, ascending; their shares sum to 1. `peaks` are local ones.

    Intervals are whole numbers of `unit_hours`, one at least.
    """

    unit_hours: float
    rows: list[Interval]
    peaks: list[Interval]
    within_day: float | None
    median_hours: float | None
    notes: list[str]


def intervals_of(record: Downloads) -> Intervals:
    """Share of all changes by the time since the change before.

    A page's first change counts from its first observation, which is no change itself. The paper's
    example: A changes after 1 h and 3 h, B after 1 h: 1 h has 2/3 of the changes, 2 h 1/3.
    """
    gaps = record.changes["gap"].to_numpy()
    notes = _notes(record)
    unit = record.unit / HOUR
    if not len(gaps):
        return Intervals(unit, [], [], None, None, [*notes, "there are no changes"])
    counts = np.bincount(np.maximum(1, np.rint(gaps / (record.unit // MICRO)).astype(np.int64)))
    total = len(gaps)
    rows = {int(k): Interval(float(k * unit), int(c), c / total) for k, c in _nonzero(counts)}
    found = peaks(counts, reach=10 if record.unit < DAY else 3)
    middle = int(np.searchsorted(np.cumsum(counts), total / 2))
    day = float(counts[: int(24 / unit) + 1].sum() / total)
    return Intervals(
        unit, list(rows.values()), [rows[k] for k in found.tolist()], day, middle * unit, notes
    )


def _nonzero(counts: Ints) -> list[tuple[int, int]]:
    return [(k, int(counts[k])) for k in np.flatnonzero(counts).tolist()]


def _notes(record: Downloads) -> list[str]:
    censored = "intervals still open at the end of the log are not counted, so long ones are rare"
    if record.source == "values":
        return [censored]
    return [
        censored,
        "intervals are those between downloads that found a change, not the true ones",
    ]


def peaks(counts: Ints, *, reach: int) -> Ints:
    """The largest local peaks: the most of all within a sixth (2 to `reach` units) on both sides,
    and more than chance would add to the neighbours' median (25 % and four standard deviations).

    >>> counts = np.array([0, 90, 60, 50, 45, 40, 36, 120, 30, 28, 26, 25, 24, 23])
    >>> peaks(counts, reach=10)
    array([7])
    """
    inner = np.arange(2, len(counts) - 1)
    higher = (counts[inner] > counts[inner - 1]) & (counts[inner] > counts[inner + 1])
    found = np.array([k for k in inner[higher] if _stands_out(counts, k, reach)], dtype=np.int64)
    largest = np.argsort(-counts[found], kind="stable")[:_PEAKS]
    return np.sort(found[largest])


def _stands_out(counts: Ints, k: int, reach: int) -> bool:
    width = min(max(2, k // 6), reach)
    around = np.concatenate([counts[max(1, k - width) : k], counts[k + 1 : k + 1 + width]])
    usual = float(np.median(around))
    return bool(counts[k] > max(around.max(), 1.25 * usual + 4 * np.sqrt(usual + 1)))
