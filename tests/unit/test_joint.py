"""Offers and publishers on one budget: the laws of the joint world, one price beside splits."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from salticus.allocate.leap import Leap
from salticus.cli import app
from salticus.crawl.loop import Loop
from salticus.crawl.scout import admit
from salticus.errors import ConfigError
from salticus.exchange.folder import Log
from salticus.exchange.linked import LinkTruth
from salticus.lab.simulate.discovery import LEARNING
from salticus.lab.simulate.joint import (
    Knowing,
    Watcher,
    crawl_both,
    joint_parts,
    joint_world,
    links_beside,
    taught_of,
)
from salticus.lab.simulate.readers import Drawn
from salticus.lab.simulate.stage import SimulationSettings, Stage, set_stage
from salticus.lab.studies.one_price import OnePriceSettings, study
from salticus.lab.worlds.links import LinkReplay
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.lab.worlds.publishers import PublisherSettings, make_publishers, publishers
from salticus.lab.worlds.replay import Replay
from salticus.predict.gamma import Gamma

DAY = timedelta(days=1)
TICK = timedelta(hours=4)
RULES = SimulationSettings(tick=TICK, history=5 * DAY, warmup=3 * DAY, days=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("joint") / "log"
    make_market(where, MarketSize(150, 12), seed=3)
    return where


@pytest.fixture(scope="module")
def stage(folder: Path) -> Stage:
    return set_stage(Log(folder), RULES)


def no_links(stage: Stage) -> LinkTruth:
    truth, _ = publishers(PublisherSettings(sources=0, days=8, step=TICK), 0)
    return replace(truth, start=stage.crawl - TICK)


def unread(stage: Stage) -> Stage:
    return replace(stage, readers=Drawn(np.zeros(len(stage.truth))))


def offers_alone(stage: Stage, visits: float) -> Replay:
    world = Replay(stage.truth, stage.readers, seed=stage.seed)
    world.begin(stage.crawl)
    world.sync(stage.crawl - stage.rules.tick)
    loop = Loop(world, joint_parts(stage, Leap(), taught_of(stage), visits))
    asyncio.run(loop.run(stage.end))
    return world


def test_without_sources_it_is_the_replay_of_the_offers(stage: Stage) -> None:
    both = joint_world(stage, no_links(stage), LEARNING, Watcher(stage))
    loop = Loop(both, joint_parts(stage, Leap(), taught_of(stage), 20.0))
    asyncio.run(loop.run(stage.end))
    alone = offers_alone(stage, 20.0)
    np.testing.assert_array_equal(both.offers.last_visit_, alone.last_visit_)
    np.testing.assert_array_equal(both.offers.copies.held, alone.copies.held)


def test_offers_that_nobody_reads_change_nothing_for_the_links(stage: Stage) -> None:
    stage = unread(stage)
    links = links_beside(stage, "12")
    both = joint_world(stage, links, LEARNING, Watcher(stage))
    loop = Loop(both, joint_parts(stage, Leap(), Gamma(), 40.0))
    both.asks = partial(admit, loop)
    asyncio.run(loop.run(stage.end))
    alone = LinkReplay(links, LEARNING.finder(links))
    loop = Loop(alone, joint_parts(stage, Leap(), Gamma(), 40.0))
    alone.asks = partial(admit, loop)
    asyncio.run(loop.run(stage.end))
    assert (alone.fetched_ >= 0).any()
    np.testing.assert_array_equal(both.links.fetched_, alone.fetched_)
    np.testing.assert_array_equal(both.links.sight_.visits, alone.sight_.visits)


@pytest.mark.parametrize("finding", [0.25, 0.5])
def test_known_pages_get_exactly_what_a_fixed_split_leaves_them(
    stage: Stage, finding: float
) -> None:
    score = crawl_both(stage, links_beside(stage, "12"), 48.0, finding=finding)
    assert score.visits[0] == pytest.approx((1.0 - finding) * 48.0 * RULES.days, abs=2)
    assert sum(score.visits) <= 48.0 * (RULES.days or 0)


def test_what_is_served_is_part_of_what_is_wanted_and_of_the_budget(stage: Stage) -> None:
    score = crawl_both(stage, links_beside(stage, "12"), 48.0)
    assert all(0.0 < got < all_ for got, all_ in zip(score.served, score.wanted, strict=True))
    assert 0.8 < sum(score.visits) / (48.0 * (RULES.days or 0)) <= 1.0


def test_one_price_serves_about_as_many_clicks_as_the_best_split() -> None:
    settings = OnePriceSettings(
        offers=600, sources=30, history=14, warmup=7, days=7, tick=TICK, runs=1, seed=1
    )
    report = study(settings, (0.05, 0.2), (0.2, 0.5, 0.8))
    assert [row["ratio"] >= 0.97 for row in report["table"]] == [True, True]


def test_the_same_crawl_twice_serves_the_same(stage: Stage) -> None:
    links, knowing = links_beside(stage, "12"), Knowing(taught_of(stage))
    first, again = (crawl_both(stage, links, 30.0, knowing=knowing) for _ in range(2))
    assert (first.served, first.visits) == (again.served, again.visits)


def test_links_that_end_too_soon_and_shares_that_are_none_are_refused(
    stage: Stage, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="share of the visits"):
        Leap(finding=1.5)
    make_publishers(tmp_path / "links", PublisherSettings(sources=2, days=2, step=TICK), 0)
    with pytest.raises(ConfigError, match="the links last 1 days"):
        links_beside(stage, str(tmp_path / "links"))


def test_the_commands_print_what_was_served(folder: Path, tmp_path: Path) -> None:
    args = ["--publishers", "5", "--split", "30%", "--tick", "4h", "--history", "5d"]
    more = ["--warmup", "3d", "--days", "2", "--json", "-"]
    done = CliRunner().invoke(app, ["simulate", str(folder), *args, *more])
    rows = json.loads(done.stdout)["rows"]
    assert [row["split"] for row in rows] == [None, 0.3]
    out = tmp_path / "study.json"
    small = ["--offers", "60", "--sources", "4", "--days", "1", "--runs", "1", "--json", str(out)]
    CliRunner().invoke(app, ["study", "one-price", "--budget", "10%", "--split", "50%", *small])
    assert json.loads(out.read_text())["table"][0]["split"] == 0.5


def test_splits_need_publishers_and_publishers_no_policy(folder: Path) -> None:
    for args in (["--split", "30%"], ["--publishers", "5", "--policy", "uniform"]):
        assert CliRunner().invoke(app, ["simulate", str(folder), *args]).exit_code == 2
