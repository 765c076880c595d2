"""The study of predictions: published tables, verdicts, reports, and a small run of each table."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from salticus.charts.models import prediction_tables, write_prediction
from salticus.cli import app
from salticus.errors import ConfigError
from salticus.lab.studies.prediction import published
from salticus.lab.studies.prediction.entrants import CHANGES, TASKS, some
from salticus.lab.studies.prediction.run import Dates, Days
from salticus.lab.studies.prediction.verdicts import (
    at_least,
    at_most,
    better,
    steadier,
    warm_enough,
)
from salticus.lab.worlds.market import MarketSize, make_market

CELLS = [(group, observe) for group in ("seen", "unseen") for observe in ("partial", "full")]


def table(**aucs: tuple[float, float, float, float]) -> list[dict[str, Any]]:
    """Rows of models, given their AUC in the four cells."""
    return [
        {"model": model, "group": group, "observe": observe, "auc": auc}
        for model, four in aucs.items()
        for (group, observe), auc in zip(CELLS, four, strict=True)
    ]


# -------------------------------------------------------------------------------- what is published


def test_every_published_row_has_a_model_and_a_name() -> None:
    models = {each.key for each in CHANGES}
    assert published.SEEN.keys() == published.UNSEEN.keys() == published.NAMES.keys()
    assert published.SEEN.keys() <= models
    assert {kind for task in published.TASKS.values() for kind in task} <= {e.key for e in TASKS}
    assert published.published("gamma", "seen", "full") is None
    assert published.published("page_month", "unseen", "partial") == (0.788, 0.003)


def test_models_are_chosen_by_name() -> None:
    assert [each.key for each in some(CHANGES, ("trees", "page_day"))] == ["page_day", "trees"]
    assert some(CHANGES, ()) == CHANGES
    with pytest.raises(ConfigError, match="known: category_day"):
        some(CHANGES, ("oak",))


# ----------------------------------------------------------------------------------------- verdicts


def test_better_means_everywhere() -> None:
    rows = table(dnn=(0.8, 0.9, 0.8, 0.9), a=(0.7, 0.8, 0.7, 0.8), b=(0.7, 0.8, 0.81, 0.8))
    verdicts = better(rows, "dnn", ["a", "b", "absent"])
    assert [each["holds"] for each in verdicts] == [True, False]
    assert not better(rows[:-1], "dnn", ["b"])[0]["holds"]  # a cell is missing


def test_steadier_means_a_smaller_drop_than_every_other() -> None:
    rows = table(dnn=(0.85, 0.87, 0.84, 0.86), combined=(0.80, 0.85, 0.80, 0.85))
    assert steadier(rows, "dnn", ["combined"])["holds"]
    rows += table(page_day=(0.70, 0.71, 0.70, 0.75))
    held = steadier(rows, "dnn", ["combined", "page_day"])
    assert not held["holds"]
    assert "page_day" in held["figures"]
    assert not steadier([], "dnn")["holds"]


def test_metadata_must_reach_the_bar_or_come_near_the_ceiling() -> None:
    assert warm_enough("x", 0.76, None)["holds"]
    assert not warm_enough("x", 0.70, None)["holds"]
    assert warm_enough("x", 0.69, 0.70)["holds"]
    assert not warm_enough("x", 0.60, 0.70)["holds"]
    assert not warm_enough("x", None, 0.70)["holds"]
    assert at_most("x", 0.01, 0.01)["holds"]
    assert not at_most("x", None, 0.01)["holds"]
    assert not at_least("x", 0.8, 0.81)["holds"]


# -------------------------------------------------------------------------------------------- dates


def test_dates_become_a_split() -> None:
    start, test, end = (datetime(2024, month, 1, tzinfo=UTC) for month in (1, 3, 4))
    split = Dates(start, test, end, timedelta(days=10)).split()
    assert split.start == start
    assert (split.train.days, split.validation.days, split.test.days) == (50, 10, 31)
    with pytest.raises(ConfigError, match="follow one another"):
        Dates(start, start, end).split()
    with pytest.raises(ConfigError, match="or none"):
        Days(start).dates()
    assert Days().dates() is None


# -------------------------------------------------------------------------------------- small runs


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "market"
    make_market(folder, MarketSize(500, 45), seed=2, preset="han2019")
    return folder


def ran(*arguments: object) -> dict[str, Any]:
    """What the command prints as JSON."""
    call = ["study", "predict", *map(str, arguments), "--quick", "--json", "-"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_the_table_of_changes(market: Path, tmp_path: Path) -> None:
    models = ("page_month", "combined", "gamma", "trees_metadata")
    flags = [flag for model in models for flag in ("--model", model)]
    page = tmp_path / "study.html"
    report = ran(market, *flags, "--examples", 8000, "--plot", page)
    cells = {(row["model"], row["group"], row["observe"]): row for row in report["rows"]}
    for model in (*models, "ceiling_metadata", "ceiling_own"):
        for cell in CELLS:
            assert cells[model, *cell]["rows"] > 500
            assert 0.45 < cells[model, *cell]["auc"] < 1
    assert cells["page_month", "seen", "full"]["published"] == 0.832
    for group in ("seen", "unseen"):
        blind = [cells["trees_metadata", group, observe]["auc"] for observe in ("partial", "full")]
        assert blind[0] == blind[1]
    assert {check["check"].split(",")[0] for check in report["checks"]} == {"metadata alone"}
    assert "Frequency (offer, 1 month)" in page.read_text("utf-8")
    (_, (header, lines)), (_, (_, checks)) = prediction_tables(report)
    assert len(header) == 9
    assert {len(line) for line in lines} == {9}
    assert len(checks) == len(report["checks"])


def test_the_table_of_tasks(market: Path) -> None:
    report = ran(market, "--table", "tasks", "--model", "trees", "--examples", 5000)
    assert [row["task"] for row in report["rows"]] == ["change", "click", "impression"]
    assert all(row["auc"] is None or row["auc"] > 0.5 for row in report["rows"])
    ((_, (header, lines)),) = prediction_tables(report)
    assert header[1::2] == ("change", "click", "impression")
    assert len(lines) == 1


def test_rules_and_models_on_a_daily_log(market: Path, tmp_path: Path) -> None:
    import polars as pl

    merchant = pl.read_parquet(market / "pages.parquet")["merchant"].mode().sort()[0]
    report = ran(
        market, "--table", "daily", "--model", "rule", "--model", "trees", "--without", merchant,
        "--start", "2018-05-02", "--test", "2018-06-05", "--end", "2018-06-14",
        "--examples", 5000,
    )  # fmt: skip
    groups = {row["group"] for row in report["rows"]}
    assert groups == {"all", "seen", "unseen", f"{merchant}, never met"}
    of = {(row["model"], row["group"]): row for row in report["rows"]}
    assert of["rule", "all"]["rows"] == of["trees", "all"]["rows"]
    assert of["trees", f"{merchant}, never met"]["rows"] < of["trees", "all"]["rows"] / 2
    assert of["trees", "all"]["uncalibrated_error"] is not None
    write_prediction(report, tmp_path / "daily.html")


def test_daily_logs_without_known_days_need_them(market: Path) -> None:
    call = ["study", "predict", str(market), "--table", "daily", "--quick"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code != 0
    assert CliRunner().invoke(app, [*call[:-2], "oak"]).exit_code != 0


def test_the_table_of_cold_pages(market: Path) -> None:
    report = ran(market, "--table", "cold", "--model", "trees_metadata", "--examples", 8000)
    of = {(row["model"], row["known"]): row for row in report["rows"]}
    assert ("trees_metadata", "all") in of
    assert of["trees_metadata", "30 and more"]["rows"] < of["trees_metadata", "all"]["rows"]
    every = sum(
        row["rows"]
        for (model, known), row in of.items()
        if model == "trees_metadata" and known != "all"
    )
    assert every == of["trees_metadata", "all"]["rows"]
    assert np.isfinite(of["ceiling_own", "all"]["whole_auc"])
    ((_, (header, lines)),) = prediction_tables(report)
    assert header[0] == "observations known"
    assert lines[-1][0] == "rows (changes)"
