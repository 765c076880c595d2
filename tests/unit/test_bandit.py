"""Bandits over policies: traces by hand, regret, rewards, and what the denominator does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest

from salticus import allocate, plugins
from salticus.allocate.bandit.learners import Exp3, Exp3Anytime, Exp3Ix, Exp3Plus, Learner
from salticus.allocate.bandit.mixture import Contextual
from salticus.allocate.bandit.policy import Bandit
from salticus.allocate.bandit.step import rows_of
from salticus.allocate.base import Policy
from salticus.allocate.baselines import Uniform
from salticus.allocate.kab import (
    CHANGE,
    CLICK,
    EVERY,
    Kab5,
    Kab5Contextual,
    Kab5Mixture,
    Kab5Printed,
    Mixture,
    Split,
)
from salticus.allocate.share import in_proportion
from salticus.checks.policy import check_policy
from salticus.checks.samples import some_pages
from salticus.errors import ConfigError, InputError, PluginError
from salticus.predict.poisson import PoissonSurvival
from salticus.schedule.coin import Coin
from salticus.testing import a_step, a_tick, blank_pages
from salticus.types import (
    CHANGED,
    UNCHANGED,
    UNKNOWN,
    Bools,
    Floats,
    Ints,
    Outcomes,
    Pages,
    Purpose,
    Status,
    instant,
)
from salticus.types.state import pack, unpack

# --------------------------------------------------------------------------------- traces by hand

DRAWS = [(0, "1"), (1, "0.25"), (0, "0.5"), (2, "1"), (2, "0.125"), (1, "0"), (0, "1"), (2, "0.75")]


def test_exp3_follows_algorithm_1() -> None:
    """Weights as they stand in the paper, multiplied out with 40 digits."""
    learner = Exp3(3)
    with localcontext(prec=40):
        gamma, w = Decimal("0.1"), [Decimal(1)] * 3
        for arm, x in DRAWS:
            q = [(1 - gamma) * each / sum(w) + gamma / 3 for each in w]
            assert learner.probabilities() == pytest.approx([float(each) for each in q], abs=1e-12)
            w[arm] *= (gamma / 3 * Decimal(x) / q[arm]).exp()
            learner.update(arm, float(x))
        assert np.exp(learner.log_weights_) == pytest.approx(
            [float(each / max(w)) for each in w], abs=1e-12
        )


def test_the_first_steps_of_exp3_by_hand() -> None:
    """Two arms, γ = 0.1: q = ½, so that a reward of 1 makes w = e^(0.1/2 · 1/½) = e^0.1."""
    learner = Exp3(2)
    learner.update(0, 1.0)
    first = 0.9 * math.exp(0.1) / (math.exp(0.1) + 1) + 0.05
    assert learner.probabilities().tolist() == pytest.approx([first, 1 - first], abs=1e-12)
    assert first == pytest.approx(0.522481, abs=1e-6)
    learner.update(1, 1.0)
    other = math.exp(0.05 / (1 - first))
    second = 0.9 * other / (math.exp(0.1) + other) + 0.05
    assert learner.probabilities().tolist() == pytest.approx([1 - second, second], abs=1e-12)


def test_the_anytime_form_is_exp3_with_the_best_gamma_of_each_step() -> None:
    learner, w = Exp3Anytime(3), [1.0] * 3
    for t, (arm, x) in enumerate(DRAWS * 30, start=1):
        gamma = max(0.1, min(1.0, math.sqrt(3 * math.log(3) / ((math.e - 1) * t))))
        q = [(1 - gamma) * each / sum(w) + gamma / 3 for each in w]
        assert learner.probabilities() == pytest.approx(q, abs=1e-12)
        w[arm] *= math.exp(gamma / 3 * float(x) / q[arm])
        learner.update(arm, float(x))
    assert learner.explored() == 0.1


def test_exp3_ix_follows_its_formulas() -> None:
    learner, losses = Exp3Ix(3), [0.0] * 3
    for t, (arm, x) in enumerate(DRAWS, start=1):
        eta = math.sqrt(math.log(3) / (3 * t))
        w = [math.exp(-eta * loss) for loss in losses]
        assert learner.probabilities() == pytest.approx([each / sum(w) for each in w], abs=1e-12)
        losses[arm] += (1 - float(x)) / (w[arm] / sum(w) + eta / 2)
        learner.update(arm, float(x))


def test_exp3_plus_follows_its_formulas() -> None:
    """Long enough that some arms are surely worse and explored less."""
    learner = Exp3Plus(3, beta=0.01)
    losses, drawn, suffered = [0.0] * 3, [0] * 3, [0.0] * 3
    rewards, seen = (0.95, 0.1, 0.3), set()
    for t in range(1, 400):
        q, surely = _plus(losses, drawn, suffered, t)
        seen.add(surely)
        assert learner.probabilities() == pytest.approx(q, abs=1e-12)
        arm = (t * 7) % 3
        losses[arm] += (1 - rewards[arm]) / q[arm]
        suffered[arm] += 1 - rewards[arm]
        drawn[arm] += 1
        learner.update(arm, rewards[arm])
    assert seen == {False, True}


def _plus(
    losses: list[float], drawn: list[int], suffered: list[float], t: int
) -> tuple[list[float], bool]:
    eta = 0.5 * math.sqrt(math.log(3) / (3 * t))
    wide = [math.sqrt(3 * math.log(t * 3 ** (1 / 3)) / (2 * n)) if n else math.inf for n in drawn]
    means = [loss / max(n, 1) for loss, n in zip(suffered, drawn, strict=True)]
    upper = [min(1.0, mean + r) for mean, r in zip(means, wide, strict=True)]
    lower = [max(0.0, mean - r) for mean, r in zip(means, wide, strict=True)]
    gaps = [max(0.0, low - min(upper)) for low in lower]
    most = min(1 / 6, eta)
    sure = [0.01 * math.log(t) / (t * gap**2) if gap else math.inf for gap in gaps]
    explored = [min(most, each) for each in sure]
    w = [math.exp(-eta * loss) for loss in losses]
    q = [(1 - sum(explored)) * a / sum(w) + e for a, e in zip(w, explored, strict=True)]
    return q, min(sure) < most


# ----------------------------------------------------------------------------------------- regret

STEPS, ARMS = 2000, 5


def planted(seed: int) -> Floats:
    """Rewards of all arms at every step: the third is best."""
    means = np.array([0.3, 0.2, 0.8, 0.25, 0.1])
    rng = np.random.default_rng(seed)
    return (rng.random((STEPS, ARMS)) < means).astype(np.float64)


def regret(learner: Learner, seed: int) -> float:
    """What the best arm would have earned more, against rewards fixed before the first draw."""
    rewards = planted(seed)
    chance = np.random.default_rng(1000 + seed).random(STEPS)
    earned = 0.0
    for reward, u in zip(rewards, chance, strict=True):
        arm = min(int(np.searchsorted(np.cumsum(learner.probabilities()), u)), ARMS - 1)
        learner.update(arm, float(reward[arm]))
        earned += float(reward[arm])
    return float(rewards.sum(axis=0).max()) - earned


class Blind(Learner):
    """Learns nothing."""

    def probabilities(self) -> Floats:
        return np.full(ARMS, 1 / ARMS)

    def update(self, arm: int, reward: float) -> None: ...


TKLNK = STEPS * ARMS * math.log(ARMS)
BEST_GAMMA = min(1.0, math.sqrt(ARMS * math.log(ARMS) / ((math.e - 1) * STEPS)))
EXP3_BOUND = 2 * math.sqrt(math.e - 1) * math.sqrt(TKLNK)
USUAL_BOUND = (math.e - 1) * 0.1 * 0.8 * STEPS + ARMS * math.log(ARMS) / 0.1
LEARNERS: list[tuple[Callable[[], Learner], float]] = [
    (lambda: Exp3(ARMS, gamma=BEST_GAMMA), EXP3_BOUND),
    (lambda: Exp3(ARMS), USUAL_BOUND),
    (lambda: Exp3Anytime(ARMS), EXP3_BOUND),
    (lambda: Exp3Ix(ARMS), 4 * math.sqrt(TKLNK)),
    (lambda: Exp3Plus(ARMS), 4 * math.sqrt(TKLNK)),
]


@pytest.mark.parametrize(("make", "bound"), LEARNERS)
def test_regret_stays_under_the_bound(make: Callable[[], Learner], bound: float) -> None:
    assert np.mean([regret(make(), seed) for seed in range(6)]) < bound
    assert regret(Blind(ARMS), 0) > bound


# -------------------------------------------------------------------------------------- the policy


def told(
    pages: Pages, page: list[int], changed: list[int], *, first: int = 1, **columns: object
) -> Outcomes:
    """Visits of the tick, answered at its start."""
    known = {"visit": np.arange(first, first + len(page)), "changed": changed} | columns
    return Outcomes.known(page=np.array(page), at=instant(pages.tick.start), **known)


class Pair(Bandit):
    """Two arms."""

    arms = (CLICK, "uniform")
    learner = Exp3


class PrintedPair(Pair):
    """The same, with the reward of the paper."""

    common = False


class Recorder(Exp3):
    """Writes down what it is told."""

    def __init__(self, arms: int) -> None:
        super().__init__(arms)
        self.told: list[tuple[int, float]] = []

    def update(self, arm: int, reward: float) -> None:
        self.told.append((arm, reward))
        super().update(arm, reward)


def heard(policy: Bandit) -> Recorder:
    policy.learner_ = recorder = Recorder(len(policy.arms_))
    policy.stretch_.factor = lambda _: 1.0  # type: ignore[method-assign]
    return recorder


def at(pages: Pages, number: int) -> Pages:
    return replace(pages, tick=a_tick(number))


FOUR = replace(blank_pages(4), demand=np.array([6.0, 2.0, 1.0, 1.0]))


def test_the_reward_is_the_stale_demand_over_what_any_arm_would_have_visited() -> None:
    """One visit: the click arm expects Σ μ² / Σ μ = 4.2 clicks, the uniform one 2.5."""
    policy = Pair()
    recorder = heard(policy)
    a_step(policy, FOUR, 1.0)
    policy.learn(told(FOUR, [1, 0], [CHANGED, UNCHANGED]))
    a_step(policy, at(FOUR, 1), 1.0)
    assert recorder.told == [(recorder.told[0][0], pytest.approx(2.0 / 4.2))]


def test_the_printed_reward_is_the_stale_share_of_the_demand_visited() -> None:
    policy = PrintedPair()
    recorder = heard(policy)
    a_step(policy, FOUR, 1.0)
    policy.learn(told(FOUR, [1, 0], [CHANGED, UNCHANGED]))
    a_step(policy, at(FOUR, 1), 1.0)
    assert [reward for _, reward in recorder.told] == [pytest.approx(2.0 / 8.0)]


def test_visits_that_tell_nothing_leave_both_sides_of_the_reward() -> None:
    """Dropped, failed, unknown: three of four visits, so that a quarter of M is left."""
    policy = Pair()
    recorder = heard(policy)
    a_step(policy, FOUR, 1.0)
    status = np.array([Status.OK, Status.OK, Status.TIMEOUT, Status.OK], dtype=np.int8)
    changed = [CHANGED, CHANGED, CHANGED, UNKNOWN]
    made = np.array([True, False, True, True])
    since = instant(FOUR.tick.start) - np.timedelta64(1, "D")
    policy.learn(told(FOUR, [2, 0, 1, 3], changed, made=made, status=status, since=since))
    a_step(policy, at(FOUR, 1), 1.0)
    assert [reward for _, reward in recorder.told] == [pytest.approx(1.0 / (4.2 / 4))]


def test_the_first_visit_of_a_page_found_it_stale() -> None:
    policy = PrintedPair()
    recorder = heard(policy)
    a_step(policy, FOUR, 1.0)
    policy.learn(told(FOUR, [1, 0], [UNKNOWN, UNCHANGED]))
    a_step(policy, at(FOUR, 1), 1.0)
    mine, other = FOUR.demand[[1, 0]]
    assert [reward for _, reward in recorder.told] == [pytest.approx(mine / (mine + other))]


@pytest.mark.parametrize("purpose", [Purpose.EXPLORE, Purpose.INSTA, Purpose.LIMIT, Purpose.PANEL])
def test_only_the_policys_own_visits_count(purpose: Purpose) -> None:
    policy = Pair()
    recorder = heard(policy)
    a_step(policy, FOUR, 1.0)
    others = np.array([purpose], dtype=np.int8)
    policy.learn(told(FOUR, [0], [CHANGED], first=10**9, purpose=others))
    a_step(policy, at(FOUR, 1), 1.0)
    assert recorder.told == []
    policy.learn(told(at(FOUR, 1), [1], [CHANGED]))  # whatever numbers the others have
    a_step(policy, at(FOUR, 2), 1.0)
    assert len(recorder.told) == 1


def test_visits_of_an_earlier_tick_are_not_counted_for_the_arm_of_this_one() -> None:
    policy = Pair()
    recorder = heard(policy)
    a_step(policy, FOUR, 1.0)
    policy.learn(told(FOUR, [1], [UNCHANGED], first=7))
    a_step(policy, at(FOUR, 1), 1.0)
    policy.learn(told(at(FOUR, 1), [0], [CHANGED], first=6))  # one that was in flight
    policy.learn(told(FOUR, [0], [CHANGED], first=8))  # answered before the tick
    a_step(policy, at(FOUR, 2), 1.0)
    assert [reward for _, reward in recorder.told] == [0.0]


def test_outcomes_before_the_first_tick_teach_nothing() -> None:
    policy = Pair()
    recorder = heard(policy)
    policy.learn(told(FOUR, [0], [CHANGED]))
    a_step(policy, FOUR, 1.0)
    assert recorder.told == []


def test_pages_that_are_gone_by_the_next_tick_count_for_nothing() -> None:
    policy = PrintedPair()
    recorder = heard(policy)
    a_step(policy, FOUR, 1.0)
    policy.learn(told(FOUR, [0, 1, 2], [CHANGED, CHANGED, UNCHANGED]))
    a_step(policy, at(FOUR.take(np.array([1, 2, 3])), 1), 1.0)
    assert [reward for _, reward in recorder.told] == [pytest.approx(2.0 / 3.0)]
    policy.learn(told(at(FOUR, 1), [0], [CHANGED], first=9))
    assert a_step(policy, at(FOUR.take(np.empty(0, dtype=np.int64)), 2), 1.0).shape == (0,)


def test_one_tick_has_one_arm_and_is_learnt_once() -> None:
    policy, pages = Kab5(seed=3), some_pages(40)
    recorder = heard(policy)
    a_step(policy, pages, 5.0)
    policy.learn(told(pages, pages.ids[:3].tolist(), [1, 1, 0]))
    expected = a_step(policy, at(pages, 1), 5.0)
    for part in (np.arange(0, 40, 2), np.arange(10)):
        policy.expected(at(pages, 1).take(part), 2.0)
    assert np.array_equal(policy.expected(at(pages, 1), 5.0), expected)
    assert len(recorder.told) == 1


def test_arms_are_drawn_as_often_as_their_probabilities_say() -> None:
    policy = Pair(seed=9)
    policy.learner_.restore({"log_weights_": np.array([0.0, -1.0])})
    drawn = np.array([policy._drawn(tick) for tick in range(4000)])
    chance = policy.learner_.probabilities()[1]
    assert abs(drawn.mean() - chance) < 4 * math.sqrt(chance * (1 - chance) / 4000)
    again = Pair(seed=9)
    again.learner_.restore({"log_weights_": np.array([0.0, -1.0])})
    assert drawn.tolist() == [again._drawn(tick) for tick in range(4000)]


def test_demand_that_is_not_a_number_is_named() -> None:
    pages = replace(FOUR, demand=np.array([1.0, np.nan, 1.0, 1.0]))
    for policy in (Pair(), Kab5Mixture()):
        with pytest.raises(InputError, match="demand of page 1"):
            a_step(policy, pages, 1.0)


class Queues(Bandit):
    """Arms that remember, one of which may leave visits unspent, and one made by a class."""

    arms = ("nutch", "fixed_interval", Uniform)


class MixedQueues(Mixture):
    arms = Queues.arms


@pytest.mark.parametrize("policy", [Queues, MixedQueues])
def test_any_policies_may_be_arms(policy: type[Bandit]) -> None:
    check_policy(policy, seeds=2)
    assert not policy().spends
    assert policy().arms_.names == ["nutch", "fixed_interval", "Uniform"]


def test_a_bandit_of_other_arms_starts_anew() -> None:
    old = Pair()
    old.learner_.update(0, 1.0)

    class Other(Bandit):
        arms = (CHANGE, "uniform")

    new, same = Other(), Pair()
    for policy in (new, same):
        policy.restore(unpack(pack({"policy": old.state()}))["policy"])
    assert new.learner_.probabilities().tolist() == [0.5, 0.5]
    assert same.learner_.probabilities().tolist() == old.learner_.probabilities().tolist()


def test_a_bandit_without_arms_says_so() -> None:
    with pytest.raises(ConfigError, match="no arms"):
        Bandit()


def test_state_is_small() -> None:
    """A few numbers, and the visits of the open step."""
    policy, pages = Kab5(), some_pages(5000)
    a_step(policy, pages, 50.0)
    policy.learn(told(pages, pages.ids[:50].tolist(), [1] * 50))
    assert sum(column.nbytes for column in policy.state().values()) < 3000


def test_rows_are_found_in_any_order() -> None:
    ids = np.array([9, 2, 5])
    rows, there = rows_of(ids, np.array([5, 3, 9]))
    assert there.tolist() == [True, False, True]
    assert ids[rows[there]].tolist() == [5, 9]


# ---------------------------------------------------------------------------- mixture and split


def test_the_mixture_expects_the_mean_of_its_arms_and_judges_all_of_them() -> None:
    policy, pages = Kab5Mixture(), at(some_pages(300, seed=2), 0)
    policy.experts_.log_weights_ = np.log([0.5, 0.2, 0.1, 0.1, 0.1])
    q = policy.learner_.probabilities()
    arms = [plugins.make("policy", arm, allocate.BUILTIN) for arm in EVERY]
    rho = np.array([arm.expected(pages, 40.0) for arm in arms])
    assert a_step(policy, pages, 40.0) == pytest.approx(q @ rho)
    policy.learn(told(pages, pages.ids[:60].tolist(), [CHANGED, UNCHANGED] * 30))
    logs = policy.experts_.log_weights_
    a_step(policy, at(pages, 1), 40.0)
    stale = slice(0, 60, 2)
    share = rho[:, stale] / (q @ rho)[stale]
    reward = share @ pages.demand[stale] / (rho @ pages.demand).max()
    total = pages.demand[stale].sum() / (rho @ pages.demand).max()
    raised = logs + 0.1 * np.minimum(reward / min(total, 1.0), 10.0)
    assert policy.experts_.log_weights_ == pytest.approx(raised - raised.max(), abs=2e-3)


def test_split_is_the_mean_of_all_strategies() -> None:
    pages = some_pages(60, seed=1)
    arms = [plugins.make("policy", arm, allocate.BUILTIN) for arm in EVERY]
    mean = np.mean([arm.expected(pages, 9.0) for arm in arms], axis=0)
    assert Split().expected(pages, 9.0) == pytest.approx(mean)


def test_every_set_of_arms_learns_in_every_way() -> None:
    made = plugins.make("policy", "salticus.allocate.kab:Kab3ImpressionsPlus", {}, seed=1)
    assert made.arms_.names == [CLICK, CHANGE, "impression_proportional"]
    assert isinstance(made.learner_, Exp3Plus)
    printed = plugins.make("policy", "kab2_printed", allocate.BUILTIN)
    assert printed.arms_.names == [CLICK, CHANGE]
    assert (type(printed.learner_), printed.learner_.gamma, printed.common) == (Exp3, 0.1, False)
    with pytest.raises(PluginError, match="Kab6"):
        plugins.load("policy", "salticus.allocate.kab:Kab6", {})


def test_classes_learn_where_an_arm_is_right() -> None:
    """Of pages read alike, one half changes and the other does not; an arm visits each half."""
    n = 40
    rates, first = np.repeat([2.0, 0.02], n // 2), np.arange(n) < n // 2

    class Half(Uniform):
        def __init__(self, half: Bools) -> None:
            self.half = half

        def expected(self, pages: Pages, visits: float) -> Floats:
            weights = np.where(self.half[pages.ids], 4.0, 1.0)
            return in_proportion(weights, visits)

    class Halves(Contextual):
        arms = (lambda: Half(first), lambda: Half(~first))

    policy = Halves()
    pages = replace(blank_pages(n), survival=PoissonSurvival(rates), demand=np.ones(n))
    rng, number = np.random.default_rng(0), 1
    for tick in range(200):
        expected = a_step(policy, at(pages, tick), 4.0)
        rows = np.flatnonzero(rng.random(n) < expected)
        stale = (rng.random(len(rows)) < rates[rows] / 2).astype(int).tolist()
        policy.learn(told(at(pages, tick), rows.tolist(), stale, first=number))
        number += len(rows)
    assert expected[first].sum() > 2.0 * expected[~first].sum()


# ------------------------------------------------------------- what the denominator does (§7)


class Shop:
    """Pages that change at random, with demand and estimates that are both wrong by a factor."""

    def __init__(self, seed: int, n: int = 1500) -> None:
        self.rng = np.random.default_rng(seed)
        self.rate = np.exp(self.rng.normal(-1.0, 2.0, n))
        self.demand = self.rng.pareto(1.2, n) + 0.01
        rate, demand, seen = self.rate * self._off(), self.demand * self._off(), self._off()
        self.pages = replace(
            blank_pages(n),
            demand=demand,
            impressions=10 * self.demand * seen,
            survival=PoissonSurvival(rate),
        )
        self.stale: Bools = np.zeros(n, dtype=np.bool_)

    def _off(self) -> Floats:
        return np.exp(self.rng.normal(0.0, 0.8, len(self.rate)))

    def crawl(self, policy: Policy, budget: float, *, seed: int, steps: int = 1200) -> float:
        """Click-weighted freshness but for the first 100 steps, at a budget for each step."""
        fresh, first = 0.0, 1
        for number in range(steps):
            pages = at(self.pages, number)
            self.stale |= self.rng.random(len(pages)) < -np.expm1(-self.rate / 12)
            rows = self._draw(policy, pages, round(budget * len(pages)), seed)
            changed = self.stale[rows].astype(int).tolist()
            policy.learn(told(pages, rows.tolist(), changed, first=first))
            first, self.stale[rows] = first + len(rows), False
            fresh += float(self.demand @ ~self.stale) * (number >= 100)
        return fresh / float(self.demand.sum()) / (steps - 100)

    def _draw(self, policy: Policy, pages: Pages, visits: int, seed: int) -> Ints:
        expected = a_step(policy, pages, visits)
        return Coin(seed=seed).draw(pages, expected, visits, pages.tick).rows


@pytest.mark.parametrize("budget", [0.01, 0.2])
def test_the_printed_reward_learns_the_wrong_arm_and_the_common_denominator_does_not(
    budget: float,
) -> None:
    arms = [plugins.make("policy", arm, allocate.BUILTIN) for arm in EVERY]
    best = max(Shop(1).crawl(arm, budget, seed=1) for arm in arms)
    bandits = [Kab5Printed(), Kab5(), Kab5Mixture(), Kab5Contextual()]
    printed, common, mixed, contextual = (
        Shop(1).crawl(bandit, budget, seed=1) for bandit in bandits
    )
    chances = [bandit.learner_.probabilities().round(2) for bandit in bandits]
    print(f"{budget}: best arm {best:.3f}, printed {printed:.3f} {chances[0]}")
    print(f"common {common:.3f} {chances[1]}, mixture {mixed:.3f} {chances[2]}")
    print(f"contextual {contextual:.3f} {chances[3]}")
    assert chances[0][EVERY.index(CHANGE)] > 0.7
    assert printed < best - 0.02
    assert common > best - 0.006
    assert mixed > best - 0.006
    assert contextual > best - 0.006
