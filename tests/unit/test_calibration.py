"""The calibration: statistics of a log written down by hand, and a small market's table."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from salticus.cli import app
from salticus.errors import ConfigError, InputError
from salticus.exchange.folder import Log
from salticus.lab.studies.calibration.market import MarketHistory, read_market
from salticus.lab.studies.calibration.published import (
    PRESETS,
    PUBLISHED,
    Statistic,
    published,
)
from salticus.lab.studies.calibration.run import calibrate_log, uniform_freshness
from salticus.lab.studies.calibration.statistics import (
    change_within,
    daily_shares,
    feature_aucs,
    patterns,
    peak,
    prediction_points,
    request_lifts,
    returning,
)
from salticus.lab.studies.calibration.table import CalibrationRow, markdown, rows, summary
from salticus.lab.worlds.market import MarketSize, make_market

DAY0 = datetime(2018, 5, 7, tzinfo=UTC)  # a Monday
AT = pl.Datetime("us", "UTC")


def written(folder: Path, *, days: int = 4, **tables: list[tuple[Any, ...]]) -> Log:
    """A log of pages a, b (uniform) and c (click); times are hours after the start."""
    pages = {
        "page_id": ["a", "b", "c"],
        "category": ["Software > Games", "Media", "Media"],
        "country": ["IN", "US", "US"],
        "timezone": ["Asia/Kolkata", "America/New_York", None],
        "stratum": ["uniform", "uniform", "click"],
    }
    pl.DataFrame(pages).write_parquet(folder / "pages.parquet")
    for name, more in {
        "values": {"value": pl.String},
        "visits": {"changed": pl.Boolean},
        "demand": {"clicks": pl.Int64, "impressions": pl.Int64},
        "requests": {},
    }.items():
        told = [(page, DAY0 + timedelta(hours=h), *rest) for page, h, *rest in tables.get(name, [])]
        schema = {"page_id": pl.String, "at": AT, **more}
        pl.DataFrame(told, schema=schema, orient="row").write_parquet(folder / f"{name}.parquet")
    about = {
        "name": "by hand",
        "span": [DAY0.isoformat(), (DAY0 + timedelta(days=days)).isoformat()],
        "resolution": "1h",
        "demand_bucket": "1d",
    }
    (folder / "log.json").write_text(json.dumps(about))
    return Log(folder)


VALUES = [
    ("a", 0, "1"), ("a", 30, "2"), ("a", 32, "1"), ("a", 54, "2"),
    ("b", 0, "1"), ("b", 60, None),
    ("c", 0, "1"), ("c", 24, "2"), ("c", 48, "3"), ("c", 72, "4"),
]  # fmt: skip


@pytest.fixture
def market(tmp_path: Path) -> MarketHistory:
    demand = [
        ("a", 24, 0, 3), ("a", 48, 1, 9),
        ("b", 24, 0, 1), ("b", 72, 5, 5),
        ("c", 0, 1, 1), ("c", 24, 2, 2), ("c", 72, 0, 1),
    ]  # fmt: skip
    return read_market(written(tmp_path, values=VALUES, demand=demand))


# ------------------------------------------------------------------------------------- statistics


def test_the_end_is_that_of_the_span(market: MarketHistory) -> None:
    assert market.end - market.start == 96
    assert (market.full.gone - market.start).tolist() == [96, 60, 96]


def test_a_prediction_is_positive_if_a_change_follows_in_time(market: MarketHistory) -> None:
    # a: hours 25–30, 31–32, 49–54; c: six hours before each of three changes; 96 + 60 + 96 in all
    share = change_within(market.full, 6, market.start, market.end)
    assert share == (6 + 2 + 6 + 3 * 6) / (96 + 60 + 96)


def test_shares_are_of_days_that_begin_alive(market: MarketHistory) -> None:
    # uniform: a lives on 4 days and changes on 2; b begins 3 days and was gone when clicked
    assert daily_shares(market) == {
        "change_1d": 2 / 7,
        "click_1d": 1 / 7,
        "impression_1d": 3 / 7,
        "click_1d_clicked": 2 / 4,
        "impression_1d_clicked": 3 / 4,
    }


def test_a_clicked_offer_returns_within_a_week(tmp_path: Path) -> None:
    clicks = [("a", 24 * d, 1, 1) for d in (0, 7, 15)] + [("c", 24 * d, 1, 1) for d in (9, 10)]
    values = [(page, 0, "1") for page in "abc"]
    log = written(tmp_path, days=20, values=values, demand=clicks)
    # from day 7 on: a returns on 7 but not on 15, c is new on 9 and returns on 10
    assert returning(read_market(log)) == 2 / 4


def test_patterns_are_those_of_the_paper(market: MarketHistory) -> None:
    found = patterns(market.log)
    assert found["countries_high"] == ("IN", "US")
    assert found["countries_low"] == ("US", "IN")
    assert found["category_first"] == ("Software",)
    assert found["categories_next"] == ("Media",)
    assert found["interval_24h"] == 3.0  # three of c, one of 22 h of a
    assert found["weekday"] == float("inf")
    # c, of no known zone, changes at midnight; a in Kolkata (UTC + 5:30) at 11:30, 13:30 and 11:30
    # and b in New York is gone before its fourth midnight and its third hour 11
    assert found["midnight"] == pytest.approx((3 / 11) / (2 / 10))
    shapes = {s.key for s in published("han2019")} & set(found)
    assert shapes == set(found)


@pytest.mark.parametrize(("count", "height"), [([1, 1, 4, 2, 1], 2.0), ([0, 0, 1, 0, 0], np.inf)])
def test_a_peak_stands_above_its_neighbours(count: list[int], height: float) -> None:
    assert peak(np.array(count), 2) == height


def test_predictions_lie_in_the_test_window(tmp_path: Path) -> None:
    values = [("a", 0, "1"), ("b", 24 * 20, "1"), ("c", 0, "1"), ("c", 24 * 65, None)]
    log = written(tmp_path, days=70, values=values)
    page, hour = prediction_points(read_market(log), 3000, seed=1)
    since = hour - int(DAY0.timestamp()) // 3600
    assert since.min() >= 24 * 40
    assert since[page == 1].min() >= 24 * 50
    assert since[page == 2].max() < 24 * 65
    assert since.max() < 24 * 70 - 6
    lives = np.array([30 * 24 - 6, 20 * 24 - 6, 25 * 24])
    assert np.bincount(page) / 3000 == pytest.approx(lives / lives.sum(), abs=0.04)


def test_a_page_that_changes_twice_a_day_is_foretold(tmp_path: Path) -> None:
    lively = [("a", 12 * k, str(k)) for k in range(140)]
    log = written(
        tmp_path,
        days=70,
        values=[*lively, ("b", 0, "1"), ("c", 0, "1")],
        visits=[("a", 12 * k + 1, bool(k)) for k in range(140)],
    )
    found = feature_aucs(read_market(log), points=4000, seed=0)
    for seen in ("partial", "full"):
        mean, spread = found[f"auc_{seen}_page_month"]
        # a is positive in half of its hours, b and c never: (1 + 1/2 · 1/5) of all pairs
        assert mean == pytest.approx(0.9, abs=0.02)
        assert spread < 0.05


def test_lifts_are_gained_freshness(tmp_path: Path) -> None:
    values = [("a", 24 * d, str(d)) for d in range(40)] + [("b", 0, "1"), ("c", 0, "1")]
    asked = [("a", h + 0.5) for h in range(24 * 40)]
    found = request_lifts(
        read_market(written(tmp_path, days=40, values=values, requests=asked)), seed=0
    )
    assert found["lift_first"] + found["lift_rest"] == pytest.approx(23 / 24, abs=0.001)
    assert 0.4 < found["lift_first"] < 0.8


def test_uniform_freshness_grows_with_the_budget(tmp_path: Path) -> None:
    values = [(page, 24 * d, str(d)) for d in range(40) for page in "abc"]
    demand = [(page, 24 * d, 1, 1) for d in range(40) for page in "abc"]
    market = read_market(written(tmp_path, days=40, values=values, demand=demand))
    found = uniform_freshness(market, (0.1, 12.0), seed=1)
    assert found["page_freshness_1200%"] == 1.0
    assert found["click_freshness_10%"] <= found["click_freshness_1200%"]
    assert set(found) == {f"{w}_freshness_{b}" for w in ("click", "page") for b in ("10%", "1200%")}


def test_what_is_absent_is_named(tmp_path: Path) -> None:
    log = written(tmp_path, values=VALUES)
    log.path("visits").unlink()
    with pytest.raises(InputError, match=r"visits\.parquet"):
        read_market(log)


@pytest.mark.parametrize(
    ("span", "hours"),
    [(None, 73), (["2018-05-07", "2018-05-10"], 96), (["2018-05-07", "2018-05-09T23:30:00Z"], 72)],
)
def test_a_log_ends_with_its_span_or_its_last_change(
    tmp_path: Path, span: list[str] | None, hours: int
) -> None:
    log = written(tmp_path, values=VALUES)
    (tmp_path / "log.json").write_text(json.dumps({"name": "x", "span": span}))
    market = read_market(Log(tmp_path))
    assert market.end - market.start == hours
    assert market.full.hour.max() < market.end
    (tmp_path / "log.json").write_text(json.dumps({"span": "soon"}))
    with pytest.raises(InputError, match=r"log\.json: `span`"):
        read_market(Log(log.folder))


# --------------------------------------------------------------------------------- a small market


SMALL = {"han2019": MarketSize(12_000, days=50), "han2020": MarketSize(6_000, days=40)}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[CalibrationRow]]:
    """The table of each preset at a size that takes seconds."""
    found = {}
    for preset, size in SMALL.items():
        folder = tmp_path_factory.mktemp("market") / preset
        make_market(folder, size, seed=1, preset=preset)
        found[preset] = calibrate_log(folder, seed=1, points=100_000)
    return found


@pytest.mark.parametrize("preset", PRESETS)
def test_a_market_is_measured_by_the_statistics_of_its_preset(
    small: dict[str, list[CalibrationRow]], preset: str
) -> None:
    assert [row.statistic for row in small[preset]] == [s.name for s in published(preset)]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_small_market_is_near_what_was_published(
    small: dict[str, list[CalibrationRow]], preset: str
) -> None:
    """A few heavy merchants sway a small market: twice the bound is allowed, and which countries
    and categories come out on top means nothing."""
    assert [row for row in small[preset] if not roughly(row)] == []


def roughly(row: CalibrationRow) -> bool:
    if isinstance(row.bound, float):
        return abs(float(row.difference)) <= 2 * row.bound
    return row.ok or isinstance(row.published, tuple)


def test_most_of_a_small_market_holds(small: dict[str, list[CalibrationRow]]) -> None:
    table = [row for rows in small.values() for row in rows]
    assert sum(row.ok for row in table) >= 0.9 * len(table)


def test_the_command_measures_a_log(tmp_path: Path) -> None:
    market, out = tmp_path / "market", tmp_path / "new" / "table.md"
    make_market(market, MarketSize(offers=1000, days=20), seed=2, preset="han2020")
    told = CliRunner().invoke(app, ["calibrate", "--log", str(market), "--out", str(out), "--json"])
    table = json.loads(told.stdout)
    assert [row["statistic"] for row in table["rows"]] == [s.name for s in published("han2020")]
    assert table["ok"] + len(table["missed"]) == len(table["rows"])
    assert "## han2020" in out.read_text("utf-8")


def test_the_command_names_the_presets_it_knows() -> None:
    told = CliRunner().invoke(app, ["calibrate", "--preset", "han2021"])
    assert isinstance(told.exception, ConfigError)
    assert "han2019, han2020, both" in str(told.exception)


# ------------------------------------------------------------------------------------------ table


def test_every_statistic_is_published_once() -> None:
    assert len({s.key for s in PUBLISHED}) == len(PUBLISHED)
    assert {s.preset for s in PUBLISHED} == set(PRESETS)


def test_no_method_under_test_is_calibrated_to() -> None:
    text = str(msgspec.json.encode([s.name for s in PUBLISHED])).lower()
    assert not [m for m in ("dnn", "lambda", "bandit", "combined", "metadata") if m in text]


def test_a_line_holds_within_its_bound() -> None:
    number = Statistic("n", "number", "s", "p", 0.5, bound=0.1)
    names = Statistic("m", "names", "s", "p", ("x", "y"))
    shape = Statistic("o", "shape", "s", "p", 1.0)
    assert verdicts(number, 0.6, 0.4, 0.61, float("nan")) == [True, True, False, False]
    assert verdicts(names, ("y", "x"), ("x",), ("x", "z")) == [True, False, False]
    assert verdicts(shape, 1.2, 1.0) == [True, False]
    assert rows([number], {}) == []


def verdicts(statistic: Statistic, *found: Any) -> list[bool]:
    return [rows([statistic], {statistic.key: value})[0].ok for value in found]


def test_the_table_as_markdown() -> None:
    number = Statistic("n", "number", "src", "p", 0.5, bound=0.1, note="why")
    table = rows([number], {"n": 0.75}, {"n": 0.01})
    text = markdown(table)
    assert "| number | src | 0.500 | 0.750 (0.010) | +0.250 | 0.1 | miss |" in text
    assert "number: why." in text
    assert summary(table) == {"ok": 0, "missed": ["p: number"]}
