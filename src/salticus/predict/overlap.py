"""What the sources of one site show of each other's links."""

from __future__ import annotations

import numpy as np

from salticus.types import NEVER, Floats, Ints, Looks, Times
from salticus.types.arrays import DAY
from salticus.types.compiled import compiled
from salticus.types.state import State

_DAY_US = float(DAY.astype(np.int64))
_MEMORY = 14.0  # days
_DOUBT = 0.5  # of a new page, that a source does not show: no share is quite 1
_MOST = 5.0  # new pages that one look says something of
_NEVER = int(NEVER.astype(np.int64))


class Overlap:
    """Which share of its site's new pages each source shows, and for how long what it shows was
    unseen.

    A source shows the share σ: of the pages that were found on its site between two looks at it,
    by whichever source, those whose links it has. If sources show pages independently of each
    other, one that appeared u days ago on one of them is not known yet with the probability
    ∏(1 − σ) over all others looked at since. The integral of that over the age of the source are
    the days for which its links are `unseen`. A source that stands alone is unseen for its age.

    Sources are numbered from 0; `site_` is the number of the first source of the same site. Cost:
    of a look, and of `unseen` for each source, n log n in the sources of the site.
    """

    def __init__(self) -> None:
        self.site_: Ints = np.empty(0, dtype=np.int64)
        self.last_: Times = np.empty(0, dtype="M8[us]")  # looks
        self.found_: Floats = np.empty(0)  # new pages on each site, ever
        self.mark_: Floats = np.empty(0)  # the same at the last look at each source
        self.shown_: Floats = np.empty(0)  # of the new pages of the site those on each source
        self.new_: Floats = np.empty(0)  # and all of them, since looks at that

    def grow(self, sources: int) -> None:
        """Make room for so many sources; new ones are sites of their own."""
        many = len(self.site_)
        more = sources - many
        self.site_ = np.concatenate([self.site_, np.arange(many, sources)])
        self.last_ = np.concatenate([self.last_, np.full(more, NEVER)])
        for name in ("found_", "mark_", "shown_", "new_"):
            setattr(self, name, np.pad(getattr(self, name), (0, more)))

    def place(self, source: Ints, host: Ints) -> None:
        """Sources of one host are of one site; it has the number of the first of them."""
        _, row = np.unique(host, return_inverse=True)
        first = np.full(len(host), len(self.site_))
        np.minimum.at(first, row, source)
        self.site_[source] = first[row]

    def looked(self, number: Ints, looks: Looks) -> tuple[Floats, Floats]:
        """Learn from looks in order of time, at sources of these numbers: for how many days what
        each shows was unseen, and how many new pages it shows that no look at it had shown, though
        others may have."""
        members, begin = _members(self.site_)
        counts = (self.found_, self.mark_, self.shown_, self.new_)
        since, at = looks.since.view(np.int64), looks.at.view(np.int64)
        own = (looks.shown - looks.kept).astype(np.float64)
        told = since, at, own, looks.new.astype(np.float64)
        last = self.last_.view(np.int64)
        return _looked(number, told, last, counts, (self.site_, members, begin))

    @property
    def share(self) -> Floats:
        """σ of each source."""
        return self.shown_ / (self.new_ + _DOUBT)

    def unseen(self, ages: Floats, answering: Floats, tick: float) -> Floats:
        """For how many days what each source shows was seen nowhere, if they were looked at so many
        days ago (inf: never, and all that it shows is unseen), and are with such a probability able
        to answer.

        In a tick, `tick` days long, that which shows the most comes first. As looks are spread over
        the tick, the others are to show what came since in smaller and smaller parts of it.
        """
        share = self.share * answering
        order = np.lexsort((np.arange(len(share)), -share, self.site_))
        return _unseen(order, self.site_, ages, share, tick)

    def state(self) -> State:
        return {name: getattr(self, f"{name}_") for name in _KEPT}

    def restore(self, state: State) -> None:
        for name in _KEPT:
            setattr(self, f"{name}_", state[name].copy())


_KEPT = ("site", "last", "found", "mark", "shown", "new")


def _members(site: Ints) -> tuple[Ints, Ints]:
    """The sources ordered by site, and where those of each number of a site begin."""
    members = np.argsort(site, kind="stable")
    return members, np.searchsorted(site[members], np.arange(len(site) + 1))


@compiled
def _looked(
    number: Ints,
    told: tuple[Ints, Ints, Floats, Floats],
    last: Ints,
    counts: tuple[Floats, Floats, Floats, Floats],
    sites: tuple[Ints, Ints, Ints],
) -> tuple[Floats, Floats]:
    since, at, own, fresh = told
    found, mark, shown, new = counts
    site, members, begin = sites
    unseen, shows = np.zeros(len(number)), np.zeros(len(number))
    for k in range(len(number)):
        source = number[k]
        home = site[source]
        found[home] += fresh[k]
        if since[k] != _NEVER:
            days = (at[k] - since[k]) / _DAY_US
            some = members[begin[home] : begin[home + 1]]
            ages, share = np.empty(len(some)), np.empty(len(some))
            for j in range(len(some)):
                other = some[j]
                known = other != source and last[other] != _NEVER
                ages[j] = max(at[k] - last[other], 0) / _DAY_US if known else np.inf
                share[j] = shown[other] / (new[other] + _DOUBT)
            unseen[k] = _integral(ages, share, days)
            fade = np.exp(-days / _MEMORY)
            union = found[home] - mark[source]
            shows[k] = min(own[k], union)
            weight = min(1.0, _MOST / max(union, 1.0))  # or one long gap would count for all
            shown[source] = shown[source] * fade + weight * shows[k]
            new[source] = new[source] * fade + weight * union
        mark[source] = found[home]
        last[source] = at[k]
    return unseen, shows


@compiled
def _integral(ages: Floats, share: Floats, days: float) -> float:
    """∫∏(1 − σ) over so many days, of those looked at later than u days ago at u."""
    total, before, left = 0.0, 0.0, 1.0
    for j in np.argsort(ages):
        if ages[j] >= days:
            break
        total += left * (ages[j] - before)
        before, left = ages[j], left * (1.0 - share[j])
    return total + left * (days - before)


@compiled
def _unseen(order: Ints, site: Ints, ages: Floats, share: Floats, tick: float) -> Floats:
    unseen = ages.copy()
    low = 0
    while low < len(order):
        high = low
        while high < len(order) and site[order[high]] == site[order[low]]:
            high += 1
        some = order[low:high]
        own, known = ages[some], share[some]
        better = 1.0
        for place in range(len(some)):
            if np.isfinite(own[place]):
                others = own.copy()
                others[place] = np.inf
                later = min(tick / (place + 1.0), own[place]) if place else own[place]
                soon = _integral(others, known, later)
                rest = _integral(others, known, own[place]) - soon
                unseen[some[place]] = soon + better * rest
            better *= 1.0 - known[place]
        low = high
    return unseen
