"""Where the budget went: the visits of a run by the change rate and the demand of the pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from salticus.lab.simulate.stage import Stage
from salticus.types import Floats, Ints, days_between, instant

RATES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Where bins of change rate begin, changes a day; a page below the second, but above 0, is in the
one that begins there. The first holds the pages that did not change."""

DEMANDS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Where bins of demand begin, in parts of the mean demand; the first holds pages without any."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Pages, page-days and visits in the scored days, per bin of change rate × bin of demand."""

    pages: Floats
    page_days: Floats
    visits: Floats

    def cells(self) -> list[dict[str, Any]]:
        """One row for each bin with a page, ordered by rate and demand."""
        total = max(1.0, float(self.visits.sum()))
        return [
            {
                "rate": RATES[i],
                "rate_to": upper(RATES, i),
                "demand": DEMANDS[j],
                "demand_to": upper(DEMANDS, j),
                "pages": round(float(self.pages[i, j]), 3),
                "page_days": round(float(self.page_days[i, j]), 3),
                "visits": round(float(self.visits[i, j]), 3),
                "visits_per_page_day": float(self.visits[i, j] / self.page_days[i, j]),
                "share": float(self.visits[i, j]) / total,
            }
            for i, j in np.argwhere(self.pages > 0).tolist()
        ]


def upper(edges: tuple[float, ...], number: int) -> float | None:
    """Where a bin ends: at the next, 0 for that of the zeros, nowhere for the last.

    >>> upper(RATES, 0), upper(RATES, 1), upper(RATES, 8)
    (0.0, 0.01, None)
    """
    if number == 0:
        return 0.0
    return edges[number + 1] if number + 1 < len(edges) else None


def spending(stage: Stage, visited: Ints) -> Spending:
    """The visits of one run, by id, sorted into bins.

    The rate is the true one, changes a day in the scored days (a birth is none); the demand is the
    one known when they begin.
    """
    truth = stage.truth
    score, end = instant(stage.score), instant(stage.end)
    days = days_between(np.maximum(truth.born, score), end)
    late = slice(truth.before(score), truth.before(end))
    points = np.bincount(truth.page[late], minlength=len(truth)) - (truth.born >= score)
    rate = points / np.maximum(days, 1e-9)
    demand, _ = stage.readers.known(stage.score, len(truth))
    cell = _bin(rate, RATES) * len(DEMANDS) + _bin(demand / _mean(demand), DEMANDS)
    made: Floats = np.append(visited.astype(np.float64), np.zeros(truth.ids[-1] + 1))[truth.ids]
    return Spending(*(_sums(cell, column) for column in (np.ones(len(truth)), days, made)))


def together(runs: Iterable[Spending]) -> Spending:
    """The mean over runs."""
    every = [(one.pages, one.page_days, one.visits) for one in runs]
    return Spending(*(np.mean(columns, axis=0) for columns in zip(*every, strict=True)))


def _mean(demand: Floats) -> float:
    mean = float(demand.mean()) if len(demand) else 0.0
    return mean or 1.0


def _bin(values: Floats, edges: tuple[float, ...]) -> Ints:
    """The bin of each value; what is above 0 but below the second edge goes into the second.

    >>> _bin(np.array([0.0, 1e-9, 0.2, 50.0]), RATES).tolist()
    [0, 1, 4, 8]
    """
    return np.maximum(np.searchsorted(edges, values, side="right") - 1, values > 0)


def _sums(cell: Ints, column: Floats) -> Floats:
    size = len(RATES) * len(DEMANDS)
    sums = np.bincount(cell, weights=column, minlength=size).astype(np.float64)
    return sums.reshape(len(RATES), len(DEMANDS))
