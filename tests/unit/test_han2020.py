"""The study of Han et al. (2020): published figures, orderings, regret, and all of it in small."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from salticus.charts.arms import arm_points
from salticus.cli import app
from salticus.errors import ConfigError
from salticus.lab.simulate.arms import ArmRecord
from salticus.lab.simulate.compare import ContestEntry
from salticus.lab.simulate.referee import Score
from salticus.lab.studies.han2020.claims import claims_of
from salticus.lab.studies.han2020.crawls import Crawled
from salticus.lab.studies.han2020.figures import figure_4, figure_5, regret_table
from salticus.lab.studies.han2020.published import (
    ARMS,
    BUDGETS,
    CLICKS,
    COMPETING,
    PAGES,
    at,
)
from salticus.lab.studies.han2020.run import study
from salticus.lab.studies.han2020.tables import freshness_table, increase_table
from salticus.lab.studies.paper import median_of

DAYS = 10


def entry(policy: str, budget: float, clicks: float, pages: float) -> ContestEntry:
    """A run of ten days around these figures, of a bandit that ends by drawing μ."""
    wave = np.linspace(-0.01, 0.01, DAYS)
    names = ("demand_proportional", "change_proportional", "lambdacrawl")
    chances = np.linspace([1 / 3] * 3, [0.5, 0.1, 0.4], 30)
    score = Score(
        days=[date(2019, 3, 11 + day) for day in range(DAYS)],
        clicks=list(clicks + wave),
        midnight=list(pages + wave),
        arms=ArmRecord(names, chances, np.zeros(30, dtype=np.int64)),
    )
    return ContestEntry(policy, budget, f"{budget:g}", (score,))


@pytest.fixture
def as_published() -> Crawled:
    """What the paper found, at 10 and 50 %."""
    found = {}
    for policy in COMPETING:
        for budget in (0.1, 0.5):
            clicks, pages = (at(rows, policy, budget) or 0.5 for rows in (CLICKS, PAGES))
            found[policy, budget] = entry(policy, budget, clicks, pages)
    return found


# ------------------------------------------------------------------------------------- as published


def test_the_published_tables_are_whole_and_say_what_the_paper_says_of_them() -> None:
    assert all(len(row) == len(BUDGETS) for rows in (CLICKS, PAGES) for row in rows.values())
    assert CLICKS["kab5_ml"][:2] == (0.9027, 0.9238)
    for better, other in (("lambda_ml", "lambda_h"), ("mu_ml", "mu_h"), ("kab5_ml", "lambda_ml")):
        assert all(a > b for a, b in zip(CLICKS[better], CLICKS[other], strict=True))
    assert all(PAGES["uniform"][k] == max(row[k] for row in PAGES.values()) for k in range(9))


def test_the_orderings_hold_of_the_published_figures(as_published: Crawled) -> None:
    holds = {row["claim"]: row["holds"] for row in claims_of(as_published)}
    for what in (
        "lambda_ml ≥ lambda_h, clicks, at every budget",
        "mu_ml ≥ mu_h, clicks, at every budget",
        "Δ-weighted is worst, clicks, at every budget",
        "uniform is best, offers, at every budget",
        "kab5_ml ≥ lambda_ml, clicks, at every budget",
        "KAB5 gains on λ at every budget, clicks",
        "μ is preferred to λ at the end, budget 10%",
    ):
        assert holds[what], what
    worse = as_published | {("kab5_ml", 0.5): entry("kab5_ml", 0.5, 0.94, 0.9)}
    found = {row["claim"]: row for row in claims_of(worse)}
    told = found["kab5_ml ≥ lambda_ml, clicks, at every budget"]
    assert not told["holds"]
    assert told["figures"] == "10%: 0.9027 to 0.8983; 50%: 0.9400 to 0.9424"


def test_tables_show_both_figures_and_the_increases(as_published: Crawled) -> None:
    rows = freshness_table(as_published, "midnight").rows
    assert all(row["difference"] in (0.0, None) and not row["note"] for row in rows)
    (row,) = (
        row
        for row in increase_table(as_published, "clicks").rows
        if (row["policy"], row["budget"]) == ("kab5_ml", 0.1)
    )
    assert row["ours"] == pytest.approx((0.9027 - 0.8983) / 0.8983, rel=0.01)
    assert (row["published"], row["significant"]) == (0.0093, "above")
    assert row["p_value"] == pytest.approx(2 / 2**DAYS, rel=0.01)  # all of one sign
    assert {row["budget"] for row in figure_4(as_published).rows} == {0.1, 0.5}


def test_steps_of_the_arms_are_those_of_figure_5_or_the_last_one(as_published: Crawled) -> None:
    rows = figure_5(as_published).rows
    assert [row["step"] for row in rows[::3]] == [1, 30]
    assert rows[3]["ours"] == 0.5
    arms = {"names": ["a"], "chances": [[k / 500] for k in range(500)]}
    points = arm_points(arms, panel="x")
    assert [points[k]["step"] for k in (0, 1, -1)] == [1, 2, 500]
    assert len(points) <= 201
    assert all(p["probability"] == (p["step"] - 1) / 500 for p in points)


def test_regret_is_what_the_best_arm_alone_kept_fresh_more(as_published: Crawled) -> None:
    rows = {(r["policy"], r["budget"]): r for r in regret_table(as_published, 12.0).rows}
    row = rows["kab5_ml", 0.5]
    best = max(ARMS, key=lambda arm: at(CLICKS, arm, 0.5) or 0.0)
    assert row["best arm"] == best == "lambda_ml"
    assert row["ours"] == pytest.approx(0.9424 - 0.9478)
    assert row["total"] == f"{(0.9424 - 0.9478) * 120:.2f} of 120 steps"


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200))
def test_the_interval_of_a_median_lies_between_two_values_around_it(values: list[float]) -> None:
    found = median_of(np.array(values))
    if found.low is None:
        assert len(values) < 6
        return
    assert found.value is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    near = np.sort([float(f"{value:.6g}") for value in values])
    assert {found.low, found.high} <= set(near)


def test_the_interval_of_a_median_holds_in_95_of_a_hundred_samples() -> None:
    rng = np.random.default_rng(0)
    found = [median_of(rng.exponential(1.0, 31)) for _ in range(2000)]
    held = np.mean([low <= np.log(2) <= high for _, low, high in found])  # type: ignore[operator]
    assert 0.94 < held < 0.985  # at least 95 %, but for chance


# --------------------------------------------------------------------------------------- all of it


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes."""
    out = tmp_path_factory.mktemp("study") / "han2020"
    said = ["study", "han2020", "--scale", "tiny", "--jobs", "1", "--seed", "4", "--out", str(out)]
    result = CliRunner().invoke(app, said)
    assert result.exit_code == 0, result.output
    assert "kab5_ml ≥ lambda_ml" in result.output.replace("\n", " ")
    return out


def test_the_study_writes_every_table_and_figure(tiny: Path) -> None:
    report = json.loads((tiny / "results.json").read_text("utf-8"))
    keys = [table["key"] for table in report["tables"]]
    assert keys == [
        "table4", "table5", "table5_increases", "table6", "table6_increases",
        "fig4", "fig5", "fig6", "regret",
    ]  # fmt: skip
    assert "Figure 5" in (tiny / "report.html").read_text("utf-8")
    for table in report["tables"]:
        with (tiny / f"{table['key']}.csv").open(encoding="utf-8") as file:
            rows: list[dict[str, Any]] = list(csv.DictReader(file))
        assert len(rows) == len(table["rows"]) > 0
    cells = {(row["policy"], row["budget"]) for row in report["tables"][1]["rows"]}
    assert cells == {(policy, budget) for policy in COMPETING for budget in (0.1, 0.5)}
    assert report["protocol"]["copies at the start"] == "none"


def test_the_same_seed_gives_the_same_results(tiny: Path) -> None:
    again = json.loads(json.dumps(study("tiny", jobs=1, seed=4)))
    assert again == json.loads((tiny / "results.json").read_text("utf-8"))


def test_an_unknown_scale_is_named() -> None:
    with pytest.raises(ConfigError, match="no scale is called 'vast'; known: tiny, small, full"):
        study("vast")
