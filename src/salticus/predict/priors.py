"""What is believed of a page before it is known: priors pooled over pages of its kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.types import Floats, Ints

_PAGES = 10.0  # pages that it takes to believe a group more than what it is part of
_CHANGES = 0.5  # what a group is given of its parent's, so that no mean is 0
_SHAPES = (0.05, 5.0)


@dataclass(frozen=True, slots=True)
class Sums:
    """Of each page: the changes supposed to have happened, and the days watched."""

    changes: Floats
    days: Floats


def first_prior(n: int) -> tuple[Floats, Floats]:
    """The Gamma(a, b) of pages of which nothing at all is known: half a change in two days."""
    return np.full(n, 0.5), np.full(n, 2.0)


def pooled_priors(sums: Sums, merchant: Ints, category: Ints) -> tuple[Floats, Floats]:
    """A Gamma(a, b) for every page: its category at its merchant, drawn to the merchant, drawn to
    all (empirical Bayes, ALGORITHMS §5).

    Mean and spread of the rates by moments: with X changes in T days of a page E[X]/T = m and
    E[X(X − 1)]/T² = m² + v, so that a = m²/v and b = m/v. -1 is a group of its own kind: unknown.
    Cost: linear.
    """
    n = len(merchant)
    everything = np.zeros(n, dtype=np.int64)
    cell = (merchant + 1) * (int(category.max(initial=-1)) + 2) + category + 1
    rate, shape = np.full(n, 0.25), np.full(n, 0.5)
    for group in (everything, merchant + 1, cell):
        rate, shape = _draw(sums, group, rate, shape)
    return shape, shape / rate


def _draw(sums: Sums, group: Ints, rate: Floats, shape: Floats) -> tuple[Floats, Floats]:
    """Mean and shape of each page's group, drawn to those of its parent by the pages watched."""
    watched = sums.days > 0
    number, at = np.unique(group, return_inverse=True)
    k = len(number)
    pages, changes, days, pairs, squares = (
        np.bincount(at, weights=weight, minlength=k)
        for weight in (
            watched,
            sums.changes,
            sums.days,
            np.maximum(sums.changes * (sums.changes - 1.0), 0.0),
            sums.days**2,
        )
    )
    trust = (pages / (pages + _PAGES))[at]
    mean = changes / np.maximum(days, 1e-12)
    spread = np.maximum(pairs / np.maximum(squares, 1e-12) - mean**2, 1e-300)
    found = np.clip(mean**2 / spread, *_SHAPES)[at]
    own = np.maximum((changes[at] + _CHANGES) / (days[at] + _CHANGES / rate), 1e-9)
    return _mixed(own, rate, trust), _mixed(found, shape, trust)


def _mixed(own: Floats, parent: Floats, trust: Floats) -> Floats:
    """Between the two on a scale of ratios, as rates of pages are."""
    return np.exp(trust * np.log(own) + (1.0 - trust) * np.log(parent))
