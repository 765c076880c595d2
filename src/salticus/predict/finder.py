"""What sources promise: how many new pages, and how much these are wanted, learnt as they come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from salticus.predict.harvest import Finds, HeldPages, Yields
from salticus.predict.interest import Interest, Prior, ages, interest
from salticus.predict.links import VISITS, LinkRates, Links, SourceVisits, seen_days
from salticus.types import Floats, Harvest, Ints, Times
from salticus.types.compiled import compiled
from salticus.types.state import State, part_of

FIRST_DAY = Prior(profit=1.0, decay=1.0)
"""Without clicks every new page is worth one, of which half come in 17 hours."""


_HOPE, _SOON = 2.0, 1.0  # standard errors, days


class Finder:
    """Learns what visits to sources find, and how often people click on what was found.

    Sources are numbered from 0. Clicks are known to `resolution` days, and so are visits to sources
    unless gaps as short as `shortest` are looked at; then a source of which nothing is known brings
    a link a day. A page counts for the source on which it was seen first. Its age is counted from
    the middle of the time in which its link appeared. Nothing is known of a page while no copy of
    it is held: clicks are counted, and pages watched, only then.

    Cost: linear in visits, clicks and pages watched; `solve` in sources.
    """

    def __init__(
        self,
        sources: int,
        *,
        resolution: float,
        prior: Prior = FIRST_DAY,
        visits: int = VISITS,
        shortest: float | None = None,
    ) -> None:
        self.prior = prior
        self.edges = ages(resolution)
        self.rates = LinkRates(visits=visits)
        self.group: Ints = np.zeros(sources, dtype=np.int64)
        bins = len(self.edges) - 1
        self.clicks_: Floats = np.zeros((sources, bins))
        self.watched_: Floats = np.zeros((sources, bins))
        self._clicked = True  # since interest was worked out
        usual = 1.0 if shortest else resolution
        self.finds = Finds(sources, shortest=shortest or resolution, usual=usual)
        self.yields = Yields(sources, resolution=resolution, prior=prior)
        self.solve()

    def grow(self, sources: int) -> None:
        """Make room for so many sources."""
        more = sources - len(self.group)
        self.group = np.pad(self.group, (0, more))
        self.clicks_, self.watched_ = (
            np.pad(table, ((0, more), (0, 0))) for table in (self.clicks_, self.watched_)
        )
        self.finds.grow(sources)
        self.yields.grow(sources)
        self._clicked = True

    def suppose(self, prior: Prior) -> None:
        """Let new pages be as wanted as this, as far as nothing is known of them."""
        self.prior = self.yields.prior = prior
        self._clicked = True

    def met(self, source: Ints, shown: Floats) -> None:
        """Learn how many links sources showed at their first visits; these are old."""
        self.finds.met(source, shown)

    def visited(
        self, found: SourceVisits, at: Times | None = None, shows: Floats | None = None
    ) -> None:
        """Learn what visits to sources found, made `at` these times; no source twice. If a source
        `shows` new pages that others have shown since the visit before, it would have found these,
        too."""
        self.rates.learn(found)
        self.finds.learn(found.source, found.days, found.new if shows is None else shows, at)

    def watch(self, pages: HeldPages, days: float) -> None:
        """Learn how often pages were clicked in so many days."""
        told = pages.source, pages.age, pages.clicks
        _watch(self.clicks_, self.watched_, self.edges, told, days)
        self._clicked = True
        self.yields.watch(pages, days)

    def solve(self) -> None:
        """Work out what all that was learnt says of each source."""
        every = np.arange(len(self.clicks_))
        self.links_: Links = self.rates.links(every, self.group)
        if self._clicked:
            self.interest_: Interest = interest(self.clicks_, self.watched_, self.edges, self.prior)
            self.yields.solve()
            self._clicked = False
        gaps, finds = self.finds.gaps, self.finds.solve()
        stays, week = self.finds.stays(), self.finds.week.table_[0]
        self.harvest_ = Harvest(gaps, finds, self.yields.by_gap(gaps), stays, week)

    def looks(self) -> Floats:
        """How many visits to each source were learnt."""
        return self.rates.looks(np.arange(len(self.clicks_)))

    def remaining(self, source: Ints, stood: Floats, since: Floats) -> Floats:
        """Clicks that pages of these sources will get yet, whose links `stood` for so many days
        when they were last seen, so many days ago."""
        return self.yields.remaining(source, stood, since)

    def old_left(self, source: Ints) -> Floats:
        """Clicks that each page will get yet which these sources showed at their first visits. They
        are taken to have appeared at the source's pace, so that the first of n is n/λ days old:
        P(1 − e^(−x))/x with x = m·n/λ."""
        day = np.ones(len(source))
        a_day, _ = self.harvest_.at(source, day, day)
        shown = np.nan_to_num(self.finds.shown_[source], nan=0.0)
        x = np.maximum(self.interest_.decay[source] * shown / np.maximum(a_day, 1e-12), 1e-12)
        return np.asarray(self.interest_.profit[source] * -np.expm1(-x) / x)

    def state(self) -> State:
        finds, yields = self.finds, self.yields
        return {
            "clicks": self.clicks_,
            "watched": self.watched_,
            "new": finds.new_,
            "visits": finds.visits_,
            "shown": finds.shown_,
            "counted": yields.clicks_,
            "through": yields.watched_,
            **{f"rates_{name}": column for name, column in self.rates.state().items()},
            **{f"week_{name}": column for name, column in finds.week.state().items()},
        }

    def restore(self, state: State) -> None:
        self.grow(len(state["shown"]))
        finds, yields = self.finds, self.yields
        self.clicks_, self.watched_ = state["clicks"].copy(), state["watched"].copy()
        finds.new_, finds.visits_ = state["new"].copy(), state["visits"].copy()
        finds.shown_ = state["shown"].copy()
        yields.clicks_, yields.watched_ = state["counted"].copy(), state["through"].copy()
        self.rates.restore(part_of(state, "rates_"))
        if week := part_of(state, "week_"):
            finds.week.restore(week)
        self.solve()


class ModelFinder(Finder):
    """Believes in ECHO's model of a source: links appear at the rate λ, vanish at v, and interest
    in their pages decays from P at the rate m. Who finds a price by these must know found pages by
    them, too: measured curves say another worth, and at a price that is above it none is visited.

    Hopes for the best: P is taken for two standard errors more than it seems, so that a source is
    tried until it is known to be poor. Where visits are few, the good ones are not found otherwise.
    Only new pages tell what pages are worth; so as much of it is hoped for as the chance that the
    source has one within a day. Else all visits go to sources that stay empty.
    """

    def solve(self) -> None:
        clicked = self._clicked
        super().solve()
        if clicked:
            self._seems = self.interest_
        seems, chance = self._seems, -np.expm1(-_SOON * self.links_.rate)
        self.interest_ = seems._replace(profit=seems.profit * (1.0 + _HOPE * chance * seems.error))
        self.harvest_ = modelled(self.finds.gaps, self.links_, self.interest_)

    def remaining(self, source: Ints, stood: Floats, since: Floats) -> Floats:
        """P·e^(−m·age)."""
        profit, decay, _ = (column[source] for column in self.interest_)
        return np.asarray(profit * np.exp(-decay * (stood + since)))


def modelled(gaps: Floats, links: Links, interest: Interest) -> Harvest:
    """What visits find by ECHO's model after each of these gaps, and the clicks on each page."""
    rate, vanish = links.rate[:, None], links.vanish[:, None]
    profit, decay = interest.profit[:, None], interest.decay[:, None]
    finds = rate * seen_days(gaps[None], vanish)
    clicks = rate * profit * seen_days(gaps[None], np.maximum(decay, vanish))
    return Harvest(gaps, finds, clicks / np.maximum(finds, 1e-300))


class KnownSources(NamedTuple):
    """What is true of sources: new links a day, clicks that a page gets, by which factor e^−`decay`
    these become fewer in a day, and the share of the links that vanishes in a day."""

    rate: Floats
    profit: Floats
    decay: Floats
    vanish: Floats


class KnowingFinder(Finder):
    """Has nothing to learn, as in a simulation that tells what is true of its sources."""

    def __init__(self, known: KnownSources, *, resolution: float) -> None:
        super().__init__(len(known.rate), resolution=resolution)
        sure = np.zeros(len(known.rate))
        self.links_ = Links(known.rate, sure, known.vanish)
        self.interest_ = Interest(known.profit, known.decay, sure)
        self.harvest_ = modelled(self.finds.gaps, self.links_, self.interest_)

    def visited(
        self, found: SourceVisits, at: Times | None = None, shows: Floats | None = None
    ) -> None:
        """Known already."""

    def watch(self, pages: HeldPages, days: float) -> None:
        """Known already."""

    def solve(self) -> None:
        """Worked out already; but not what it takes to make one."""
        if not hasattr(self, "harvest_"):
            super().solve()

    def remaining(self, source: Ints, stood: Floats, since: Floats) -> Floats:
        """P·e^(−(m−v)·stood − m·since): of all pages P·e^(−mu) is left at the age u; of those whose
        links vanished, at the rate v, next to nothing."""
        profit, decay, _ = (column[source] for column in self.interest_)
        outlive = np.maximum(decay - self.links_.vanish[source], 0.0)
        return np.asarray(profit * np.exp(-outlive * stood - decay * since))


@compiled
def _watch(
    clicks: Floats,
    watched: Floats,
    edges: Floats,
    told: tuple[Ints, Floats, Floats],
    days: float,
) -> None:
    """Add what was counted to the bins of the pages' ages; those too old for any are left out."""
    source, age, count = told
    for k in range(len(source)):
        if edges[0] <= age[k] < edges[-1]:
            bin_ = np.searchsorted(edges, age[k], side="right") - 1
            clicks[source[k], bin_] += count[k]
            watched[source[k], bin_] += days / (edges[bin_ + 1] - edges[bin_])
