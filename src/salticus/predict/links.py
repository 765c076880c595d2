"""How many new links appear on each source, and for how long they stand there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from salticus.predict.mle import likeliest
from salticus.predict.pooled import pooled_priors
from salticus.types import Columns, Floats, Ints, distinct
from salticus.types.state import State, places, rank_within

VISITS = 7  # published: any number from 3 to 10 does as well (Lefortier et al. 2013, §5.3)
_SHORTEST = 1e-6  # days between two visits
_TOLD = ("days", "new", "kept", "gone")


@dataclass(frozen=True, slots=True)
class SourceVisits(Columns):
    """What visits to sources found, by the source's id: how many days after the visit before, how
    many links to pages that no source had shown before, and how many of the links that were there
    then are `kept` or `gone`. A page on several sources counts for the first.

    The first visit to a source is none of these: its links are old.
    """

    source: Ints
    days: Floats
    new: Floats
    kept: Floats
    gone: Floats


@dataclass(frozen=True, slots=True)
class Links(Columns):
    """Of each source the new links a day, the relative standard error of that, and the share of its
    links, a day, that vanish: a link stands for 1/`vanish` days on average."""

    rate: Floats
    error: Floats
    vanish: Floats


class LinkRates:
    """Rates from the last `visits` to each source, drawn to those of sources like it.

    Links that come and go between two visits are never seen. If links vanish at the rate v, a visit
    τ days after another sees those of (1 − e^(−vτ))/v days; by these the new links are divided, not
    by a calendar week. A source is drawn to its group, and that to all sources, by how much is
    known of it (`pooled_priors`); so is v, by as much as one link that stood as long as others do.
    `default_rate` is that of a source of which nothing is known, like of all others. If `plain`,
    new links are divided by all days, as published: those that vanish unseen do not count.

    >>> rates = LinkRates()
    >>> rates.learn(SourceVisits(*(np.array([x]) for x in (7, 0.5, 30.0, 60.0, 0.0))))
    >>> rates.links(np.array([7]), np.array([0])).rate.round()
    array([58.])
    """

    def __init__(
        self, *, visits: int = VISITS, default_rate: float = 1.0, plain: bool = False
    ) -> None:
        self.visits = visits
        self.plain = plain
        self.default_rate = default_rate
        self.ids_: Ints = np.empty(0, dtype=np.int64)
        self.seen_: Ints = np.empty(0, dtype=np.int64)  # visits to each, forgotten ones too
        self.last_: Floats = np.empty((0, len(_TOLD), visits))

    def learn(self, found: SourceVisits) -> None:
        """Remember visits, which are in order of time; the oldest of a source make room."""
        self._meet(found.source)
        turn = rank_within(found.source)
        for round_ in range(int(turn.max(initial=-1)) + 1):
            some = found.take(turn == round_)
            rows = np.searchsorted(self.ids_, some.source)
            some = replace(some, days=np.maximum(some.days, _SHORTEST))
            told = np.stack([getattr(some, name) for name in _TOLD], axis=1)
            self.last_[rows, :, self.seen_[rows] % self.visits] = told
            self.seen_[rows] += 1

    def links(self, sources: Ints, group: Ints) -> Links:
        """What is known of these sources (ids, ascending), each with the number of its group."""
        days, new, kept, gone = np.moveaxis(self._told(sources), 1, 0)
        vanish = vanishing(days, kept, gone)
        seen = days if self.plain else seen_days(days, vanish[:, None])
        count, watched = new.sum(axis=1), seen.sum(axis=1)
        common = (count.sum() + 1.0) / (watched.sum() + 1.0 / self.default_rate)
        alike = np.full(len(sources), -1)
        a, b = pooled_priors(count, watched, group, alike, rate=float(common))
        a, b = a + count, b + watched
        return Links(a / b, 1.0 / np.sqrt(a), vanish)

    def looks(self, sources: Ints) -> Floats:
        """How many visits to each of these sources were learnt."""
        rows, known = places(self.ids_, sources)
        looks = np.zeros(len(sources))
        looks[known] = self.seen_[rows[known]]
        return looks

    def _meet(self, sources: Ints) -> None:
        fresh = distinct(sources[~places(self.ids_, sources)[1]])
        at = np.searchsorted(self.ids_, fresh)
        self.ids_ = np.insert(self.ids_, at, fresh)
        self.seen_ = np.insert(self.seen_, at, 0)
        self.last_ = np.insert(self.last_, at, 0.0, axis=0)

    def _told(self, sources: Ints) -> Floats:
        """By source, what visits told, and visit; 0 where there was none."""
        told = np.zeros((len(sources), *self.last_.shape[1:]))
        rows, known = places(self.ids_, sources)
        told[known] = self.last_[rows[known]]
        return told

    def state(self) -> State:
        return {"ids": self.ids_, "seen": self.seen_, "last": self.last_}

    def restore(self, state: State) -> None:
        """Take up a state; of one that remembers another number of visits, the latest."""
        self.ids_, self.seen_ = state["ids"].copy(), state["seen"].copy()
        before = state["last"].shape[2]
        self.last_ = np.zeros((len(self.ids_), len(_TOLD), self.visits))
        for back in range(min(before, self.visits)):
            turn = self.seen_ - 1 - back
            rows = np.flatnonzero(turn >= 0)
            turn = turn[rows]
            self.last_[rows, :, turn % self.visits] = state["last"][rows, :, turn % before]


def vanishing(days: Floats, kept: Floats, gone: Floats) -> Floats:
    """The rate at which links vanish, a day: the likeliest, a row a source, if each link vanishes
    alike at any age; drawn to that of all sources by as much as one link.

    Of all sources together one link more is taken to have stayed from a visit to the next. Else
    where all links are gone at every visit, they might as well have stood for a second each, and
    any number of them."""
    days = np.maximum(days, _SHORTEST)
    stood = (kept * days).sum() + (gone * days).sum() / max(gone.sum(), 1.0)
    every = likeliest(days.reshape(1, -1), gone.reshape(1, -1), np.array([stood]))
    common = float(np.clip(every[0], 1e-4, 1e4))
    one = np.full((len(days), 1), 1.0 / common)  # a day of its own, in which it may go or stay
    days, gone = np.hstack([days, one]), np.hstack([gone, np.full((len(days), 1), 1 - np.exp(-1))])
    still = (kept * days[:, :-1]).sum(axis=1) + np.exp(-1) / common
    return likeliest(days, gone, still)


def seen_days(days: Floats, vanish: Floats) -> Floats:
    """Of so many days between two visits those whose links the second one sees: (1 − e^(−vτ))/v.

    >>> seen_days(np.array([0.0, 1.0, 1.0]), np.array([2.0, 2.0, 1e-12])).round(3)
    array([0.   , 0.432, 1.   ])
    """
    x = np.maximum(vanish * days, 1e-12)
    return np.asarray(days * -np.expm1(-x) / x)
