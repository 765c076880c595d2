"""Models as predictors: curves through what a model says, and simulations that use them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.config import Budget
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import GONE
from salticus.lab.simulate import estimates
from salticus.lab.simulate.estimates import Estimators
from salticus.lab.simulate.learnt import Learnt
from salticus.lab.simulate.named import Estimates
from salticus.lab.simulate.run import Replay, run, teach
from salticus.lab.simulate.stage import SimulationSettings, Stage, set_stage
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.models.training.recipe import Recipe, TimeSplit
from salticus.models.training.run import ModelSpec, train_model
from salticus.predict.base import ask
from salticus.predict.mixed import gamma_through
from salticus.predict.rhythm import Rhythm
from salticus.predict.trust import Trust
from salticus.types import CHANGED, Outcomes, Pages, Tick

DAY = timedelta(days=1)
DEMAND = (("clicks", "click"), ("impressions", "impression"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small market, a model of its change hazards, and one that knows a single horizon."""
    folder = tmp_path_factory.mktemp("learnt")
    make_market(folder / "market", MarketSize(150, 40), seed=2)
    recipe = Recipe(
        edges=(24, 72), observe="0.5-4", split=TimeSplit(14 * DAY, 8 * DAY, 8 * DAY), every=DAY / 2,
        visits=False, examples=3000,
    )  # fmt: skip
    request = ModelSpec(model="trees", preset="visits", fitting={"trees": 10, "least": 20})
    train_model(Log(folder / "market"), recipe, request, folder / "hazard")
    train_model(Log(folder / "market"), replace(recipe, edges=(24,)), request, folder / "single")
    demand = replace(request, preset="full")
    for task in ("click", "impression"):
        train_model(Log(folder / "market"), replace(recipe, task=task), demand, folder / task)
    return folder


def stage_of(place: Path, chosen: str = "history") -> Stage:
    rules = SimulationSettings(
        tick=DAY / 4,
        history=20 * DAY,
        warmup=2 * DAY,
        days=4,
        estimates=Estimates.parse(chosen),
        runs=1,
    )
    return set_stage(Log(place / "market"), rules)


def taught(stage: Stage, estimators: Estimators, trust: float = 0.5) -> tuple[Pages, Any]:
    """The pages at the start of the crawl, and the curves of a predictor that knows the history."""
    world = Replay(stage.truth, stage.readers, [], seed=0)
    world.begin(stage.crawl)
    world.sync(stage.crawl - stage.rules.tick)
    teach(stage, world, estimators)
    inner = getattr(estimators.predictor, "predictor", estimators.predictor)
    assert isinstance(inner, Learnt)
    inner.trust_ = Trust(usual=trust)
    pages = world.there(Tick(0, stage.crawl, stage.crawl + stage.rules.tick))
    return pages, ask(estimators.predictor, pages, stage.crawl)


def mixed(place: Path, name: str = "hazard") -> Estimators:
    """A model beside history."""
    return Estimators(stage_of(place, f"{place / name}+history"))


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
    made = mixed(place)
    pages, curves = taught(made.stage, made, trust=0.0)
    assert isinstance(made.predictor, Rhythm)
    plain = Rhythm.survival(made.predictor, pages, made.stage.crawl)
    ages = np.full(len(pages), 1.0)
    assert np.array_equal(curves.unchanged(ages), plain.unchanged(ages))


@pytest.mark.parametrize(("name", "hours"), [("hazard", 72), ("single", 24)])
def test_the_forecast_counts(place: Path, name: str, hours: int) -> None:
    """With all trust the curve passes through the model's chance of a change by its last edge."""
    made = mixed(place, name)
    pages, curves = taught(made.stage, made, trust=1.0)
    rows = np.arange(len(pages))
    told = made.predictor.forecasts.hazards(rows, int(curves.now // 3_600_000_000))
    stays = -np.log1p(-told).sum(axis=1)
    start = np.full(len(rows), curves.now)
    far = made.predictor.week_.between(curves.row, start, start + hours * 3_600_000_000)
    still = np.exp(-curves.a * np.log1p(far / curves.b))
    np.testing.assert_allclose(still, np.exp(-stays), rtol=1e-4)
    np.testing.assert_allclose(curves.rates(), stays / (hours / 24), rtol=1e-4)


def test_what_was_learnt_outlasts_a_restart(place: Path) -> None:
    first, other = mixed(place), mixed(place)
    pages, curves = taught(first.stage, first)
    taught(other.stage, other)
    other.predictor.restore(first.predictor.state())
    again = ask(other.predictor, pages, first.stage.crawl)
    ages = np.full(len(pages), 2.0)
    assert np.array_equal(curves.unchanged(ages), again.unchanged(ages))


def answers(at: datetime, ids: Any) -> Outcomes:
    """Visits of these pages that found a change."""
    when = np.datetime64(at.replace(tzinfo=None), "us")
    since = when - np.timedelta64(6, "h")
    return Outcomes.known(page=ids, at=when, changed=CHANGED, since=since)


def test_news_of_the_hour_of_a_question_is_asked_about_later(place: Path) -> None:
    """As if there had been no question in between."""
    busy, calm = mixed(place), mixed(place)
    hour, crawl = timedelta(hours=1), busy.stage.crawl
    for made in (busy, calm):
        pages, _ = taught(made.stage, made, trust=1.0)
        for part in (made, made.predictor):
            part.learn(answers(crawl + 1.2 * hour, pages.ids[:9]))
        made.predictor.trust_ = Trust(usual=1.0)
    ask(busy.predictor, pages, crawl + 1.5 * hour)
    levels = [ask(made.predictor, pages, crawl + 2 * hour).rates()[:9] for made in (busy, calm)]
    np.testing.assert_allclose(levels[0], levels[1], rtol=1e-9)


@pytest.mark.parametrize("observe", ["own", "full"])
@pytest.mark.parametrize(
    "chosen", ["hazard", "hazard+history", "hazard+fitted", "single", "oracle", "frequency"]
)
def test_policies_crawl_by_estimates(place: Path, chosen: str, observe: str) -> None:
    known = chosen in ("oracle", "frequency")
    stage = stage_of(place, chosen if known else str(place / chosen))
    stage = replace(stage, rules=replace(stage.rules, observe=observe))
    for policy in ("leap", "lambdacrawl"):
        score = run(stage, policy, Budget(0.2, per_page=True))
        assert 0.5 < float(np.nanmean(score.column("clicks"))) <= 1.0
        assert score.visits_per_page_day == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize("observe", ["own", "full"])
@pytest.mark.parametrize("ending", ["", "+history"])
def test_policies_crawl_by_demand_of_models(place: Path, ending: str, observe: str) -> None:
    words = (f"{name}={place / task}{ending}" for name, task in DEMAND)
    stage = stage_of(place, ",".join(words))
    stage = replace(stage, rules=replace(stage.rules, observe=observe))
    for policy in ("demand_proportional", "impression_proportional"):
        score = run(stage, policy, Budget(0.2, per_page=True))
        assert 0.5 < float(np.nanmean(score.column("clicks"))) <= 1.0
        assert score.young[0] >= score.young[1] >= 0.0


def test_what_estimates_see_of_the_log_ends_yesterday(place: Path) -> None:
    """Whatever changes after a midnight, what is said of the pages then is the same."""
    found = []
    for end in (True, False):
        stage = stage_of(place, f"{place / 'hazard'}+history")
        now = stage.crawl + 2 * DAY
        late = stage.truth.at >= np.datetime64(now.replace(tzinfo=None), "us")
        if end:
            kept = np.flatnonzero(~late | (stage.truth.value < 0))
            columns = {name: getattr(stage.truth, name)[kept] for name in ("page", "at", "value")}
            stage = replace(stage, truth=replace(stage.truth, **columns))
        stage = replace(stage, rules=replace(stage.rules, observe="full"))
        made = Estimators(stage)
        pages, _ = taught(stage, made)
        for day in range(3):
            curves = ask(made.predictor, pages, stage.crawl + day * DAY)
        ages = np.full(len(pages), 1.5)
        found.append(curves.unchanged(ages))
    assert np.array_equal(*found)


def test_a_note_names_the_features_that_are_unknown(place: Path) -> None:
    stage = stage_of(place, f"clicks={place / 'click'}")
    notes = "; ".join(estimates.model_notes(stage))
    assert "the model of click looks at what is unknown here" in notes
    assert "price" in notes


def test_the_oracle_knows_the_mean(place: Path) -> None:
    stage = stage_of(place)
    truth, days = stage.truth, (stage.end - stage.crawl) / DAY
    rates = estimates.true_rates(stage)
    page = int(np.argmax(rates))
    later = truth.at[truth.page == page] >= np.datetime64(stage.crawl.replace(tzinfo=None), "us")
    assert rates[page] == pytest.approx(later.sum() / days, rel=0.01)


def test_the_oracle_counts_the_days_of_a_page_that_goes(place: Path) -> None:
    """Of a page that ends half-way, the changes of that half by its days."""
    stage = stage_of(place)
    start, half = (
        np.datetime64(when.replace(tzinfo=None), "us")
        for when in (stage.crawl, stage.crawl + (stage.end - stage.crawl) / 2)
    )
    truth, page = stage.truth, int(np.argmax(estimates.true_rates(stage)))
    kept = (truth.page != page) | (truth.at < half)
    columns = {"page": page, "at": half, "value": GONE}
    cut = {name: np.append(getattr(truth, name)[kept], end) for name, end in columns.items()}
    short = replace(stage, truth=replace(truth, **cut))
    changes = ((truth.page == page) & (truth.at >= start) & (truth.at < half)).sum()
    days = (stage.end - stage.crawl) / DAY / 2
    assert estimates.true_rates(short)[page] == pytest.approx(changes / days, rel=0.01)


def test_a_model_that_has_learnt_from_the_days_scored_is_named(place: Path) -> None:
    """The model knows the first 22 days."""
    late, early = stage_of(place, str(place / "hazard")), stage_of(place, str(place / "hazard"))
    early = replace(early, score=early.score - 2 * DAY)
    assert not estimates.model_notes(late)
    assert "it knows part of what it predicts" in estimates.model_notes(early)[0]
    assert not estimates.model_notes(stage_of(place))


def test_a_model_of_another_task_is_refused(place: Path) -> None:
    with pytest.raises(InputError, match="a model of change, but here one of click is needed"):
        Estimators(stage_of(place, f"clicks={place / 'hazard'}"))
