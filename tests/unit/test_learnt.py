"""Models as predictors: curves through what a model says, and simulations that use them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.config import Budget
from salticus.errors import InputError
from salticus.estimates.curve import gamma_through
from salticus.estimates.learnt import Learnt
from salticus.log.folder import Log
from salticus.predict.rhythm import Rhythm
from salticus.simulate import estimates
from salticus.simulate.run import Replay, run, teach
from salticus.simulate.stage import Rules, Stage, set_stage
from salticus.train.recipe import Recipe, Split
from salticus.train.run import Request, train_model
from salticus.types import Pages, Tick
from salticus.worlds.market import Size, make_market

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small market, a model of its change hazards, and one that knows a single horizon."""
    folder = tmp_path_factory.mktemp("learnt")
    make_market(folder / "market", Size(150, 40), seed=2)
    recipe = Recipe(
        edges=(24, 72), observe="0.5-4", split=Split(14 * DAY, 8 * DAY, 8 * DAY), every=DAY / 2,
        visits=False, examples=3000,
    )  # fmt: skip
    request = Request(model="trees", preset="visits", fitting={"trees": 10, "least": 20})
    train_model(Log(folder / "market"), recipe, request, folder / "hazard")
    train_model(Log(folder / "market"), replace(recipe, edges=(24,)), request, folder / "single")
    return folder


def stage_of(place: Path, chosen: str = "history") -> Stage:
    rules = Rules(tick=DAY / 4, history=20 * DAY, warmup=2 * DAY, days=4, estimates=chosen, runs=1)
    return set_stage(Log(place / "market"), rules)


def taught(stage: Stage, predictor: Any) -> tuple[Pages, Any]:
    """The pages at the start of the crawl, and the curves of a predictor that knows the history."""
    import asyncio

    world = Replay(stage.truth, stage.readers, [], seed=0)
    world.begin(stage.crawl)
    world.sync(stage.crawl - stage.rules.tick)
    teach(stage, world, predictor)
    tick = Tick(0, stage.crawl, stage.crawl + stage.rules.tick)
    pages = asyncio.run(world.pages(tick))
    return pages, predictor.survival(pages, stage.crawl)


def learnt(place: Path, stage: Stage, trust: float) -> Learnt:
    made = estimates.learnt(place / "hazard", stage.log, stage.truth)
    made.trust = trust
    return made


def test_a_curve_goes_through_both_points() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.1, 20, 50), rng.uniform(0.1, 50, 50)
    near, far = rng.uniform(0.1, 1, 50), rng.uniform(5, 14, 50)
    told = [(x, a * np.log1p(x / b)) for x in (near, far)]
    found = gamma_through(told[0], told[1])
    for x, stays in told:
        np.testing.assert_allclose(found[0] * np.log1p(x / found[1]), stays, rtol=1e-3)


def test_a_hazard_that_rises_keeps_the_far_point() -> None:
    one = np.ones(1)
    a, b = gamma_through((one, 0.001 * one), (14 * one, 2.0 * one))
    np.testing.assert_allclose(a * np.log1p(14 / b), 2.0)


def test_without_trust_in_the_model_it_is_the_rhythm(place: Path) -> None:
    stage = stage_of(place)
    made = learnt(place, stage, trust=0.0)
    pages, curves = taught(stage, made)
    plain = Rhythm.survival(made, pages, stage.crawl)
    ages = np.full(len(pages), 1.0)
    np.testing.assert_allclose(curves.unchanged(ages), plain.unchanged(ages), rtol=1e-3)


def test_the_models_word_counts(place: Path) -> None:
    """With all trust the curve passes through the model's chance of a change within 72 h."""
    stage = stage_of(place)
    made = learnt(place, stage, trust=1.0)
    pages, curves = taught(stage, made)
    hour = int(curves.now // 3_600_000_000)
    rows = np.arange(len(pages))
    inputs = made.past_.read(rows, np.full(len(rows), hour))
    chance = made.asked.model.probabilities(inputs, made.known.metadata)[:, -1]
    far = made.week_.between(curves.row, np.full(len(rows), curves.now),
                             np.full(len(rows), curves.now + 72 * 3_600_000_000))  # fmt: skip
    still = np.exp(-curves.a * np.log1p(far / curves.b))
    np.testing.assert_allclose(1 - still, chance, rtol=1e-4)
    np.testing.assert_allclose(curves.rates(), -np.log1p(-chance) / 3, rtol=1e-4)


def test_what_was_learnt_outlasts_a_restart(place: Path) -> None:
    stage = stage_of(place)
    first, other = learnt(place, stage, 0.5), learnt(place, stage, 0.5)
    pages, curves = taught(stage, first)
    other.restore(first.state())
    again = other.survival(pages, stage.crawl)
    ages = np.full(len(pages), 2.0)
    assert np.array_equal(curves.unchanged(ages), again.unchanged(ages))


@pytest.mark.parametrize("chosen", ["hazard", "oracle"])
def test_policies_crawl_by_estimates(place: Path, chosen: str) -> None:
    name = chosen if chosen == "oracle" else str(place / chosen)
    stage = stage_of(place, name)
    for policy in ("leap", "lambdacrawl"):
        score = run(stage, policy, Budget(0.2, per_page=True))
        assert 0.5 < float(np.nanmean(score.column("clicks"))) <= 1.0
        assert score.visits_per_page_day == pytest.approx(0.2, rel=0.1)


def test_the_oracle_knows_the_mean(place: Path) -> None:
    stage = stage_of(place)
    truth, days = stage.truth, (stage.end - stage.crawl) / DAY
    rates = estimates.true_rates(stage)
    page = int(np.argmax(rates))
    later = truth.at[truth.page == page] >= np.datetime64(stage.crawl.replace(tzinfo=None), "us")
    assert rates[page] == pytest.approx(later.sum() / days, rel=0.01)


def test_a_model_of_one_horizon_is_refused(place: Path) -> None:
    stage = stage_of(place)
    with pytest.raises(InputError, match="--hazard"):
        estimates.learnt(place / "single", stage.log, stage.truth)
