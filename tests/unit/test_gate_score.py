"""What a click is scored by: how stale its copy is, or how likely its page soon changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from salticus.allocate.gate.uniform import UniformGate
from salticus.allocate.insta import Insta
from salticus.cli import app
from salticus.clock import SystemClock
from salticus.config import Config, Desk, Share, parse
from salticus.config.units import ClickScore
from salticus.crawl.parts import make_parts
from salticus.errors import ConfigError
from salticus.exchange.folder import Log
from salticus.lab.simulate.contest import stages_of
from salticus.lab.simulate.forecasts import CrawlForecasts, KnownPages, LogFeatures, forecasts_of
from salticus.lab.simulate.gates import GateContest, groups_of, replay_requests
from salticus.lab.simulate.learnt import SoonChances
from salticus.lab.simulate.named import Estimates
from salticus.lab.simulate.stage import InstaSettings, SimulationSettings
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.models.file import load_model
from salticus.models.training.recipe import Recipe, TimeSplit
from salticus.models.training.run import ModelSpec, train_model
from salticus.predict.base import ask
from salticus.predict.poisson import PoissonSurvival
from salticus.predict.rhythm import Rhythm
from salticus.testing import START, blank_pages
from salticus.types import (
    CHANGED,
    UNCHANGED,
    Floats,
    Ints,
    Outcomes,
    Survival,
    changing,
    instant,
)

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NOW = instant(START)
SIX = 6 * HOUR


# ----------------------------------------------------------------------------------- the formula


@given(st.floats(0, 50), st.floats(0, 3000), st.floats(0.01, 30))
def test_under_a_constant_rate_the_age_does_not_matter(
    rate: float, age: float, days: float
) -> None:
    last = np.array([NOW - np.timedelta64(int(age * 86_400_000), "ms"), np.datetime64("NaT")])
    chance = changing(PoissonSurvival(np.full(2, rate)), last, NOW, days)
    if rate * age < 15:  # beyond, S has lost digits, and beyond all digits the page is sure
        np.testing.assert_allclose(chance[0], -np.expm1(-rate * days), atol=1e-8)
    assert 0.0 <= chance[0] <= 1.0
    np.testing.assert_allclose(chance[1], -np.expm1(-rate * days), atol=1e-12)


class Falling:
    """S(u) = 1/(1 + u): the longer nothing came, the less will come."""

    def unchanged(self, ages: Floats) -> Floats:
        return np.asarray(1.0 / (1.0 + ages))

    def integral(self, ages: Floats) -> Floats:
        return np.log1p(ages)

    def rates(self) -> Floats:
        return np.ones(1)

    def take(self, rows: Any) -> Survival:
        return self


@given(st.integers(0, 1000), st.floats(0.01, 30))
def test_it_is_the_conditional_chance(age: int, days: float) -> None:
    chance = changing(Falling(), np.array([NOW - np.timedelta64(age, "D")]), NOW, days)
    np.testing.assert_allclose(chance, days / (1.0 + age + days))


def test_hours_of_the_week_count_from_the_click_on() -> None:
    """A curve that knows its week is asked about the hours after the click."""
    pages, rhythm = blank_pages(1), Rhythm()
    at = NOW - np.timedelta64(28, "D") + np.arange(28) * np.timedelta64(1, "D")
    for k in range(1, 28):  # changes between midnight and one o'clock, nowhere else
        for hour, changed in ((1, CHANGED), (24, UNCHANGED)):
            when = at[k] + np.timedelta64(hour, "h")
            since = when - np.timedelta64(1 if hour == 1 else 23, "h")
            rhythm.learn(Outcomes.known(page=pages.ids, at=when, changed=changed, since=since))
    curve = ask(rhythm, pages, START)
    last = np.array([NOW - np.timedelta64(12, "h")])
    night, noon = (changing(curve, last, NOW + np.timedelta64(h, "h"), 0.25)[0] for h in (-2, 8))
    assert 0.0 <= noon < night <= 1.0


# ---------------------------------------------------------------------------------------- the gate


def scores(horizon: timedelta | None) -> Floats:
    insta = Insta(UniformGate(share=1.0), share=1.0, horizon=horizon)
    last = NOW - np.arange(1, 5) * np.timedelta64(1, "D")
    pages = blank_pages(4).answered(last)
    insta.open(replace(pages, survival=PoissonSurvival(np.full(4, 0.5))), np.full(4, NOW))
    return np.array([request.score for request in insta.ask(pages.ids, NOW)[0]])


def test_a_click_is_scored_by_what_has_come_or_by_what_will() -> None:
    assert np.all(np.diff(scores(None)) > 0), "older copies are staler"
    np.testing.assert_allclose(scores(SIX), -np.expm1(-0.125))


def test_without_curves_every_click_is_worth_the_same() -> None:
    insta = Insta(UniformGate(share=1.0), share=1.0, horizon=SIX)
    insta.open(blank_pages(3), np.full(3, NOW))
    assert [request.score for request in insta.ask(np.arange(3), NOW)[0]] == [1.0] * 3


def test_the_settings_choose_the_score() -> None:
    read = parse(
        {"predictor": "gamma", "desk": {"score": "6h", "listen": "127.0.0.1:0", "insta": "5%"}}
    )
    assert make_parts(read, SystemClock()).insta.horizon == SIX
    usual = Config(predictor="gamma", desk=Desk(listen="127.0.0.1:0", insta=Share(0.1)))
    assert make_parts(usual, SystemClock()).insta.horizon is None
    for wrong in ("soon", "0h", "-6h"):
        with pytest.raises(ConfigError, match="write stale, or a time like 6h"):
            parse({"budget": "10%", "desk": {"score": wrong}})
    assert ClickScore.parse("90m").horizon == 1.5 * HOUR


class Edges:
    """Forecasts whose hazard is 1 − e^(−rate · hours) in every stretch; it counts questions."""

    def __init__(self, *edges: int) -> None:
        self.edges = edges
        self.asked: list[tuple[list[int], int]] = []

    def hazards(self, rows: Ints, hour: int) -> Floats:
        self.asked.append((rows.tolist(), hour))
        return np.tile(-np.expm1(-np.diff(self.edges, prepend=0) / 10.0), (len(rows), 1))


@pytest.mark.parametrize("edges", [(6,), (1, 6, 24), (24,), (3,), (2, 24)])
def test_the_edge_that_fits_tells_of_the_horizon(edges: tuple[int, ...]) -> None:
    found = SoonChances(Edges(*edges), 5).within(np.array([1, 3]), 100, 6.0)
    np.testing.assert_allclose(found, -np.expm1(-0.6))


def test_a_model_is_asked_once_an_hour_about_pages_that_are_clicked() -> None:
    edges = Edges(6)
    soon = SoonChances(edges, 9)
    for row, hour in ((4, 7), (4, 7), (2, 7), (4, 8), (2, 8)):
        soon.within(np.array([row]), hour, 6.0)
    assert edges.asked == [([4], 7), ([2], 7), ([2, 4], 8)]


# ---------------------------------------------------------------------------------------- a market


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small market, and a model of changes within 6 h that has held out a quarter of it."""
    folder = tmp_path_factory.mktemp("score")
    make_market(folder / "market", MarketSize(120, 34), seed=3, preset="han2019")
    recipe = Recipe(
        observe="partial", split=TimeSplit(20 * DAY, 2 * DAY, 4 * DAY), every=12 * HOUR,
        visits=False, examples=3000,
    )  # fmt: skip
    trees = ModelSpec("trees", preset="visits", fitting={"trees": 8, "least": 20})
    train_model(
        Log(folder / "market"), recipe, replace(trees, examples=folder / "ex"), folder / "trees"
    )
    train_model(Log(folder / "market"), recipe, ModelSpec("frequency"), folder / "frequency")
    return folder


def rules(place: Path, change: str, observe: str = "own") -> SimulationSettings:
    word = change.replace("MODEL", str(place / "trees"))
    return SimulationSettings(
        tick=6 * HOUR, history=20 * DAY, warmup=2 * DAY, days=2, observe=observe, copies="fresh",
        estimates=Estimates(change=word),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "observe"),
    [
        ("frequency", "own"),
        ("gamma", "logged"),
        ("oracle", "own"),
        ("MODEL", "own"),
        ("MODEL", "partial"),
        ("MODEL", "logged"),
        ("MODEL", "full"),
        ("MODEL+history", "partial"),
    ],
)
def test_any_estimate_can_score_clicks(place: Path, change: str, observe: str) -> None:
    contest = GateContest([0.3], ["instacrawl"], SIX, period=DAY)
    report = replay_requests(Log(place / "market"), rules(place, change, observe), contest)
    (row,) = report["rows"]
    assert report["score"] == "6h"
    assert abs(row["resource"] - 0.3) < 0.06
    groups = {each["group"]: each for each in row["groups"]}
    assert list(groups) == (["all", "seen", "unseen"] if "MODEL" in change else ["all"])
    assert groups["all"]["clicks"] == row["requests"]
    assert groups["all"]["low"] <= groups["all"]["freshness"] <= groups["all"]["high"]
    if len(groups) > 1:
        assert groups["seen"]["clicks"] + groups["unseen"]["clicks"] == row["requests"]


def test_the_unseen_are_those_that_training_held_out(place: Path) -> None:
    stage = stages_of(Log(place / "market"), rules(place, "MODEL"), lambda step: None)[0]
    table = pl.read_parquet(place / "ex" / "pages.parquet")
    seen = dict(zip(table["page_id"].cast(pl.String), table["seen"], strict=True))
    told = groups_of(stage)
    names = [str(name) for name in stage.truth.names]
    assert told["seen"].tolist() == [seen[name] for name in names]
    assert 0 < np.count_nonzero(told["unseen"]) < len(names)


def test_forecasts_of_the_log_are_those_of_the_hour_of_the_click(place: Path) -> None:
    """Asked beforehand about every click, or as time goes on: the same."""
    insta = InstaSettings(1.0, horizon=SIX)
    asked = replace(rules(place, "MODEL", "logged"), insta=insta)
    stage = stages_of(Log(place / "market"), asked, lambda step: None)[0]
    told = forecasts_of(stage, place / "trees")
    known, saved = KnownPages.of(stage.log, stage.truth), load_model(place / "trees")
    plain = CrawlForecasts(saved, LogFeatures(stage, known, (6,), 0))
    keys = told.clicked.keys[:40]  # type: ignore[attr-defined]
    for key in keys.tolist():
        hour, row = divmod(key, len(known.ids))
        one = np.array([row])
        np.testing.assert_allclose(told.hazards(one, hour), plain.hazards(one, hour), rtol=1e-5)


def test_a_gate_that_is_the_uniform_one_saves_nothing(place: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from salticus.allocate.gate.uniform import UniformGate\nclass Mine(UniformGate): pass\n"
    )
    gates = ["uniform", f"{tmp_path / 'mine.py'}:Mine"]
    contest = GateContest([0.0, 0.2, 0.5, 1.0], gates, period=DAY)
    found = replay_requests(Log(place / "market"), rules(place, "MODEL"), contest)["savings"]
    saving = {(row["group"], row["at_budget"]): row["saving"] for row in found}
    assert {group for group, _ in saving} == {"all", "seen", "unseen"}
    assert saving["all", "0.2"] == pytest.approx(0.0, abs=1e-9)
    assert all(value is None or value > -1e-9 for value in saving.values())


def test_clicks_beside_a_policy_may_be_scored_so_too(place: Path) -> None:
    words = ["simulate", str(place / "market"), "--policy", "uniform", "--budget", "100%"]
    words += ["--tick", "6h", "--history", "20d", "--warmup", "1d", "--days", "1"]
    words += ["--estimates", str(place / "trees"), "--observe", "partial"]
    told = CliRunner().invoke(app, [*words, "--insta", "20%", "--score", "6h"])
    assert told.exit_code == 0, told.output
    alone = CliRunner().invoke(app, [*words, "--score", "6h"])
    assert alone.exit_code == 2
    assert "--insta or --requests" in alone.output
