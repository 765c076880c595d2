"""What people see of a policy: its description, its habits, and where its budget went."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from salticus.allocate import BUILTIN, DISCOVERY
from salticus.charts.freshness import write_contest
from salticus.charts.sheet import checked
from salticus.charts.spending import habits_chart, label, margin, write_habits
from salticus.cli import app
from salticus.config import Budget
from salticus.errors import ConfigError, PluginError
from salticus.exchange.folder import Log
from salticus.lab.bench.replay import poisson_log
from salticus.lab.simulate import SimulationSettings, simulate
from salticus.lab.simulate.contest import COMPANY, in_company, spacing_of
from salticus.lab.simulate.referee import Referee
from salticus.lab.simulate.run import run
from salticus.lab.simulate.spending import (
    DEMANDS,
    LOOKED_AT,
    RATES,
    Habit,
    Spending,
    habits,
    spending,
    together,
)
from salticus.lab.simulate.stage import Stage, set_stage
from salticus.views.schedulers import policy

DAY = timedelta(days=1)
RULES = SimulationSettings(tick=DAY, history=5 * DAY, warmup=5 * DAY, days=20, runs=2)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """A hundred pages that change never, now and then, or daily."""
    rates = np.repeat([0.0, 0.05, 0.2, 2.0], 25)
    return poisson_log(tmp_path_factory.mktemp("logs") / "poisson", rates, days=31)


# ------------------------------------------------------------------------------------ in words


@pytest.mark.parametrize("name", BUILTIN | DISCOVERY)
def test_every_policy_says_what_it_does_in_a_sentence(name: str) -> None:
    about = policy(name)
    assert about.where == (BUILTIN | DISCOVERY)[name]
    assert about.summary.endswith("."), "the first line of the docstring is a whole sentence"
    assert ">>>" not in about.text


def test_a_policy_is_found_under_both_spellings_and_unknown_ones_are_named() -> None:
    assert policy("round-robin") == policy("round_robin")
    with pytest.raises(PluginError, match="no policy is called 'nosuch'; known: bfs, change_prop"):
        policy("nosuch")


def test_the_command_lists_describes_and_draws(tmp_path: Path) -> None:
    listed = CliRunner().invoke(app, ["policies", "--json"])
    assert [one["name"] for one in json.loads(listed.output)] == list(BUILTIN | DISCOVERY)
    shown = CliRunner().invoke(app, ["policies", "uniform"])
    assert "Every page gets the same share of the visits." in shown.output
    bad = CliRunner().invoke(app, ["policies", "--plot", str(tmp_path / "x.svg")])
    assert isinstance(bad.exception, ConfigError)
    wrong = CliRunner().invoke(app, ["policies", "uniform", "--plot", str(tmp_path / "x.pdf")])
    assert isinstance(wrong.exception, ConfigError)


# -------------------------------------------------------------------------------------- habits


def of(found: list[Habit], demand: float) -> list[float]:
    return [habit.visits for habit in found if habit.demand == demand]


def test_habits_are_those_of_the_policy() -> None:
    few: dict[str, Any] = {"settle": 20, "days": 40, "crowd": 200}
    assert {round(habit.visits, 2) for habit in habits("uniform", **few)} == {0.1}
    by_change = habits("change_proportional", **few)
    assert habits("change_proportional", **few) == by_change, "law: always the same"
    for demand in LOOKED_AT:
        slow, *_, fast = of(by_change, demand)
        assert slow < 0.1 * fast
    by_demand = habits("demand_proportional", **few)
    low, mean, high = (float(np.mean(of(by_demand, demand))) for demand in LOOKED_AT)
    assert (low / mean, mean / high) == pytest.approx((0.1, 0.1), rel=0.2)


@pytest.mark.parametrize("suffix", [".html", ".svg", ".png"])
def test_habits_are_drawn_by_the_suffix(tmp_path: Path, suffix: str) -> None:
    some = [{"rate": r, "demand": d, "visits": r * d} for d in LOOKED_AT for r in (0.0, 0.1, 1.0)][
        1:
    ]
    some = [{**one, "rate": one["rate"] or 0.01} for one in some]
    path = tmp_path / f"plot{suffix}"
    write_habits({"name": "uniform", "summary": "All alike."}, some, path)
    begins = {".html": b"<!DOCTYPE", ".svg": b"<svg", ".png": b"\x89PNG"}
    assert path.read_bytes().startswith(begins[suffix])
    assert checked(path) == path
    with pytest.raises(ConfigError, match=r"ends in \.html, \.svg, \.png"):
        checked(tmp_path / "plot.pdf")


def test_kinds_of_pages_without_visits_are_marked_at_the_bottom() -> None:
    rows = [
        {"rate": 0.1, "demand": 1.0, "visits": 0.02},
        {"rate": 1.0, "demand": 1.0, "visits": 0.0},
    ]
    layers = habits_chart(rows).to_dict()["layer"]
    lines, dots, marks = (layer["data"]["values"] for layer in layers)
    assert [one["rate"] for one in lines] == [one["rate"] for one in dots] == [0.1]
    assert [(one["rate"], one["visits"]) for one in marks] == [(1.0, 0.001)]


# -------------------------------------------------------------------------- where the budget goes


def stage_of(log: Log, **rules: Any) -> Stage:
    return set_stage(log, replace(RULES, **rules))


def test_the_referee_counts_the_visits_of_every_page(log: Log) -> None:
    stage = stage_of(log)
    made: list[np.ndarray[Any, Any]] = []

    class Watcher:
        def learn(self, outcomes: Any) -> None:
            late = outcomes.at >= np.datetime64(stage.score.replace(tzinfo=None), "us")
            made.append(outcomes.page[late])

    score = run(stage, "demand_proportional", Budget(0.3, per_page=True), [Watcher()])
    counts = np.bincount(np.concatenate(made), minlength=len(stage.truth))
    assert np.array_equal(score.visited, counts[: len(score.visited)])
    assert score.visited.sum() == score.visits == 600
    assert isinstance(Referee(stage.readers, stage.score).score.visited, np.ndarray)


def test_the_interval_of_even_visits_is_that_of_the_budget(log: Log) -> None:
    score = run(stage_of(log, days=18), "uniform", Budget(0.25, per_page=True))
    assert score.gap == pytest.approx(4.0, rel=0.02)


def test_spending_sorts_pages_by_what_they_did(log: Log) -> None:
    stage = stage_of(log)
    visited = np.arange(len(stage.truth))
    found = spending(stage, visited)
    assert found.pages.sum() == 100
    assert found.visits.sum() == visited.sum()
    assert found.page_days.sum() == 100 * 20
    assert found.pages[0].sum() >= 25, "those that never change are in the first row"
    assert found.pages[RATES.index(1.0) :].sum() == 25, "those of two changes a day"
    assert found.pages[RATES.index(10.0) :].sum() == 0


def test_a_birth_is_no_change(log: Log) -> None:
    stage = stage_of(log)
    late = stage.truth.born.copy()
    late[0] = np.datetime64(stage.score.replace(tzinfo=None), "us") + np.timedelta64(10, "D")
    at = stage.truth.at.copy()
    first = int(np.flatnonzero(stage.truth.page == 0)[0])
    at[first] = late[0]
    order = np.argsort(at, kind="stable")
    truth = replace(stage.truth, born=late, at=at[order], page=stage.truth.page[order])
    found = spending(replace(stage, truth=truth), np.zeros(0, dtype=np.int64))
    assert found.page_days.sum() == pytest.approx(99 * 20 + 10)
    assert found.pages[0].sum() == spending(stage, np.zeros(0, dtype=np.int64)).pages[0].sum()


FIELD = st.tuples(st.integers(0, len(RATES) - 1), st.integers(0, len(DEMANDS) - 1))


@given(st.lists(st.tuples(FIELD, st.integers(1, 9), st.integers(0, 50)), min_size=1, max_size=30))
def test_margins_keep_the_sums(rows: list[tuple[tuple[int, int], int, int]]) -> None:
    pages, visits = np.zeros((2, len(RATES), len(DEMANDS)))
    for where, n, v in rows:
        pages[where] += n
        visits[where] += v
    entry = {"policy": "p", "cells": Spending(pages, 7.0 * pages, visits).cells()}
    for name in ("rate", "demand"):
        sums = margin(entry, name)
        assert sum(one["pages"] for one in sums) == pages.sum()
        assert sum(one["visits"] for one in sums) == visits.sum()
        assert sum(one["share"] for one in sums) == pytest.approx(float(visits.sum() > 0))
        assert [one[name] for one in sums] == sorted(one[name] for one in sums)
    twice = together([Spending(pages, 7.0 * pages, visits)] * 2)
    assert twice.cells() == entry["cells"], "law: the mean of equals is the same"


def test_bins_have_names() -> None:
    assert label(0.0, 0.0) == "none"
    assert label(0.1, 0.3) == "0.1–0.3"


def test_a_contest_tells_where_the_visits_went(log: Log, tmp_path: Path) -> None:
    policies = ["uniform", "demand_proportional"]
    contest = simulate(log, RULES, policies, [Budget(0.2, per_page=True)])
    report = contest.report()
    assert [one["policy"] for one in report["spending"]] == policies
    for one, row in zip(report["spending"], report["rows"], strict=True):
        assert sum(cell["share"] for cell in one["cells"]) == pytest.approx(1.0)
        spent = sum(cell["visits"] for cell in one["cells"]) / (100 * 20)
        assert spent == pytest.approx(row["visits_per_page_day"])
    uniform, by_demand = (margin(one, "demand") for one in report["spending"])
    assert len({round(one["visits_per_page_day"], 2) for one in uniform}) == 1
    assert by_demand[-1]["visits_per_page_day"] > 5 * by_demand[0]["visits_per_page_day"]
    json.dumps(report)
    write_contest(report, tmp_path / "contest.html")
    assert "Where the visits go" in (tmp_path / "contest.html").read_text("utf-8")


def test_one_alone_is_drawn_in_company_but_the_table_is_its_own(log: Log) -> None:
    assert in_company(["nutch"]) == ("nutch", *COMPANY)
    assert in_company(["uniform"]) == ("uniform", "lambdacrawl")
    assert in_company(["nutch", "uniform"]) == ("nutch", "uniform")
    contest = simulate(log, RULES, ["nutch", "uniform"], [Budget(0.2, per_page=True)])
    report = contest.report(["nutch"])
    assert [row["policy"] for row in report["rows"]] == ["nutch"]
    assert report["increases"] == []
    assert [one["policy"] for one in report["spending"]] == ["nutch", "uniform"]


def test_the_spacing_told_is_the_one_used(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("class Mine:\n    spacing = 'coin'\n", "utf-8")
    assert spacing_of("uniform", "even") == "even"
    assert spacing_of("uniform@coin", "even") == "coin"
    assert spacing_of(f"{file}:Mine", "even") == "coin"
    assert spacing_of("clairvoyant", "even") == "even"


def test_habits_are_plain_data() -> None:
    assert json.loads(json.dumps(asdict(Habit(0.1, 1.0, 0.2)))) == {
        "rate": 0.1, "demand": 1.0, "visits": 0.2,
    }  # fmt: skip


def test_a_simulation_tells_every_step_of_a_bandit_and_draws_it(log: Log, tmp_path: Path) -> None:
    budget = [Budget(0.1, per_page=True)]
    report = simulate(log, RULES, ["kab5", "kab5_contextual", "uniform"], budget).report()
    rows = {row["policy"]: row.get("arms") for row in report["rows"]}
    assert rows["uniform"] is None
    for name, drawn in (("kab5", range(5)), ("kab5_contextual", [-1])):
        arms = rows[name]
        assert arms["names"][-1] == "lambdacrawl"
        assert np.array(arms["chances"]).shape == (25, 5)  # every day of warm-up and score
        assert np.array(arms["chances"]).sum(axis=1) == pytest.approx(np.ones(25), abs=1e-3)
        assert arms["chances"][0] == [0.2] * 5 or name == "kab5_contextual"
        assert len(arms["drawn"]) == RULES.runs
        assert {arm for run in arms["drawn"] for arm in run} <= set(drawn)
    page = tmp_path / "page.html"
    write_contest(report, page)
    assert "Arms of the bandits" in page.read_text("utf-8")
