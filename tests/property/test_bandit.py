"""Laws of bandits: of the learners for any rewards, of the policies for any course of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from salticus import allocate, plugins
from salticus.allocate.bandit.learners import Exp3, Exp3Anytime, Exp3Ix, Exp3Plus, Hedge, Learner
from salticus.allocate.bandit.mixture import Contextual
from salticus.allocate.bandit.policy import Bandit, Stretch
from salticus.checks.policy import check_policy
from salticus.checks.samples import some_outcomes, some_pages
from salticus.testing import a_step, a_tick
from salticus.types import Floats, Outcomes, Pages
from salticus.types.state import pack, unpack

KAB = [name for name in allocate.BUILTIN if name.startswith("kab")]
HARD = [name for name in KAB if name.startswith("kab5")]
LEARNERS: list[Callable[[int], Learner]] = [Exp3, Exp3Anytime, Exp3Ix, Exp3Plus]

rewards = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0))
courses = st.lists(st.tuples(st.integers(0, 3), rewards), max_size=60)


def make(name: str) -> Bandit:
    bandit: Bandit = plugins.make("policy", name, allocate.BUILTIN, seed=7)
    return bandit


# ------------------------------------------------------------------------------------- learners


@pytest.mark.parametrize("learner", LEARNERS)
@given(course=courses)
def test_probabilities_are_probabilities(learner: Callable[[int], Learner], course: list) -> None:
    bandit = learner(4)
    assert bandit.probabilities() == pytest.approx(np.full(4, 0.25))
    for arm, reward in course:
        bandit.update(arm, reward)
        chances = bandit.probabilities()
        assert chances.sum() == pytest.approx(1.0, abs=1e-12)
        assert np.all(chances > 0)
        if isinstance(bandit, Exp3):
            assert np.all(chances >= bandit.gamma / 4 * (1 - 1e-12))


@given(course=courses, arm=st.integers(0, 3), reward=st.floats(0.01, 1.0))
def test_a_reward_never_lowers_the_chance_of_its_arm(course: list, arm: int, reward: float) -> None:
    bandit = Exp3(4)
    for other, earned in course:
        bandit.update(other, earned)
    before = bandit.probabilities()
    bandit.update(arm, reward)
    after = bandit.probabilities()
    assert after[arm] > before[arm]
    assert np.all(np.delete(after - before, arm) <= 1e-15)


@pytest.mark.parametrize("learner", LEARNERS)
@given(course=courses, later=courses)
def test_a_restored_learner_goes_on_alike(
    learner: Callable[[int], Learner], course: list, later: list
) -> None:
    old, new = learner(4), learner(4)
    for arm, reward in course:
        old.update(arm, reward)
    new.restore(old.state())
    for arm, reward in later:
        old.update(arm, reward)
        new.update(arm, reward)
    assert new.probabilities().tolist() == old.probabilities().tolist()


@pytest.mark.parametrize("learner", LEARNERS)
def test_no_number_of_rewards_overflows(learner: Callable[[int], Learner]) -> None:
    """After states that a million rewards of 1 come nowhere near."""
    bandit = learner(5)
    for _ in range(100):
        for _ in range(100):
            bandit.update(2, 1.0)
        state = bandit.state()
        bandit.restore({name: 100.0 * column for name, column in state.items()})
        bandit.update(0, 0.0)
    chances = bandit.probabilities()
    assert np.all(np.isfinite(chances))
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    assert chances[2] == pytest.approx(chances.max())
    assert chances[2] > 2 * chances[0]


def test_log_weights_grow_no_faster_than_one_a_step() -> None:
    bandit = Exp3(5)
    for step in range(1, 3000):
        arm = step % 5
        low = bandit.log_weights_ - bandit.log_weights_[arm]
        bandit.update(arm, 1.0)
        raised = (bandit.log_weights_ - bandit.log_weights_[arm]) - low
        assert np.all(np.delete(-raised, arm) <= 1.0 + 1e-9)
        assert bandit.log_weights_.max() == 0.0


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=400))
def test_rewards_are_stretched_by_what_was_earned_of_late(earned: list[float]) -> None:
    stretch = Stretch()
    for reward in earned:
        factor = stretch.factor(reward)
        assert factor >= 1.0 - 1e-12
    assert len(stretch.recent_) <= 256
    assert np.all(stretch.recent_ > 0)


gained = arrays(np.float64, (3, 2), elements=st.floats(-1e6, 1e6))


def taught(course: list[Floats]) -> Hedge:
    hedge = Hedge(3, 2)
    for gains in course:
        hedge.learn(gains)
    return hedge


@example([np.full((3, 2), 3.83214961e-164)])  # whose square is hardly a number
@given(st.lists(gained, max_size=20))
def test_hedge_gives_each_class_probabilities(course: list[Floats]) -> None:
    weights = taught(course).of_classes()
    assert weights.sum(axis=0) == pytest.approx(np.ones(2), abs=1e-12)
    assert np.all(weights >= 0.1 / 3 * (1 - 1e-12))
    assert len(course) or weights == pytest.approx(np.full((3, 2), 1 / 3))


@given(course=st.lists(gained, max_size=20), scale=st.floats(1e-3, 1e3))
def test_hedge_knows_no_scale(course: list[Floats], scale: float) -> None:
    course = [np.where(np.abs(gains) < 1e-100, 0.0, gains) for gains in course]  # squares vanish
    weights = taught([scale * gains for gains in course]).of_classes()
    assert weights == pytest.approx(taught(course).of_classes(), abs=1e-6)


def test_an_arm_that_gains_alone_rises_in_its_class_most() -> None:
    hedge = Hedge(3, 2)
    hedge.learn(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    weights = hedge.of_classes()
    assert weights[0, 0] > weights[0, 1] > 1 / 3  # what one class teaches is a start for the other


# -------------------------------------------------------------------------------------- policies


@pytest.mark.parametrize("name", [*KAB, "split"])
def test_every_bandit_obeys_the_laws_of_policies(name: str) -> None:
    check_policy(lambda: make(name), seeds=2)


def visits(pages: Pages, tick: int) -> Outcomes:
    """Every kind of end, numbered as the visits of that tick."""
    outcomes = some_outcomes(pages, seed=tick)
    length = np.timedelta64(2, "h")
    return replace(
        outcomes,
        visit=outcomes.visit + tick * len(pages),
        at=outcomes.at + tick * length,
        purpose=np.where(outcomes.visit % 5 == 4, 1, 0).astype(np.int8),
    )


@pytest.mark.parametrize("name", HARD)
@settings(max_examples=15, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 40), max_size=6),
    restart=st.integers(0, 7),
    seed=st.integers(0, 99),
)
def test_batches_and_restarts_change_nothing(
    name: str, cuts: list[int], restart: int, seed: int
) -> None:
    """However a step's outcomes are cut up, in the middle of a restart too, all goes on alike."""
    pages = some_pages(40, seed=seed)
    whole, cut = make(name), make(name)
    for tick in range(8):
        now = replace(pages, tick=a_tick(tick))
        assert np.array_equal(a_step(whole, now, 6.0), a_step(cut, now, 6.0))
        outcomes = visits(pages, tick)
        whole.learn(outcomes)
        for number, part in enumerate(np.split(np.arange(40), sorted(cuts))):
            cut.learn(outcomes.take(part))
            if tick == restart and number == len(cuts) // 2:
                old, cut = cut, make(name)
                cut.restore(unpack(pack({"policy": old.state()}))["policy"])
    told = whole.learner_.probabilities()
    assert cut.learner_.probabilities().tolist() == told.tolist()
    assert pack({"policy": whole.state()}) != pack({"policy": make(name).state()}), "unlearnt"


@pytest.mark.parametrize("name", ["kab5", "kab5_printed", "kab5_mixture", "kab5_contextual"])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 99))
def test_the_order_of_pages_changes_nothing(name: str, seed: int) -> None:
    pages = some_pages(40, seed=seed)
    order = np.random.default_rng(seed).permutation(40)
    plain, moved = make(name), make(name)
    for tick in range(5):
        now = replace(pages, tick=a_tick(tick))
        expected = a_step(plain, now, 6.0)
        assert a_step(moved, now.take(order), 6.0) == pytest.approx(expected[order], abs=1e-9)
        for policy in (plain, moved):
            policy.learn(visits(pages, tick))


@pytest.mark.parametrize("name", HARD)
def test_the_history_has_every_step_with_the_chances_of_its_draw(name: str) -> None:
    policy, pages = make(name), some_pages(40, seed=3)
    told = []
    for tick in range(6):
        now = replace(pages, tick=a_tick(tick))
        a_step(policy, now, 6.0)
        told.append(policy.learner_.probabilities())
        if tick != 2:  # a step that teaches nothing is a step
            policy.learn(visits(pages, tick))
    past = policy.history_
    assert past.chances == pytest.approx(np.array(told))
    assert np.isnan(past.reward).tolist() == [False, False, True, False, False, True]
    assert past.start.tolist() == [
        int(np.datetime64(a_tick(n).start.replace(tzinfo=None), "us").astype(int)) for n in range(6)
    ]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), visits_=st.floats(0.0, 45.0))
def test_the_budget_holds_whatever_the_classes_have_learnt(seed: int, visits_: float) -> None:
    policy, rng = make("kab5_contextual"), np.random.default_rng(seed)
    assert isinstance(policy, Contextual)
    for _ in range(5):
        policy.hedge_.learn(rng.normal(0, 1, (5, 9)) * rng.lognormal(0, 3, 9))
    expected = a_step(policy, some_pages(40, seed=seed), visits_)
    assert expected.sum() == pytest.approx(min(visits_, 40.0))
    assert expected.min() >= 0.0
    assert expected.max() <= 1.0 + 1e-12
    assert policy.learner_.probabilities().sum() == pytest.approx(1.0)
