"""LambdaCrawl as Han et al. (2020) print it, for comparison."""

from __future__ import annotations

import numpy as np

from salticus.allocate import rates
from salticus.allocate.lambdacrawl import chances, worth
from salticus.types import Floats, Ints, Outcomes, Pages


def printed_rates(worth: Floats, chance: Floats, visits: float) -> Floats:
    """The closed form of Table 2 as it stands: may be negative, or above one.

    ρ = (√(μp/λ) − p)/(1−p) with λ = (Σ √(μp)/(1−p) / (b + Σ p/(1−p)))² over all pages. It sums to
    b = `visits`, and divides by zero at p = 1.

    >>> printed_rates(np.array([1.0, 100.0]), np.array([0.5, 0.5]), 0.5).round(4)
    array([-0.7727,  1.2727])
    """
    host = np.zeros(len(worth), dtype=np.int64)
    return _printed(worth, chance, host, np.array([float(visits)]))


def _printed(worth: Floats, chance: Floats, host: Ints, room: Floats) -> Floats:
    """The closed form with a λ for each host."""
    root, left = np.sqrt(worth * chance), 1.0 - chance
    asked = np.bincount(host, weights=root / left, minlength=len(room))
    given = room + np.bincount(host, weights=chance / left, minlength=len(room))
    scale = np.divide(given, asked, out=np.zeros(len(room)), where=asked > 0.0)  # 1/√λ
    return np.asarray((root * scale[host] - chance) / left)


class LambdaCrawlPrinted:
    """The closed form of Han et al. (2020), Table 2, cut to [0, 1] and scaled to the visits.

    For comparison only. λ is taken over all pages, which is right only if none is at 0 or 1:

    - pages that should get none have negative rates, and pages that should get one get more;
    - with the negative ones cut to 0, the others ask for more visits than there are;
    - at p = 1 it divides by zero (p is kept below 0.999, as in `LambdaCrawl`).

    So it is cut, scaled to the visits, and cut again until both hold (water filling), which loses
    some percent of the objective against `LambdaCrawl`. Han et al. did not crawl with it either:
    they ran the algorithm of Azar et al. (2018).

    >>> from dataclasses import replace
    >>> from salticus.testing import blank_pages
    >>> pages = replace(blank_pages(3), demand=np.array([1.0, 4.0, 0.0]))
    >>> LambdaCrawlPrinted().expected(pages, visits=0.5).round(4)
    array([0.142, 0.358, 0.   ])
    """

    def expected(self, pages: Pages, visits: float) -> Floats:
        return self._shared(pages, np.zeros(len(pages), dtype=np.int64), np.array([float(visits)]))

    def expected_by_host(self, pages: Pages, room: Floats) -> Floats:
        """Expected visits when each host gets its `room` of them, with a λ of its own."""
        return self._shared(pages, pages.host, room)

    def _shared(self, pages: Pages, host: Ints, room: Floats) -> Floats:
        room = np.minimum(room, np.bincount(host, minlength=len(room)))
        chance = chances(pages)
        chance = np.where(chance > 0.0, np.clip(chance, rates.LEAST, rates.MOST), 0.0)
        raw = _printed(worth(pages), chance, host, room)
        return rates.spend_by_host(rates.proportional(np.clip(raw, 0.0, 1.0)), host, room)

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing: the predictor learns."""
