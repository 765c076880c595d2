"""InstaCrawl and the Batch Scheduler in simulation: one loop, one budget."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from salticus.cli import app
from salticus.config import Budget
from salticus.exchange.folder import Log
from salticus.lab.bench.replay import poisson_log
from salticus.lab.simulate import SimulationSettings
from salticus.lab.simulate.clicking import clicks_of
from salticus.lab.simulate.referee import Score
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import InstaSettings, Stage, set_stage
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.types import DAY, Outcomes, Purpose, instant

_DAY = timedelta(days=1)
_TICK = timedelta(hours=6)
RULES = SimulationSettings(tick=_TICK, history=2 * _DAY, warmup=_DAY, days=3, predictor="gamma")
INSTA = InstaSettings(share=0.4, gate="uniform", gate_share=0.9)
BUDGET = 120  # visits a day


class Witness:
    """Keeps every outcome of a run."""

    def __init__(self) -> None:
        self.outcomes: list[Outcomes] = []

    def learn(self, outcomes: Outcomes) -> None:
        self.outcomes.append(outcomes)

    def made(self) -> Outcomes:
        whole = reduce(Outcomes.join, self.outcomes)
        return whole.take(whole.made)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder = tmp_path_factory.mktemp("two") / "market"
    make_market(folder, MarketSize(150, 8), seed=4)
    return Log(folder)


def crawled(stage: Stage, policy: str = "leap") -> tuple[Score, Outcomes]:
    witness = Witness()
    score = run(stage, policy, Budget(BUDGET, per_page=False), [witness])
    return replace(score, seconds=0.0), witness.made()


@settings(max_examples=8, deadline=None)
@given(
    share=st.sampled_from([0.1, 0.4, 1.0]),
    gate=st.sampled_from(["uniform", "instacrawl", "threshold"]),
    delay=st.sampled_from([None, timedelta(hours=1), timedelta(hours=4)]),
    policy=st.sampled_from(["uniform", "leap"]),
    seed=st.integers(0, 1000),
)
def test_both_keep_to_one_budget_and_to_what_hosts_can_take(
    log: Log, share: float, gate: str, delay: timedelta | None, policy: str, seed: int
) -> None:
    insta = replace(INSTA, share=share, gate=gate)
    stage = set_stage(log, replace(RULES, insta=insta, delay=delay, seed=seed))
    _, made = crawled(stage, policy)
    at = np.sort(made.at)
    within = np.arange(len(at)) - np.searchsorted(at, at - DAY, side="right") + 1
    assert within.max(initial=0) <= BUDGET  # in any 24 hours
    assert len(np.unique(made.visit)) == len(made)
    number = (made.at - instant(stage.crawl)) // np.timedelta64(_TICK)
    if delay is not None:
        host = stage.truth.host[np.searchsorted(stage.truth.ids, made.page)]
        _, load = np.unique(np.stack([number, host]), axis=1, return_counts=True)
        assert load.max(initial=0) <= math.ceil(_TICK / delay)
    urgent = made.purpose == Purpose.INSTA
    spent = np.bincount(number[urgent].astype(np.int64), minlength=1)
    most = 2 * BUDGET * (_TICK / _DAY) + 1  # a tick has its own visits, and one tick's left over
    assert spent.max() <= share * most


def test_urgent_visits_are_made_when_somebody_clicks_and_at_no_other_time(log: Log) -> None:
    stage = set_stage(log, replace(RULES, insta=INSTA))
    score, made = crawled(stage)
    clicks = clicks_of(stage)
    asked = set(zip(stage.truth.ids[clicks.page].tolist(), clicks.at.tolist(), strict=True))
    urgent = made.take(made.purpose == Purpose.INSTA)
    assert len(urgent)
    assert set(zip(urgent.page.tolist(), urgent.at.tolist(), strict=True)) <= asked
    assert score.purposes["insta"] <= len(urgent)
    assert score.purposes.total() == score.visits
    assert 0 < score.stale_clicks < score.clicked
    assert (made.at >= made.since)[~np.isnat(made.since)].all()  # no visit goes back in time


def test_dear_pages_count_for_what_they_cost(log: Log) -> None:
    stage = set_stage(log, replace(RULES, insta=INSTA, rendered=1.0))
    score, made = crawled(stage)
    at = np.sort(made.at)
    within = np.arange(len(at)) - np.searchsorted(at, at - DAY, side="right") + 1
    assert 0 < within.max() <= BUDGET // 5
    assert score.cost == 5 * score.visits


def test_the_same_seed_gives_the_same_result(log: Log) -> None:
    rules = replace(RULES, insta=INSTA, delay=timedelta(hours=1), rendered=0.2, explore=0.1)
    (first, some), (second, others) = (crawled(set_stage(log, rules)) for _ in range(2))
    assert some.visit.tolist() == others.visit.tolist()
    assert some.at.tolist() == others.at.tolist()
    assert repr(first) == repr(second)


@pytest.mark.parametrize("policy", ["uniform", "leap"])
def test_with_nothing_set_aside_all_is_as_without_insta_crawl(log: Log, policy: str) -> None:
    without, made = crawled(set_stage(log, RULES), policy)
    nothing = replace(RULES, insta=replace(INSTA, share=0.0))
    score, alike = crawled(set_stage(log, nothing), policy)
    assert alike.visit.tolist() == made.visit.tolist()
    assert alike.at.tolist() == made.at.tolist()
    assert score.visited.tolist() == without.visited.tolist()
    unclicked = replace(score, clicked=0, stale_clicks=0, windows=[])
    assert repr(unclicked) == repr(without)  # bit by bit


def test_a_log_without_requests_has_its_clicks_drawn(tmp_path: Path) -> None:
    log = poisson_log(tmp_path / "log", np.full(20, 0.5), 12, seed=1)
    rules = replace(RULES, insta=INSTA, demand="uniform")
    clicks, again = (clicks_of(set_stage(log, rules)) for _ in range(2))
    stage = set_stage(log, rules)
    assert clicks.at.tolist() == again.at.tolist() == sorted(clicks.at.tolist())
    assert len(clicks) == pytest.approx(20 * 4, rel=0.5)  # one a page and day
    assert clicks.at.min() >= instant(stage.crawl)
    assert clicks.at.max() < instant(stage.end)
    assert (clicks.at >= stage.truth.born[clicks.page]).all()


def test_the_command_tells_what_clicks_found(log: Log, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = ["simulate", str(log.folder), "--policy", "leap", "--budget", "80%", "--tick", "6h"]
    words += ["--history", "2d", "--warmup", "1d", "--days", "3", "--json", str(out)]
    done = CliRunner().invoke(app, [*words, "--insta", "40%", "--gate-share", "90%"])
    assert done.exit_code == 0, done.output
    assert "urgent visits" in done.output
    report = json.loads(out.read_text())
    insta = {"share": 0.4, "gate": "instacrawl", "gate_share": 0.9, "horizon": None}
    assert report["rules"]["insta"] == insta
    [row] = report["rows"]
    assert 0 < row["stale_clicks"] < 1
    assert row["visits_by_purpose"]["insta"] > 0
    for wrong in (["--requests", "--insta", "1%"], ["--gate", "uniform"]):
        assert CliRunner().invoke(app, [*words, *wrong]).exit_code == 2
