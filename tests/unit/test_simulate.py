"""Simulation of logs: the stage, the readers, what the log's own crawler did, the figures."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from salticus.cli import app
from salticus.config import Budget
from salticus.errors import ConfigError, InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import GONE, read_truth
from salticus.exchange.write import write_log
from salticus.lab.bench.replay import START, poisson_log
from salticus.lab.simulate import SimulationSettings, simulate
from salticus.lab.simulate.compare import ContestEntry, increases, savings
from salticus.lab.simulate.logged import logged_outcomes, logged_past, logged_visits
from salticus.lab.simulate.readers import LoggedReaders, readers_of, zipf
from salticus.lab.simulate.referee import Score
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import runs_of, set_stage
from salticus.types import CHANGED, UNCHANGED, UNKNOWN, Tick, instant

DAY = timedelta(days=1)
RULES = SimulationSettings(tick=DAY, history=2 * DAY, warmup=DAY, days=5)


def at(day: float) -> datetime:
    return START + day * DAY


def frame(names: str, *rows: tuple[Any, ...]) -> pl.DataFrame:
    kinds = {"at": pl.Datetime("us", "UTC"), "value": pl.String, "status": pl.String}
    columns = names.split()
    schema = {name: kinds.get(name) for name in columns}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def a_log(folder: Path, **tables: pl.DataFrame) -> Log:
    about = {"name": "small", "resolution": "1d", "span": ["2025-12-31", "2026-01-20"]}
    if "demand" in tables:
        about["demand_bucket"] = "1d"
    write_log(folder, tables, about)
    return Log(folder)


@pytest.fixture
def shop(tmp_path: Path) -> Log:
    """Three offers over 20 days; b goes at day 5 and comes back, c is born on day 4."""
    values = frame(
        "page_id at value",
        ("a", at(-1), "1"), ("a", at(3), "2"), ("a", at(6), "1"), ("a", at(9), "3"),
        ("b", at(-1), "5"), ("b", at(5), None), ("b", at(8), "6"),
        ("c", at(4), "9"),
    )  # fmt: skip
    visits = frame(
        "page_id at status changed",
        ("a", at(0.5), "ok", None), ("b", at(0.5), "ok", None), ("a", at(1), "ok", False),
        ("a", at(2), "timeout", None), ("a", at(4), "ok", True), ("b", at(6), "gone", None),
        ("a", at(7.5), "ok", True), ("c", at(9), "ok", None),
    )  # fmt: skip
    demand = frame(
        "page_id at clicks impressions",
        ("a", at(0), 4, 40), ("a", at(1), 2, 20), ("a", at(5), 6, 60), ("b", at(5), 2, 2),
    )  # fmt: skip
    pages = pl.DataFrame({"page_id": ["c", "b", "a"], "failure": [0.0, None, 0.25]})
    return a_log(tmp_path / "shop", pages=pages, values=values, visits=visits, demand=demand)


# -------------------------------------------------------------------------------------- the truth


def test_the_truth_is_ordered_by_birth_and_keeps_equal_values_equal(shop: Log) -> None:
    truth = read_truth(shop)
    assert truth.names.to_list() == ["a", "b", "c"]
    assert truth.failure.tolist() == [0.25, 0.0, 0.0]
    mine = truth.value[truth.page == 0]
    assert mine[0] == mine[2] != mine[1]
    assert truth.value[truth.page == 1].tolist()[1] == GONE
    assert np.all(np.diff(truth.at) >= np.timedelta64(0))
    assert not truth.imputed


def test_texts_are_truth_where_there_are_no_values(tmp_path: Path) -> None:
    texts = frame("page_id at text", ("p", at(0), "x"), ("p", at(2), "y"))
    log = a_log(tmp_path / "t", pages=pl.DataFrame({"page_id": ["p"]}), texts=texts)
    assert len(read_truth(log).at) == 2


def test_a_log_without_any_history_is_refused_by_name(tmp_path: Path) -> None:
    log = a_log(tmp_path / "none", pages=pl.DataFrame({"page_id": ["p"]}))
    with pytest.raises(InputError, match=r"values\.parquet, texts\.parquet and visits\.parquet"):
        read_truth(log)


def test_changes_are_imputed_between_the_visits_that_enclose_them(tmp_path: Path) -> None:
    rows = [("p", at(0), "ok", None), ("p", at(2), "ok", False), ("p", at(3), "timeout", None),
            ("p", at(6), "ok", True), ("q", at(1), "ok", None)]  # fmt: skip
    visits = frame("page_id at status changed", *rows)
    log = a_log(tmp_path / "v", pages=pl.DataFrame({"page_id": ["p", "q"]}), visits=visits)
    times = []
    for seed in range(40):
        truth = read_truth(log, seed=seed)
        assert truth.imputed
        assert truth.born.tolist() == [instant(at(0)), instant(at(1))]
        times.append(truth.at[truth.page == 0][1])
    assert all(instant(at(2)) <= t <= instant(at(6)) for t in times)
    spread = np.ptp(np.array(times).astype(np.int64)) / 86_400e6
    assert spread > 2.5, "law: each seed is its own imputation, uniform in the interval"
    contest = simulate(log, replace(RULES, history=timedelta(0), warmup=DAY, days=2), ["uniform"],
                       [Budget(0.5, per_page=True)])  # fmt: skip
    assert len(contest.entries[0].scores) == 5
    assert any("imputed" in note for note in contest.notes)


# -------------------------------------------------------------------------------------- the stage


def test_ticks_finer_than_the_resolution_are_refused(shop: Log) -> None:
    with pytest.raises(ConfigError, match="known to 1d only.*ticks of 2h.*--tick 1d"):
        set_stage(shop, replace(RULES, tick=timedelta(hours=2)))


def test_the_stage_has_its_four_times(shop: Log) -> None:
    stage = set_stage(shop, RULES)
    assert [stage.start, stage.crawl, stage.score, stage.end] == [at(-1), at(1), at(2), at(7)]
    with pytest.raises(ConfigError, match="the log ends 2026-01-21.*--start"):
        set_stage(shop, replace(RULES, start=at(10), days=30))


def test_spans_that_are_not_given_fit_the_log(shop: Log) -> None:
    stage = set_stage(shop, SimulationSettings(tick=DAY))
    assert stage.end <= datetime(2026, 1, 21, tzinfo=UTC)
    spans = [stage.crawl - stage.start, stage.score - stage.crawl, stage.end - stage.score]
    assert spans == [12 * DAY, 3 * DAY, 6 * DAY]  # 60 : 15 : 30 of 21 days


def test_bad_rules_are_refused(shop: Log, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--observe"):
        set_stage(shop, replace(RULES, observe="some"))
    with pytest.raises(ConfigError, match="--frozen: .*--observe own or partial"):
        set_stage(shop, replace(RULES, observe="full", frozen=True))
    with pytest.raises(ConfigError, match="1 or more"):
        set_stage(shop, replace(RULES, runs=-1))
    log = poisson_log(tmp_path / "p", np.ones(3), 10)
    with pytest.raises(InputError, match=r"visits\.parquet: no such file; --observe partial"):
        set_stage(log, replace(RULES, observe="partial"))


def test_runs_are_several_only_where_something_is_drawn(shop: Log, tmp_path: Path) -> None:
    drawn = poisson_log(tmp_path / "p", np.ones(3), 10)
    assert [runs_of(shop, RULES), runs_of(drawn, RULES)] == [1, 5]
    assert runs_of(drawn, replace(RULES, demand="uniform")) == 1
    assert runs_of(drawn, replace(RULES, runs=2)) == 2


# ------------------------------------------------------------------------------------ the readers


def test_what_is_known_of_demand_lies_in_the_past(shop: Log) -> None:
    readers = LoggedReaders(shop, read_truth(shop))
    assert readers.known(at(0), 3)[0].tolist() == [0, 0, 0]
    clicks, shown = readers.known(at(2), 3)
    assert (clicks.tolist(), shown.tolist()) == ([3.0, 0, 0], [30.0, 0, 0])
    assert readers.known(at(2), 2)[0].tolist() == [3.0, 0]
    assert readers.known(at(6), 3)[0].tolist() == pytest.approx([2.0, 1 / 3, 0])


def test_clicks_are_spread_over_their_bucket(shop: Log) -> None:
    readers = LoggedReaders(shop, read_truth(shop))
    rows, clicks = readers.clicks(Tick(0, at(0.25), at(0.5)))
    assert (rows.tolist(), clicks.tolist()) == ([0], [1.0])
    rows, clicks = readers.clicks(Tick(0, at(0.5), at(5.5)))
    assert dict(zip(rows.tolist(), clicks.tolist(), strict=True)).keys() == {0, 1}
    assert clicks.sum() == 2 + 2 + 3 + 1
    pages, ends = np.array([0, 1, 2]), np.array([instant(at(5.5))] * 3)
    assert readers.between(pages, np.array([instant(at(0.5))] * 3), ends).tolist() == [7, 1, 0]


def test_zipf_is_heavy_and_averages_one() -> None:
    weights = zipf(np.arange(1000), 1.1, seed=2)
    assert weights.mean() == pytest.approx(1.0)
    assert weights.max() / weights.sum() > 0.1
    assert not np.array_equal(weights, zipf(np.arange(1000), 1.1, seed=3))


def test_demand_by_name(shop: Log) -> None:
    truth = read_truth(shop)
    assert readers_of(None, shop, truth, seed=0).synthetic is False
    assert readers_of("uniform", shop, truth, seed=0).weights() is not None
    for bad in ("zipf:x", "often", "zipf:1:2"):
        with pytest.raises(ConfigError, match="is not a demand"):
            readers_of(bad, shop, truth, seed=0)


def test_demand_without_a_bucket_says_so(shop: Log) -> None:
    about = json.loads((shop.folder / "log.json").read_text())
    (shop.folder / "log.json").write_text(json.dumps({**about, "demand_bucket": None}))
    with pytest.raises(InputError, match=r"log\.json.*demand_bucket"):
        LoggedReaders(Log(shop.folder), read_truth(shop))


# ------------------------------------------------------------------ what the log's crawler did


def test_the_logs_visits_become_history(shop: Log) -> None:
    truth = read_truth(shop)
    told = logged_outcomes(shop, truth, at(0), at(5))
    rows = list(zip(told.page.tolist(), told.changed.tolist(), strict=True))
    assert rows == [(0, UNKNOWN), (1, UNKNOWN), (0, UNCHANGED), (0, UNKNOWN), (0, CHANGED)]
    assert told.since[4] == instant(at(1))  # the failed visit at day 2 does not count


def test_the_copies_are_those_of_the_last_answers(shop: Log) -> None:
    truth = read_truth(shop)
    held = logged_past(shop, truth, at(0), at(7))
    found = dict(zip(held.rows.tolist(), held.values.tolist(), strict=True))
    one, two = truth.value[truth.page == 0][:2]
    assert found == {0: two, 1: truth.value[truth.page == 1][0]}
    assert one != two
    stage = set_stage(shop, replace(RULES, history=5 * DAY, warmup=DAY, days=3, observe="partial"))
    score = run(stage, "logged", None)
    assert score.midnight[0] < 1


def test_logged_repeats_the_logs_visits(shop: Log) -> None:
    truth = read_truth(shop)
    policy = logged_visits(shop, truth)
    stage = set_stage(shop, replace(RULES, history=timedelta(0), warmup=timedelta(0), days=9))
    score = run(stage, "logged", None)
    assert score.visits == 7  # the page born on day 4 is visited on day 9; two visits share day 0.5
    assert policy.spends is False
    empty = read_truth(shop).take(np.array([False, False, True]))
    some = replace(empty, names=pl.Series(["z"]))
    with pytest.raises(InputError, match="no visits of these pages"):
        logged_visits(shop, some)


# ------------------------------------------------------------------------------------ the figures


def entry(policy: str, budget: float, *runs: list[float]) -> ContestEntry:
    scores = tuple(Score(clicks=list(run)) for run in runs)
    return ContestEntry(policy, budget, f"{budget:g}", scores)


def test_increases_are_paired_by_run_and_day() -> None:
    base = entry("uniform", 0.1, [0.5, 0.8], [0.4, 0.5])
    ours = entry("mine", 0.1, [0.6, 0.8], [0.5, 0.6])
    [row] = increases([base, ours])
    assert row["median_increase"] == pytest.approx(np.median([0.2, 0.0, 0.25, 0.2]))
    assert 0 < row["p_value"] <= 1
    assert increases([base, entry("mine", 0.2, [1.0, 1.0], [1.0, 1.0])]) == []
    assert increases([base, replace(base, policy="twin")])[0]["p_value"] is None


def test_savings_are_read_off_the_curves() -> None:
    base = [entry("uniform", b, [f], [f], [f]) for b, f in ((0.1, 0.5), (0.2, 0.7), (0.4, 0.9))]
    ours = [entry("mine", b, [f], [f], [f]) for b, f in ((0.1, 0.6), (0.2, 0.8), (0.4, 0.95))]
    rows = savings([*base, *ours])
    assert [row["saving"] for row in rows] == [
        None,  # even the smallest budget is better
        pytest.approx(1 - 0.15 / 0.2),
        pytest.approx(1 - (0.2 + 0.2 * 0.1 / 0.15) / 0.4),
    ]
    assert rows[1]["low"] <= rows[1]["saving"] <= rows[1]["high"]


def test_a_report_has_the_promised_form(shop: Log) -> None:
    rules = replace(RULES, history=2 * DAY, warmup=DAY, days=6)
    policies = ["uniform", "logged", "clairvoyant"]
    report = simulate(shop, rules, policies, [Budget(0.5, per_page=True)]).report()
    keys = {
        "policy", "budget", "spacing", "runs", "click_freshness", "page_freshness",
        "staleness_age_days", "visits_per_page_day", "changes_caught", "changes_missed", "seconds",
    }  # fmt: skip
    for row in report["rows"]:
        assert keys <= row.keys()
        assert {"median", "low", "high"} <= row["click_freshness"].keys()
    assert [row["policy"] for row in report["rows"]] == policies
    assert json.loads(json.dumps(report)) == report
    assert len(report["rows"][0]["daily"]["day"]) == 6


def test_freshness_by_hand(tmp_path: Path) -> None:
    """One page that changes on day 3, visited on days 0 and 5: stale on days 3 and 4."""
    pages = pl.DataFrame({"page_id": ["p"]})
    values = frame("page_id at value", ("p", at(-1), "1"), ("p", at(3), "2"))
    visits = frame("page_id at status changed", ("p", at(0), "ok", None), ("p", at(5), "ok", True))
    log = a_log(tmp_path / "p", pages=pages, values=values, visits=visits)
    rules = SimulationSettings(
        start=at(0), tick=DAY, history=timedelta(0), warmup=timedelta(0), days=10
    )
    score = run(set_stage(log, rules), "logged", None)
    assert score.midnight == [1, 1, 1, 0, 0, 1, 1, 1, 1, 1]
    assert score.age == pytest.approx((1 + 2) / 10)
    assert score.harmonic == pytest.approx(2 / 10)
    assert (score.visits, score.caught, score.missed) == (2, 1, 0)
    assert score.visits_per_page_day == pytest.approx(0.2)


def test_frozen_predictors_learn_only_from_the_history(tmp_path: Path) -> None:
    log = poisson_log(tmp_path / "p", np.geomspace(0.02, 3, 40), 30)
    rules = SimulationSettings(
        start=START, tick=DAY, history=10 * DAY, warmup=DAY, days=15, demand="uniform"
    )
    budget = Budget(0.4, per_page=True)
    scores = [
        run(set_stage(log, replace(rules, frozen=frozen)), "change_proportional", budget)
        for frozen in (False, True)
    ]
    assert scores[0].midnight != scores[1].midnight


# -------------------------------------------------------------------------------- the command line


def test_the_command_writes_table_json_and_plot(tmp_path: Path) -> None:
    poisson_log(tmp_path / "p", np.full(30, 0.5), 12)
    out, plot = tmp_path / "out.json", tmp_path / "out.html"
    words = ["simulate", str(tmp_path / "p"), "--tick", "1d", "--days", "4", "--budget", "20%",
             "--budget", "50%", "--policy", "uniform", "--policy", "clairvoyant",
             "--json", str(out), "--plot", str(plot)]  # fmt: skip
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "clairvoyant" in done.output
    report = json.loads(out.read_text())
    assert len(report["rows"]) == 4
    assert "visits made per page and day" in plot.read_text("utf-8")
    again = CliRunner().invoke(app, [*words[:-4], "--json", "-"])
    stable = [{k: v for k, v in row.items() if k != "seconds"} for row in report["rows"]]
    rows = json.loads(again.stdout)["rows"]
    assert [{k: v for k, v in row.items() if k != "seconds"} for row in rows] == stable


def test_requests_are_replayed_one_by_one(shop: Log, tmp_path: Path) -> None:
    tables = {name: shop.scan(name) for name in ("pages", "values", "demand")}
    requests = frame("page_id at", *(("a", at(d + 0.1)) for d in range(20)))
    about = {
        "name": "r",
        "resolution": "1h",
        "demand_bucket": "1d",
        "span": ["2025-12-31", "2026-01-20"],
    }
    write_log(tmp_path / "r", {**tables, "requests": requests}, about)
    words = ["simulate", str(tmp_path / "r"), "--requests", "--history", "1d", "--warmup", "0d",
             "--days", "15", "--budget", "0%", "--budget", "100%", "--json", "-"]  # fmt: skip
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    none, all_ = json.loads(done.stdout)["rows"]
    assert (none["resource"], all_["resource"]) == (0.0, 1.0)
    # days 0 to 14: the first value is true on 0-2 and 6-8; with every request sent, the copy is
    # wrong only when asked for the first time after a change, on days 3, 6 and 9, or when it failed
    assert none["freshness"]["mean"] == pytest.approx(6 / 15)
    assert 6 / 15 < all_["freshness"]["mean"] <= 12 / 15
    plot = tmp_path / "r.html"
    drawn = CliRunner().invoke(app, [*words[:-2], "--plot", str(plot)])
    assert "sent / requests" in drawn.output
    assert "days since all copies were fresh" in plot.read_text("utf-8")
    bad = CliRunner().invoke(app, [*words[:-2], "--budget", "120%"])
    assert bad.exit_code == 2
    assert "between 0 and 100%" in bad.output
