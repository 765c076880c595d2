"""Laws of simulation: theory is met, the future is hidden, the clairvoyant is near the optimum."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from salticus import allocate
from salticus.config import Budget
from salticus.exchange.truth import Truth
from salticus.lab.bench.replay import START, poisson_log
from salticus.lab.simulate.clairvoyant import bound
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import SimulationSettings, Stage, set_stage
from salticus.types import DAY, Outcomes, instant

_DAY = timedelta(days=1)


def stage_of(rates: np.ndarray, days: int, rules: SimulationSettings, seed: int = 0) -> Stage:
    with tempfile.TemporaryDirectory() as folder:
        return set_stage(poisson_log(Path(folder) / "log", rates, days, seed=seed), rules)


@settings(max_examples=8, deadline=None)
@given(
    change=st.floats(0.1, 2.0),
    ratio=st.floats(0.2, 4.0),
    spacing=st.sampled_from(["even", "coin"]),
    seed=st.integers(0, 1000),
)
def test_uniform_visits_of_poisson_pages_are_as_fresh_as_theory_says(
    change: float, ratio: float, spacing: str, seed: int
) -> None:
    """Even visits keep (ρ/Δ)(1 − e^(−Δ/ρ)) fresh, coins ρ/(ρ + Δ) (Cho and Garcia-Molina 2003).

    A tick is one step, so a visit may find a change that is up to a tick younger: freshness is too
    high by about half the changes of a tick, Δh/2.
    """
    visits = change * ratio
    tick = timedelta(days=1 / (25 * max(visits, change)))
    cycle = math.ceil(max(1 / visits, 1 / change))
    rules = SimulationSettings(
        start=START,
        tick=tick,
        history=timedelta(0),
        warmup=2 * cycle * _DAY,
        days=3 * cycle,
        spacing=spacing,
        predictor="naive",
        frozen=True,
        demand="uniform",
        seed=seed,
    )
    n = 1500
    score = run(
        stage_of(np.full(n, change), 5 * cycle, rules, seed),
        "uniform",
        Budget(visits, per_page=True),
    )
    even = visits / change * -math.expm1(-change / visits)
    theory = even if spacing == "even" else visits / (visits + change)
    noise = 4 * math.sqrt(theory * (1 - theory) / n)
    assert np.mean(score.ticks) == pytest.approx(theory, abs=noise + change * (tick / _DAY) / 2)
    assert score.visits_per_page_day == pytest.approx(visits, rel=0.02)


class Diary:
    """Which pages were visited when, and what was found."""

    def __init__(self) -> None:
        self.visits: list[tuple[int, np.datetime64, int]] = []

    def learn(self, outcomes: Outcomes) -> None:
        self.visits += list(
            zip(outcomes.page.tolist(), outcomes.at, outcomes.changed.tolist(), strict=True)
        )

    def before(self, when: np.datetime64) -> list[tuple[int, np.datetime64, int]]:
        return [visit for visit in self.visits if visit[1] < when]


def another_future(truth: Truth, when: np.datetime64) -> Truth:
    """The same world until `when`; after it, other pages change, to other values."""
    later = truth.at >= when
    page = np.where(later, len(truth) - 1 - truth.page, truth.page)
    return replace(truth, page=page, value=np.where(later, truth.value + 10_000, truth.value))


@pytest.mark.parametrize("spacing", ["even", "coin"])
@pytest.mark.parametrize("policy", [*allocate.BUILTIN, "clairvoyant"])
def test_no_policy_sees_the_future(policy: str, spacing: str) -> None:
    """Two worlds that part ways after nine days are crawled alike until then."""
    rates = np.random.default_rng(5).lognormal(-1, 1.5, 60)
    rules = SimulationSettings(
        start=START, tick=6 * timedelta(hours=1), history=5 * _DAY, warmup=_DAY, days=9,
        spacing=spacing,
    )  # fmt: skip
    stage = stage_of(rates, 15, rules)
    when = instant(START) + 9 * DAY
    diaries = Diary(), Diary()
    other = replace(stage, truth=another_future(stage.truth, when))
    for world, diary in zip((stage, other), diaries, strict=True):
        run(world, policy, Budget(0.3, per_page=True), [diary])
    first, second = diaries
    assert len(first.before(when)) > 5
    alike = first.before(when) == second.before(when)
    assert alike == (policy != "clairvoyant")
    assert first.visits != second.visits


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    visits=st.integers(1, 4),
    demand=st.sampled_from(["uniform", "zipf:1"]),
)
def test_greedy_clairvoyance_is_near_the_exact_optimum(seed: int, visits: int, demand: str) -> None:
    """The optimum assigns visits to values: greedy comes close, and the dual bound lies above."""
    rates = np.random.default_rng(seed).lognormal(-1, 1, 12)
    rules = SimulationSettings(
        start=START, tick=_DAY, history=_DAY, warmup=timedelta(0), days=25, demand=demand, seed=seed
    )
    stage = stage_of(rates, 26, rules, seed)
    score = run(stage, "clairvoyant", Budget(visits * 1.0, per_page=False))
    greedy = float(np.mean(score.clicks))
    best = optimum(stage, visits)
    assert greedy <= best + 1e-9 <= bound(stage, visits * 25) + 2e-9
    assert greedy >= 0.93 * best


def optimum(stage: Stage, visits: int) -> float:
    """The most clicks that any crawler of the stage can serve, by exact assignment."""
    ticks, truth = 25, stage.truth
    weights = stage.readers.known(stage.crawl, len(truth))[0]
    step = ((truth.at - instant(stage.crawl)) // DAY).astype(int)
    worth, free = [], 0.0
    for page in range(len(truth)):
        starts = np.append(step[truth.page == page], ticks)
        for start, end in zip(starts[:-1], starts[1:], strict=True):
            if start < 0:
                free += weights[page] * max(0, end)
            else:
                t = np.arange(ticks)
                worth.append(np.where((t >= start) & (t < end), weights[page] * (end - t), 0.0))
    slots = np.repeat(np.array(worth).reshape(-1, ticks), visits, axis=1)
    rows, columns = linear_sum_assignment(slots, maximize=True)
    return float((free + slots[rows, columns].sum()) / (weights.sum() * ticks))


def test_the_clairvoyant_is_above_every_policy() -> None:
    rates = np.random.default_rng(1).lognormal(-1.5, 1.5, 300)
    rules = SimulationSettings(start=START, tick=_DAY, history=20 * _DAY, warmup=3 * _DAY, days=10)
    stage = stage_of(rates, 33, rules)
    for each in (0.05, 0.2, 0.5):
        budget = Budget(each, per_page=True)
        best = np.mean(run(stage, "clairvoyant", budget).clicks)
        assert best <= bound(stage, each * 300 * 15) + 1e-9
        for policy in allocate.BUILTIN:
            assert np.mean(run(stage, policy, budget).clicks) < best, policy


def test_the_same_seed_gives_the_same_score() -> None:
    rates = np.full(200, 0.3)
    rules = SimulationSettings(start=START, history=_DAY, warmup=_DAY, days=3, spacing="coin")
    scores = [
        run(stage_of(rates, 5, replace(rules, seed=seed)), "uniform", Budget(0.4, per_page=True))
        for seed in (1, 1, 2)
    ]
    figures = [(s.clicks, s.midnight, s.visits, s.caught) for s in scores]
    assert figures[0] == figures[1] != figures[2]
