"""Bandits that draw pages from the mixture of their arms, all of which learn from every visit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from salticus.allocate.bandit.learners import Exp3, Hedge
from salticus.allocate.bandit.policy import Bandit
from salticus.allocate.bandit.step import rows_of
from salticus.allocate.share import in_proportion
from salticus.types import Bools, Floats, Floats32, Ints, Pages
from salticus.types.state import State

_WHOLE = float(np.iinfo(np.uint16).max)
_PARTS = 3  # classes by demand, and by change
_LASTING = 0.99  # of a step's weight in the mean worth of a visit, a step later


class Mixture(Bandit):
    """Expects π = Σ q_k ρ^k, and judges each arm by importance weights (ALGORITHMS §7, "Better").

    Pages are the actions and arms the experts, as in EXP4 (Auer et al. 2002). Arm k earned
    x_k = Σ ρ^k μ z 1(stale) / (π M), an unbiased estimate of what it would have found; stretched as
    a bandit's reward is. All learn each step, by w_k ← w_k exp(γ x_k), and so in less time.

    Which part of π is due to arm k, q_k ρ^k / π, is kept for each page as a 16-bit fraction
    until the step is settled: 2K bytes a page. Cost: that of all arms together.
    """

    kept: tuple[str, ...] = ("ids_", "due_")

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.ids_: Ints = np.empty(0, dtype=np.int64)
        self.due_: NDArray[np.uint16] = np.empty((len(self.arms_), 0), dtype=np.uint16)
        self._next: State = {}
        self._start()

    def _start(self) -> None:
        """What learns."""
        self.learner_ = self.experts_ = Exp3(len(self.arms_))

    def _answer(self, pages: Pages, visits: float) -> Floats:
        mixed = self._parts(self._wanted(pages, visits), pages).sum(axis=0)
        return np.asarray(np.minimum(mixed, 1.0))

    def _wanted(self, pages: Pages, visits: float) -> Floats:
        """ρ, what every arm expects: a row an arm."""
        return np.array([policy.expected(pages, visits) for policy in self.arms_.policies])

    def _parts(self, wanted: Floats, pages: Pages) -> Floats:
        """Visits due to each arm, q_k ρ^k: a row an arm."""
        return np.asarray(self.learner_.probabilities()[:, None] * wanted)

    def _begin(self, pages: Pages, visits: float) -> Floats:
        wanted = self._wanted(pages, visits)
        return np.minimum(self._open(pages, wanted, self._parts(wanted, pages)), 1.0)

    def _open(self, pages: Pages, wanted: Floats, parts: Floats) -> Floats:
        """Prepare the step; what is due to all arms together."""
        self._asked = self.step_.after(pages.tick, -1, float((wanted @ pages.demand).max()))
        mixed = np.asarray(parts.sum(axis=0))
        due = np.rint(parts * (_WHOLE / np.maximum(mixed, 1e-300))).astype(np.uint16)
        self._next = {"ids_": pages.ids, "due_": due}
        return mixed

    def adopt(self) -> None:
        if self._asked is not None:
            vars(self).update(self._next)
        super().adopt()

    def _due(self) -> tuple[Ints, Bools, Floats]:
        """Of every visit that counts: its row, whether that is known, the part due to each arm."""
        rows, there = rows_of(self.ids_, self.step_.found()[0])
        return rows, there, np.where(there, self.due_[:, rows], 0) / _WHOLE

    def _reward(self, gains: Floats, whole: float) -> None:
        factor = self.stretch_.factor(min(1.0, float(gains.sum()) / whole))
        earned = factor / whole * (self._due()[2] @ gains)
        self.experts_.update_all(earned / self.learner_.probabilities())
        self.history_.end(self.step_, float(earned.sum()))

    def state(self) -> State:
        return {**super().state(), **{name: getattr(self, name) for name in self.kept}}

    def restore(self, state: State) -> None:
        super().restore(state)
        if self.arms_.are_of(state):
            vars(self).update({name: state[name] for name in self.kept})


class Contextual(Mixture):
    """A mixture whose weights depend on the class of a page: π ∝ Σ q_kc ρ^k, c the page's class.

    What Han et al. (2020), §6.2, leave to others. There are nine classes: three by demand, which
    are clicked equally often, times three by change rate, which change equally often. In each, arms
    that want more visits for it gain where its visits are worth more than visits on average are:

        a_kc = Σ_{i in c} z ρ^k / π · (μ 1(stale) T − λ),    q_kc by Hedge (see `Hedge`)

    T = 1 / (p + π − p π) ticks is the time that the copy then stays fresh or unvisited, so that
    μ 1(stale) T is an unbiased estimate of the slope of the clicks served fresh with π, and not
    only of what one visit found: pages that are stale again at once are worth little. λ is the mean
    worth of a visit of late. The mixture is scaled to the visits there are (`in_proportion`), so
    the budget holds whatever the weights are. At constant rates the clicks served fresh are concave
    in π, and this is a stochastic ascent towards the best weights of all classes.

    State: 2K + 17 bytes a page. Cost: that of all arms together, and sorting the pages twice.
    """

    kept = (*Mixture.kept, "group_", "odds_", "lasts_", "edges_", "worth_")

    def _start(self) -> None:
        self.learner_ = self.hedge_ = Hedge(len(self.arms_), _PARTS**2)
        self.group_: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self.odds_: Floats32 = np.empty(0, dtype=np.float32)
        self.lasts_: Floats32 = np.empty(0, dtype=np.float32)
        self._shares: Floats = np.zeros(len(self.arms_))
        self.edges_: Floats = np.empty((2, 0))
        self.worth_: Floats = np.zeros(2)  # of the visits of late, and their number

    def begin(self, pages: Pages) -> None:
        super().begin(pages)
        self.edges_ = _edges_of(pages)

    def _answer(self, pages: Pages, visits: float) -> Floats:
        weights = self.hedge_.of_classes()[:, self._groups(pages, _rates(pages))]
        return self._scaled((weights * self._wanted(pages, visits)).sum(axis=0), visits)

    def _groups(self, pages: Pages, rates: Floats) -> Ints:
        """The class of each page; by the pages at hand before the first tick."""
        edges = self.edges_ if self.edges_.shape[1] else _edges_of(pages)
        clicks = np.searchsorted(edges[0], pages.demand, side="right")
        return np.asarray(_PARTS * clicks + np.searchsorted(edges[1], rates, side="right"))

    def _scaled(self, mixed: Floats, visits: float) -> Floats:
        return in_proportion(mixed, visits if self.spends else min(visits, float(mixed.sum())))

    def _begin(self, pages: Pages, visits: float) -> Floats:
        wanted, rates = self._wanted(pages, visits), _rates(pages)
        group = self._groups(pages, rates)
        parts = self.hedge_.of_classes()[:, group] * wanted
        mixed = self._open(pages, wanted, parts)
        expected = self._scaled(mixed, visits)
        p = -np.expm1(-rates * pages.tick.days)
        lasts = 1.0 / np.maximum(p + expected - p * expected, 1e-6)
        odds = mixed / np.maximum(expected, 1e-300)
        self._next |= {
            "group_": group.astype(np.uint8),
            "odds_": odds.astype(np.float32),
            "lasts_": lasts.astype(np.float32),
        }
        self._shares = parts.sum(axis=1) / max(float(parts.sum()), 1e-300)
        return expected

    def adopt(self) -> None:
        if self._asked is not None and self._shares.any():
            self.hedge_.shares_ = self._shares
        super().adopt()

    def _reward(self, gains: Floats, whole: float) -> None:
        rows, there, due = self._due()
        worth = gains * np.where(there, self.lasts_[rows], 0.0)
        self.worth_ = _LASTING * self.worth_ + (worth.sum(), len(worth))
        above = worth - self.worth_[0] / self.worth_[1]
        weighted = due * np.where(there, self.odds_[rows] * above, 0.0)
        group, classes = self.group_[rows], self.hedge_.classes
        sums = np.array([np.bincount(group, arm, classes) for arm in weighted])
        self.hedge_.learn(sums / self.hedge_.of_classes())
        self.history_.end(self.step_, min(1.0, float(gains.sum()) / whole))


def _rates(pages: Pages) -> Floats:
    """Changes a day of each page; 1 if nobody knows."""
    return np.ones(len(pages)) if pages.survival is None else pages.survival.rates()


def _edges_of(pages: Pages) -> Floats:
    """The values that part pages into classes by demand and by change rate."""
    return np.array([_equal_sums(pages.demand), _equal_sums(_rates(pages))])


def _equal_sums(values: Floats) -> Floats:
    """Where each class but the first begins, so that the sums of all are about equal.

    >>> _equal_sums(np.array([1.0, 2.0, 1.0, 2.0, 3.0]))
    array([2., 2.])
    """
    if not len(values):
        return np.empty(0)
    ordered = np.sort(values)
    sums = np.cumsum(ordered)
    at = np.searchsorted(sums, sums[-1] * np.arange(1, _PARTS) / _PARTS)
    return np.asarray(ordered[np.minimum(at, len(values) - 1)])
