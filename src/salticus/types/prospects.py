"""What sources and found pages promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.types.arrays import Columns, Floats, Ints, Times


@dataclass(frozen=True, slots=True)
class Harvest:
    """What visits to sources bring, a row a source, by how long ago the last one was.

    After `gaps` days, each twice the one before, a visit finds `finds` new links, and each of their
    pages gets `each` clicks from then on.
    """

    gaps: Floats
    finds: Floats
    each: Floats

    def at(self, rows: Ints, ages: Floats) -> tuple[Floats, Floats]:
        """Both after so many days: powers of the days between two gaps; after less than the
        shortest, links in proportion to the days.

        >>> one = Harvest(np.array([1.0, 2.0]), np.array([[3.0, 6.0]]), np.array([[8.0, 4.0]]))
        >>> one.at(np.zeros(3, dtype=int), np.array([0.5, 1.25, 9.0]))
        (array([1.5 , 3.75, 6.  ]), array([8. , 6.4, 4. ]))
        """
        short = np.minimum(ages / self.gaps[0], 1.0)
        last = len(self.gaps) - 1
        place = np.clip(np.log2(np.maximum(ages, 1e-12) / self.gaps[0]), 0.0, last)
        low = np.minimum(place.astype(np.int64), last - 1)
        part = place - low
        finds, each = (
            curves[rows, low] ** (1.0 - part) * curves[rows, low + 1] ** part
            for curves in (self.finds, self.each)
        )
        return finds * short, each


@dataclass(frozen=True, slots=True)
class Prospects(Columns):
    """What finding new pages promises, a row a page.

    On a source `rate` new links appear a day, 0 on other pages; a new page is worth `profit` clicks
    when its link appears, and e^−`decay` of that a day later. A found page that was never visited
    is expected to get `remaining` clicks from now on; NaN for all others. Of a source's links,
    `entries` are from the week before its last visit, over `span` days; a source of its form is
    `usual`-ly revisited after so many days. `row` is that of a source in the `harvest`, -1 for
    other pages.
    """

    rate: Floats
    profit: Floats
    decay: Floats
    remaining: Floats
    entries: Floats
    span: Floats
    usual: Floats
    row: Ints
    harvest: Harvest

    def finds(self, rows: Ints, ages: Floats) -> Floats:
        """New links that each source has to show so many days after a visit."""
        return self.harvest.at(self.row[rows], ages)[0]


@dataclass(frozen=True, slots=True)
class Looks(Columns):
    """Answered visits to sources in the order in which they were stored; `last` is the number of
    the last one, to ask for later ones.

    A look shows so many links, `new` ones to pages that were not known among them. Of the links of
    the look before, made `since` (NaT = there was none: these links are old), so many are `kept`
    or `gone`.
    """

    source: Ints
    at: Times
    since: Times
    shown: Ints
    new: Ints
    kept: Ints
    gone: Ints
    last: int


@dataclass(frozen=True, slots=True)
class FoundPages(Columns):
    """New pages in the order in which they were found, each `at` a look at the first `source` that
    showed it and not in the look before, `since`; `last` as in `Looks`."""

    page: Ints
    source: Ints
    at: Times
    since: Times
    last: int
