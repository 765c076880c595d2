"""The study of the paper on ECHO, in a tiny world; and what its figures mean."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from salticus.allocate.echo import EchoSources, keeping_all, quality, revisits
from salticus.charts.lefortier import facts_of, policy_tables
from salticus.cli import app
from salticus.lab.simulate.discovery import Learning, discover, dual_bound, replay
from salticus.lab.studies.lefortier import SCALES, Place, Task, at_once, dynamic, last_week, study
from salticus.lab.worlds.publishers import PublisherSettings, make_publishers, publishers
from salticus.predict.finder import KnownSources

HOURLY = PublisherSettings(sources=60, days=9, after=3, step=timedelta(hours=1))
LISTS = ("table", "five_hours", "warmup", "history", "resolve", "bins", "reach")


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return study("tiny")


def test_the_tiny_study_has_every_part(report: dict[str, Any], tmp_path: Path) -> None:
    from salticus.charts.lefortier import write_lefortier

    assert all(report[name] for name in LISTS)
    assert {row["world"] for row in report["table"]} == {"steady", "rhythm"}
    assert all(0.0 <= row["share"] <= 1.0 for row in report["table"])
    assert json.loads(json.dumps(report))["protocol"]["scale"] == "tiny"
    titles = [title for title, _ in policy_tables(report)]
    assert len(titles) == 4, "two worlds, learnt and known"
    assert "bfs: 99 % of the bound" in facts_of(report)
    write_lefortier(report, tmp_path / "study.html")
    page = (tmp_path / "study.html").read_text("utf-8")
    assert "Warm-up, by how often clicks arrive" in page


def test_no_crawl_earns_more_than_one_without_limits(report: dict[str, Any]) -> None:
    for world in report["worlds"]:
        rows = [row for row in report["table"] if row["world"] == world["name"]]
        assert max(row["profit"] for row in rows) < world["profit"]


def test_a_log_is_studied_too(tmp_path: Path) -> None:
    make_publishers(tmp_path / "log", SCALES["tiny"].publishers, 0)
    out = tmp_path / "found.json"
    command = ["study", "lefortier2013", "--scale", "tiny", "--jobs", "1", "--json", str(out)]
    done = CliRunner().invoke(app, [*command, "--log", str(tmp_path / "log")])
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text("utf-8"))
    assert {row["estimates"] for row in found["table"]} == {"learnt"}
    assert found["protocol"]["runs"] == 1


def test_without_a_limit_the_search_earns_the_bound() -> None:
    truth, _ = publishers(HOURLY, 3)
    world = replay(truth, "bfs", 1e6)
    held = np.flatnonzero(world.fetched_ >= 0)
    week = last_week(truth)
    assert dynamic(truth, held, world.fetched_[held], week) == pytest.approx(at_once(truth, week))


def test_the_dynamic_profit_is_what_was_fetched_in_the_window() -> None:
    truth, _ = publishers(replace(HOURLY, sources=5), 1)
    pages, fetched = np.arange(4), np.array([0, 1, 1, 5])
    clicks = truth.attention.after(pages, fetched)
    got = dynamic(truth, pages, fetched, 2) * 2 * 3600.0
    expected = [clicks[0], clicks[:3].sum(), clicks[1:3].sum(), 0.0, 0.0, clicks[3], clicks[3], 0.0]
    assert got[:8] == pytest.approx(expected)


def test_with_known_parameters_the_corrected_rule_is_best() -> None:
    """Must hold 2 in small: corrected ≥ published ≥ greedy, and close to the dual bound."""
    place = Place("steady", replace(HOURLY, sources=200))
    share = {
        policy: Task(place, policy, 0.3, told=True).measure()
        for policy in ("echo_newpages", "echo_newpages_published", "echo_greedy")
    }
    corrected, published, greedy = (row["share"] for row in share.values())
    assert corrected > published > greedy
    assert corrected >= 0.9 * share["echo_newpages"]["bound"]


def test_what_is_learnt_serves_almost_as_well() -> None:
    truth, known = publishers(replace(HOURLY, sources=200), 0)
    visits = 0.6 * truth.links_a_day
    score = discover(truth, "echo_newpages", visits, warmup=144)
    assert score.share >= 0.7 * dual_bound(known, visits)


def test_the_dual_bound_is_the_least_over_all_prices() -> None:
    """min over ω of Σ max(0, max over I of Q(I) − ω(1/I + λ)) + ωN (ALGORITHMS §1.3)."""
    rng = np.random.default_rng(0)
    known = KnownSources(*(np.exp(rng.normal(0.0, 1.0, (3, 12)))), np.zeros(12))
    rate, profit, decay, _ = known
    interval = np.geomspace(1e-3, 1e3, 20_000)[:, None]
    earned = rate * profit * -np.expm1(-decay * interval) / (decay * interval)
    for share in (0.2, 0.7):
        visits = share * rate.sum()
        least = np.inf
        for price in np.geomspace(1e-3, 10.0, 400):
            net = earned - price * (1.0 / interval + rate)
            least = min(least, np.maximum(net.max(axis=0), 0.0).sum() + price * visits)
        assert dual_bound(known, visits) == pytest.approx(least / (rate @ profit), rel=2e-3)
    assert np.isnan(dual_bound(known._replace(vanish=np.ones(12)), 1.0))


@pytest.mark.parametrize("published", [False, True])
def test_above_the_least_rate_no_source_is_dropped(published: bool) -> None:
    rng = np.random.default_rng(1)
    sources = EchoSources(*np.exp(rng.normal(0.0, 1.0, (3, 20))))
    least = keeping_all(sources, published=published)
    assert (revisits(sources, 1.01 * least, published=published).share == 1.0).all()
    assert (revisits(sources, 0.99 * least, published=published).share < 1.0).any()
    assert quality(sources, revisits(sources, least)) > 0.0


def test_clicks_that_arrive_late_are_learnt_late() -> None:
    truth, _ = publishers(replace(HOURLY, sources=30), 2)
    visits = 0.5 * truth.links_a_day
    never = replay(truth, "echo_newpages", visits, Learning(push=timedelta(days=99))).finder
    assert never.clicks_.sum() == 0.0
    assert replay(truth, "echo_newpages", visits).finder.clicks_.sum() > 0.0
