"""Every built-in policy under the laws, on whatever pages Hypothesis can think of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus import allocate, plugins
from salticus.allocate.base import Policy, Spaced
from salticus.allocate.explore import Explore
from salticus.allocate.limits import Limits, Pins, check_feasible
from salticus.checks.policy import check_answer, check_growth, check_hosts, check_nan
from salticus.clock import VirtualClock
from salticus.config import Budget
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Parts
from salticus.errors import Infeasible
from salticus.predict.gamma import Gamma, GammaSurvival
from salticus.predict.poisson import PoissonSurvival
from salticus.schedule.coin import Coin
from salticus.schedule.even import Even
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.testing import START, StillWorld, a_tick, blank_pages
from salticus.types import DAY, NEVER, Floats, Pages, Tick, instant

NAMES = sorted(allocate.BUILTIN)
_AMOUNTS = [0.0, 1e-9, 0.01, 0.3, 1.0, 1.0, 7.0, 500.0, 1e9]


def made(name: str) -> Callable[[], Policy]:
    make: Callable[[], Policy] = plugins.load("policy", name, allocate.BUILTIN)
    return make


def column(n: int) -> st.SearchStrategy[Floats]:
    """Numbers that span all scales, with many that are equal."""
    some = st.sampled_from(_AMOUNTS) | st.floats(1e-6, 1e4)
    return st.lists(some, min_size=n, max_size=n).map(lambda amounts: np.array(amounts))


@st.composite
def any_pages(draw: st.DrawFn, *, least: int = 0) -> Pages:
    """Pages of which all columns that a policy may read are drawn."""
    n = draw(st.integers(least, 25))
    days = draw(st.lists(st.sampled_from([0.0, 0.01, 1.0, 1.0, 30.0]), min_size=n, max_size=n))
    last = instant(START) - (np.array(days) * DAY.astype(np.int64)).astype("m8[us]")
    never = draw(st.sampled_from([0.0, 0.3, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    rates = draw(column(n))
    survival = draw(
        st.sampled_from([None, PoissonSurvival(rates), GammaSurvival(rates + 0.01, rates * 3 + 1)])
    )
    return replace(
        blank_pages(n, hosts=3),
        ids=np.cumsum(rng.integers(1, 9, n)),
        host=rng.integers(0, 3, n),
        merchant=rng.integers(-1, 3, n),
        category=rng.integers(-1, 3, n),
        last_visit=(last := np.where(rng.random(n) < never, NEVER, last)),
        last_answer=np.where(rng.random(n) < 0.5, last - 2 * DAY, last),
        demand=draw(column(n)),
        impressions=draw(column(n)),
        survival=survival,
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(pages=any_pages(), share=st.sampled_from([0.0, 0.01, 0.3, 0.5, 1.0, 2.0]))
def test_every_answer_is_lawful(name: str, pages: Pages, share: float) -> None:
    """In [0, 1], summing to the visits; permuted with the pages; alike for pages that are alike."""
    check_answer(made(name), pages, share * len(pages))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=6, deadline=None)
@given(pages=any_pages(), share=st.floats(0.0, 1.2))
def test_hosts_are_not_overfilled(name: str, pages: Pages, share: float) -> None:
    check_hosts(made(name), pages, share * len(pages))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, deadline=None)
@given(pages=any_pages(least=2))
def test_nan_is_rejected_by_name(name: str, pages: Pages) -> None:
    check_nan(made(name), pages)


# ------------------------------------------------------------------------------------ more visits


@pytest.mark.parametrize("name", [name for name in NAMES if name != "lambdacrawl_printed"])
@settings(max_examples=12, deadline=None)
@given(pages=any_pages(), fewer=st.floats(0.0, 1.0), more=st.floats(0.0, 1.0))
def test_more_visits_never_lower_a_share(
    name: str, pages: Pages, fewer: float, more: float
) -> None:
    """A lower price, a further place in the queue, a larger part of a pie: it holds for all.

    For bandits too, because the arm is drawn before the visits are counted.
    """
    few, many = sorted([fewer * len(pages), more * len(pages)])
    check_growth(made(name), pages, few, many)


def test_more_visits_may_lower_a_share_by_the_printed_form() -> None:
    """What its rates below 0 and above 1 leave or lack is scaled onto the other pages."""
    pages = replace(
        blank_pages(4),
        demand=np.array([0.2, 1.8, 30.4, 0.8]),
        survival=PoissonSurvival(np.array([0.6, 11.2, 6.1, 3.5])),
    )
    with pytest.raises(AssertionError, match="more visits"):
        check_growth(made("lambdacrawl_printed"), pages, 2.0, 3.0)


# -------------------------------------------------------------------------------------- the loop


class Windowed(StillWorld):
    """A still world in which every third page may only be visited from six to noon."""

    async def pages(self, tick: Tick) -> Pages:
        pages = await super().pages(tick)
        shut = (pages.ids % 3 == 0) & (not 6 <= tick.start.hour < 12)
        return replace(pages, open=~shut)


def crawl(world: StillWorld, policy: Policy, budget: float, *, explore: float, days: int) -> Loop:
    """Run the real loop, with two-hour ticks."""
    parts = Parts(
        ticks=Ticks(VirtualClock(START), timedelta(hours=2)),
        predictor=Gamma(),
        policy=policy,
        spacing=Coin() if isinstance(policy, Spaced) else Even(),
        ledger=Ledger(Budget.parse(budget)),
        planner=Planner(),
        proposers=(Limits(), Pins(), Explore(explore)),
    )
    loop = Loop(world, parts)
    asyncio.run(loop.run(START + timedelta(days=days)))
    return loop


def _spent(world: StillWorld, budget: float, days: int, *, exactly: bool) -> None:
    times = np.sort(world.times)
    before = np.searchsorted(times, times - DAY, "right")
    assert (np.arange(len(times)) - before).max() + 1 <= budget, "any 24 hours"
    if exactly:
        assert len(times) >= budget * days - budget / 12, "all is spent"


def _hosts_kept(world: StillWorld, pages: Pages) -> None:
    for rows in world.rows:
        load = np.bincount(pages.host[rows], minlength=3)
        assert np.all(load <= pages.capacity)
        assert len(np.unique(rows)) == len(rows), "no page twice in a tick"


def _limits_and_pins_kept(world: StillWorld, pages: Pages, days: int) -> None:
    start, hour = instant(START), DAY / 24
    for row in range(len(pages)):
        seen = np.sort(world.times_of(row))
        if row % 3 == 0:
            of_day = (seen - start) % DAY
            assert np.all((of_day >= 6 * hour) & (of_day < 12 * hour)), "outside of its hours"
        elif row % 5 == 1:
            gaps = np.diff(np.concatenate([[start], seen, [start + days * DAY]]))
            assert gaps.max() <= DAY, "beyond its maximum interval"
        elif row % 5 == 2:
            gaps = np.diff(seen)
            assert len(seen) >= 2 * days - 1
            assert np.all((gaps >= DAY / 2) & (gaps < DAY / 2 + 4 * hour)), "not as pinned"


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 999), explore=st.sampled_from([0.0, 0.1]))
def test_the_loop_keeps_every_promise_with_every_policy(
    name: str, seed: int, explore: float
) -> None:
    rng = np.random.default_rng(seed)
    n, days = 30, 3
    pages = replace(
        blank_pages(n, hosts=3),
        added=np.full(n, instant(START)),
        demand=rng.pareto(1.5, n),
        max_interval=np.where(np.arange(n) % 5 == 1, 1.0, np.inf),
        interval=np.where(np.arange(n) % 5 == 2, 0.5, np.nan),
        capacity=np.array([4.0, 3.0, np.inf]),
    )
    with pytest.raises(Infeasible) as refused:
        check_feasible(pages, 1e-6, a_tick())
    assert refused.value.needed is not None
    budget = 12.0 * int(np.ceil(refused.value.needed / 12) + 2)
    check_feasible(pages, budget, a_tick())
    world = Windowed(pages)
    policy = made(name)()
    crawl(world, policy, budget, explore=explore, days=days)
    _spent(world, budget, days, exactly=getattr(policy, "spends", True))
    _hosts_kept(world, pages)
    _limits_and_pins_kept(world, pages, days)
