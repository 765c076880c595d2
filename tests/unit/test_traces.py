"""The study of traces: one protocol, medians over runs, our policy against its rivals."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from salticus.allocate import BUILTIN
from salticus.charts.freshness import comparison_table, traces_table, write_traces
from salticus.cli import app
from salticus.cli.lab import _each
from salticus.config import Budget
from salticus.lab.bench.replay import poisson_log
from salticus.lab.studies.traces import (
    PROTOCOL,
    RIVALS,
    Field,
    RunFigures,
    Trace,
    comparisons,
    everyone,
    medians,
    study,
)

DAY = timedelta(days=1)
RULES = replace(PROTOCOL, history=10 * DAY, warmup=5 * DAY, days=10, runs=3)
BUDGETS = [Budget(0.1, per_page=True), Budget(0.4, per_page=True)]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Two hundred pages that change every twenty days or daily."""
    folder = tmp_path_factory.mktemp("traces") / "poisson"
    poisson_log(folder, np.repeat([0.05, 1.0], 100), days=120)
    return Trace(folder, pages=150)


@pytest.fixture(scope="module")
def report(trace: Trace) -> dict[str, Any]:
    field = Field(("uniform", "uniform@coin", "clairvoyant"), BUDGETS, RULES)
    return study([trace], field)


def test_the_protocol_is_the_published_one() -> None:
    spans = (PROTOCOL.tick, PROTOCOL.history, PROTOCOL.warmup, PROTOCOL.days)
    assert spans == (DAY, 60 * DAY, 15 * DAY, 40)
    assert (PROTOCOL.demand, PROTOCOL.runs, PROTOCOL.frozen) == ("zipf:1.1", 10, False)
    assert set(BUILTIN) | set(RIVALS) | {"clairvoyant"} <= set(everyone())


def test_every_policy_and_budget_has_a_row(report: dict[str, Any]) -> None:
    assert len(report["rows"]) == 3 * 2
    assert len(report["runs"]) == 3 * 2 * 3
    assert report["traces"][0]["pages"] == 150
    stale = {(row["budget"], row["policy"]): row["staleness"] for row in report["rows"]}
    for budget in (0.1, 0.4):
        even, coin = stale[budget, "uniform"], stale[budget, "uniform@coin"]
        assert stale[budget, "clairvoyant"] < even < coin, "law: even visits beat coins"
    for row in report["rows"]:
        assert row["staleness"] == pytest.approx(1 - row["click_freshness"], abs=1e-5)
        if row["policy"] != "clairvoyant":
            assert row["visits_per_page_day"] == pytest.approx(row["budget"], rel=1e-3)
    even = next(row for row in report["rows"] if (row["policy"], row["budget"]) == ("uniform", 0.4))
    assert even["interval_days"] == pytest.approx(1 / 0.4, rel=0.05)


def test_each_run_draws_its_own_demand(report: dict[str, Any]) -> None:
    runs = [one for one in report["runs"] if one["policy"] == "uniform" and one["budget"] == 0.1]
    assert len({one["staleness"] for one in runs}) == 3
    middle = float(np.median([one["staleness"] for one in runs]))
    row = next(row for row in report["rows"] if (row["policy"], row["budget"]) == ("uniform", 0.1))
    assert row["staleness"] == pytest.approx(middle, abs=1e-6)


def test_processes_change_nothing(trace: Trace, report: dict[str, Any]) -> None:
    heard: list[str] = []
    field = Field(("uniform", "uniform@coin", "clairvoyant"), BUDGETS, RULES)
    again = study([trace], field, jobs=2, told=heard.append)
    assert len(heard) == 18
    for name in ("protocol", "traces"):
        assert again[name] == report[name]
    drop = ("seconds",)
    assert [{k: v for k, v in row.items() if k not in drop} for row in again["rows"]] == [
        {k: v for k, v in row.items() if k not in drop} for row in report["rows"]
    ]


def figures(policy: str, stale: list[float]) -> list[RunFigures]:
    some = dict.fromkeys(
        ("click_freshness", "page_freshness", "visits_per_page_day", "interval_days",
         "pages_visited", "seconds"), 0.5
    )  # fmt: skip
    return [RunFigures("t", 0.1, policy, run, staleness=s, **some) for run, s in enumerate(stale)]


def test_our_policy_is_compared_run_by_run() -> None:
    every = [
        *figures("leap", [0.1, 0.3, 0.2]),
        *figures("lambdacrawl@coin", [0.2, 0.6, 0.8]),
        *figures("lambdacrawl", [0.1, 0.3, 0.4]),
        *figures("clairvoyant", [0.0, 0.1, 0.2]),
    ]
    coin, even = comparisons(every)
    assert (coin["against"], even["against"]) == RIVALS
    assert coin["ratio"] == pytest.approx(0.2 / 0.6, abs=1e-6)
    assert coin["paired"] == 0.5
    assert coin["gap_closed"] == pytest.approx((0.6 - 0.2) / (0.6 - 0.1))
    assert (even["paired"], even["worst"]) == (1.0, 1.0)
    alone = [one for one in every if one.policy != "clairvoyant"]
    assert next(iter(comparisons(alone)))["gap_closed"] is None
    assert list(comparisons(figures("leap", [0.1]))) == []
    assert len(list(medians(every))) == 4


def test_the_freshest_policy_of_a_budget_comes_first(report: dict[str, Any]) -> None:
    header, rows = traces_table(report["rows"])
    assert len(header) == len(rows[0])
    assert [row[:2] for row in rows][:2] == [(0.1, "clairvoyant"), (0.1, "uniform")]
    some = [*figures("leap", [0.1]), *figures("lambdacrawl", [0.2])]
    header, rows = comparison_table(list(comparisons(some)))
    assert len(header) == len(rows[0])


def test_the_page_has_charts_and_tables(report: dict[str, Any], tmp_path: Path) -> None:
    some = [*figures("leap", [0.1]), *figures("lambdacrawl", [0.2])]
    write_traces({**report, "comparisons": list(comparisons(some))}, tmp_path / "traces.html")
    page = (tmp_path / "traces.html").read_text("utf-8")
    assert "vegaEmbed(" in page
    assert "Against LambdaCrawl" in page


def test_the_command_runs_the_protocol(trace: Trace, tmp_path: Path) -> None:
    words = ["study", "traces", "--log", str(trace.folder), "--pages", "40", "--policy", "uniform",
             "--budget", "10%", "--runs", "1", "--jobs", "1", "--start", "2026-01-01",
             "--json", str(tmp_path / "out.json"),
             "--plot", str(tmp_path / "out.html")]  # fmt: skip
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "uniform" in done.output
    found = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert found["protocol"]["history"] == "60d"
    assert found["traces"] == [
        {"name": "poisson", "log": "poisson", "start": "2026-01-01", "pages": 40}
    ]
    assert (tmp_path / "out.html").exists()


def test_a_flag_is_given_once_or_for_each_log() -> None:
    assert _each("pages", None, 2) == [None, None]
    assert _each("pages", [5], 2) == [5, 5]
    assert _each("pages", [5, 6], 2) == [5, 6]
    with pytest.raises(typer.BadParameter, match="one for all logs, or 3, one each"):
        _each("pages", [5, 6], 3)
