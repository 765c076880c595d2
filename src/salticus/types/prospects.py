"""What sources and found pages promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.types.arrays import DAY, NEVER, Bools, Columns, Floats, Instant, Ints, Times

_MONDAY = np.datetime64("1970-01-05", "us")


@dataclass(frozen=True, slots=True)
class Harvest:
    """What visits to sources bring, a row a source, by how long ago the last one was.

    After `gaps` days, each twice the one before, a visit finds `finds` new links, and each of their
    pages gets `each` clicks from then on. A share `stays` of the links found after a gap stands for
    as long again; not given, none is waited for. Links are found by own time, in which they appear
    evenly: `week` says how many days of it have passed since Monday at the start of each hour, and
    at the end of the week. Days are those `until` a time; without one, own time is plain time.
    """

    gaps: Floats
    finds: Floats
    each: Floats
    stays: Floats | None = None
    week: Floats | None = None
    until: Instant = NEVER

    def own(self, ages: Floats) -> Floats:
        """The last so many days in own time."""
        if self.week is None or np.isnat(self.until):
            return ages
        return own_time(self.week, self.until, ages)

    def at(self, rows: Ints, ages: Floats, own: Floats | None = None) -> tuple[Floats, Floats]:
        """Both after so many days, links by `own` ones: powers of the days between two gaps; after
        less than the shortest, links in proportion to the days.

        >>> one = Harvest(np.array([1.0, 2.0]), np.array([[3.0, 6.0]]), np.array([[8.0, 4.0]]))
        >>> one.at(np.zeros(3, dtype=int), np.array([0.5, 1.25, 9.0]))
        (array([1.5 , 3.75, 6.  ]), array([8. , 6.4, 4. ]))
        """
        own = ages if own is None else own
        finds, each = self._curve(self.finds, rows, own), self._curve(self.each, rows, ages)
        return finds * np.minimum(own / self.gaps[0], 1.0), each

    def _curve(self, curves: Floats, rows: Ints, ages: Floats) -> Floats:
        last = len(self.gaps) - 1
        place = np.clip(np.log2(np.maximum(ages, 1e-12) / self.gaps[0]), 0.0, last)
        low = np.minimum(place.astype(np.int64), last - 1)
        part = place - low
        return np.asarray(curves[rows, low] ** (1.0 - part) * curves[rows, low + 1] ** part)


def own_time(week: Floats, until: Instant | Times, days: Floats) -> Floats:
    """Days of own time in so many days until then, by a week as in `Harvest`.

    >>> busy = np.concatenate([np.linspace(0.0, 7.0, 25), np.full(144, 7.0)])  # on Mondays only
    >>> own_time(busy, np.datetime64("2026-01-05T12:00", "us"), np.array([0.5, 1.0, 7.0]))
    array([3.5, 3.5, 7. ])
    """
    end = np.asarray((until - _MONDAY) / DAY)
    return np.asarray(_own(week, end) - _own(week, end - days))


def _own(week: Floats, at: Floats) -> Floats:
    """Days of own time from the first Monday until so many days later."""
    weeks = np.floor(at / 7.0)
    hours = np.arange(len(week))
    return np.asarray(7.0 * weeks + np.interp((at - 7.0 * weeks) * 24.0, hours, week))


_USUAL = {"html": 0.5, "sitemap": 1.0, "sitemap index": 1.0, "text sitemap": 1.0}
_FEED = 1 / 48


def usual_days(format: str | None) -> float:
    """Days after which sources of a format are revisited by custom: HTML pages after 12 hours, also
    if the format is not known, sitemaps after a day, and feeds, whatever theirs, after 30 minutes.

    >>> usual_days("sitemap"), usual_days(None), round(1 / usual_days("rss"))
    (1.0, 0.5, 48)
    """
    return _USUAL.get(format or "html", _FEED)


@dataclass(frozen=True, slots=True)
class Prospects(Columns):
    """What finding new pages promises, a row a page.

    On a source `rate` new links appear a day, 0 on other pages; a new page is worth `profit` clicks
    when its link appears, and e^−`decay` of that a day later. A found page that was never visited
    is expected to get `remaining` clicks from now on; NaN for all others. Of a source's links,
    `entries` are from the week before its last visit, over `span` days; a source of its form is
    `usual`-ly revisited after so many days; it was looked at so many times (`looks`), the first
    time not counted, when all is old. `row` is that of a source in the `harvest`, -1 for
    other pages. What a source shows by now was `unseen` for so many days, on all others, too; inf
    if it was never visited; not given, since its last visit. The `backlog` are waiting pages that
    were there when their source was first visited: nobody knows how old they are.
    """

    rate: Floats
    profit: Floats
    decay: Floats
    remaining: Floats
    entries: Floats
    span: Floats
    usual: Floats
    looks: Floats
    row: Ints
    harvest: Harvest
    unseen: Floats | None = None
    backlog: Bools | None = None

    def finds(self, rows: Ints, ages: Floats) -> Floats:
        """New links that each source has to show so many days after a visit."""
        return self.harvest.at(self.row[rows], ages, self.harvest.own(ages))[0]


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
