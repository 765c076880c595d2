"""The copies beside the truth: which are fresh, since when the others are stale, what was missed.

Everything is counted where it changes, so that reading the score costs nothing however many pages
there are.
"""

from __future__ import annotations

import numpy as np

from salticus.types import Floats, Instant, Ints, Times, days_between

UNBORN, NOTHING = -2, -3
_MOST = 100_000
_HARMONIC = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, _MOST + 1))])


class SimulatedCopies:
    """True and held values of all pages as codes, and the running score.

    A page is fresh when the value held is the true one, also if it came back to it. It is stale
    since the first change that the copy missed (days after `origin`); `pending` counts the changes
    since the last answer, and `untouched` the pages without any. Laws: `fresh` is held == true;
    `fresh_count`, `untouched`, `fresh_weight`, `harmonic` (the sum of H of `pending`, Kolobov et
    al. 2019) and `age_days` are sums over all born pages.
    """

    def __init__(self, n: int, *, origin: Instant) -> None:
        self.origin = origin
        self.true: Ints = np.full(n, UNBORN, dtype=np.int64)
        self.held: Ints = np.full(n, NOTHING, dtype=np.int64)
        self.fresh = np.zeros(n, dtype=np.bool_)
        self.since: Floats = np.zeros(n)
        self.pending: Ints = np.zeros(n, dtype=np.int64)
        self.weights: Floats | None = None
        self.born = self.fresh_count = self.untouched = self.caught = self.missed = 0
        self.fresh_weight = self.harmonic = self._since_sum = 0.0

    def weigh(self, weights: Floats) -> None:
        """Keep the sum of the `weights` of all fresh pages from now on."""
        self.weights = weights
        self.fresh_weight = float(weights[self.fresh].sum())

    def age_days(self, now: Instant) -> float:
        """Summed days for which the stale copies have been stale."""
        stale = self.born - self.fresh_count
        return stale * float(days_between(self.origin, now)) - self._since_sum

    def change(self, rows: Ints, values: Ints, at: Times) -> None:
        """The truth changes, in order of time; a page may change more than once."""
        if not len(rows):
            return
        page, first, count = np.unique(rows, return_index=True, return_counts=True)
        new = self.true[page] == UNBORN
        self.true[rows] = values
        since = days_between(self.origin, at[first])
        self._wait(page, self.pending[page] + count - new)  # a birth is not a change
        self.born += int(np.count_nonzero(new))
        self.since[page[new]] = since[new]
        self._since_sum += float(since[new].sum())
        self._turn(page, since)

    def hold(self, rows: Ints, values: Ints) -> None:
        """The copies of these pages, each once, are taken anew."""
        known = self.held[rows] != NOTHING
        self.untouched += int(np.count_nonzero(~known & (self.pending[rows] == 0)))
        found = known & (self.held[rows] != values)
        self.caught += int(np.count_nonzero(found))
        self.missed += int((self.pending[rows] - found)[known].clip(0).sum())
        self.held[rows] = values
        self._wait(rows, np.zeros(len(rows), dtype=np.int64))
        self._turn(rows, self.since[rows])

    def _wait(self, rows: Ints, pending: Ints) -> None:
        """Let so many changes wait to be seen."""
        known = self.held[rows] != NOTHING
        quiet = (pending == 0).astype(np.int64) - (self.pending[rows] == 0)
        self.untouched += int(quiet[known].sum())
        before, after = _harmonic(self.pending[rows]), _harmonic(pending)
        self.harmonic += float((after - before).sum())
        self.pending[rows] = pending

    def _turn(self, rows: Ints, since: Floats) -> None:
        """Count the pages that became fresh, and those that became stale `since` then."""
        was, now = self.fresh[rows], self.held[rows] == self.true[rows]
        rose, fell = now & ~was, was & ~now
        better, worse = rows[rose], rows[fell]
        self.fresh[rows] = now
        self.fresh_count += len(better) - len(worse)
        self._since_sum -= float(self.since[better].sum())
        self.since[worse] = since[fell]
        self._since_sum += float(since[fell].sum())
        if self.weights is not None:
            self.fresh_weight += float(self.weights[better].sum() - self.weights[worse].sum())


def _harmonic(count: Ints) -> Floats:
    """H_N = 1 + 1/2 + … + 1/N.

    >>> _harmonic(np.array([0, 1, 2])).tolist()
    [0.0, 1.0, 1.5]
    """
    return _HARMONIC[np.minimum(count, _MOST)]
