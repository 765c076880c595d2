"""What is foretold of pages: the chance that each has changed since its last visit."""

from __future__ import annotations

import numpy as np

from salticus.types import Floats, Instant, Ints, Pages, Times, days_between


def foretold(pages: Pages, at: Times | Instant, rows: Ints | None = None) -> Floats:
    """1 − S(age at that time) of the given rows, or of all; NaN for a page never visited.

    >>> from dataclasses import replace
    >>> from salticus.predict.poisson import PoissonSurvival
    >>> from salticus.testing import blank_pages
    >>> day = np.array(["2026-01-01", "NaT"], dtype="M8[us]")
    >>> pages = replace(blank_pages(2), last_visit=day, survival=PoissonSurvival(np.ones(2)))
    >>> foretold(pages, np.datetime64("2026-01-02", "us")).round(3)
    array([0.632,   nan])
    """
    survival = pages.survival
    last = pages.last_visit if rows is None else pages.last_visit[rows]
    if survival is None:
        return np.full(len(last), np.nan)
    curve = survival if rows is None else survival.take(rows)
    age = days_between(last, at)
    gone = 1.0 - curve.unchanged(np.maximum(np.nan_to_num(age), 0.0))
    return np.where(np.isnan(age), np.nan, np.clip(gone, 0.0, 1.0))
