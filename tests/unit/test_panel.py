"""The panel: how it is drawn, that the crawl does not notice it, and what it tells."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.allocate.baselines import Uniform
from salticus.allocate.explore import Explore
from salticus.allocate.limits import Limits, Pins
from salticus.allocate.panel import Panel, Terms, choose
from salticus.clock import VirtualClock
from salticus.config import Budget
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Parts
from salticus.predict.gamma import Gamma
from salticus.schedule.even import Even
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.store.sqlite.store import SqliteStore
from salticus.testing import START, StillWorld, blank_pages
from salticus.types import (
    Gauge,
    Ints,
    Member,
    NewPage,
    Observation,
    Outcomes,
    Purpose,
    Record,
    Sample,
    Sighting,
    instant,
)
from salticus.views.panel import lives_of

from .cli_stage import DAY, NOW, SETTINGS, Stage

TERMS = Terms(1 / 6, 0)
HOUR = np.timedelta64(3600 * 10**6, "us")


@given(st.integers(2, 60), st.integers(1, 80), st.integers(0, 99))
def test_a_panel_is_drawn_from_all_and_stands_for_all(n: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pages = replace(blank_pages(n), host=rng.integers(0, 4, n), demand=rng.pareto(1.0, n) + 0.01)
    members = choose(pages, min(count, n), TERMS, seed=seed)
    assert len({member.page for member in members}) == len(members) == min(count, n)
    assert all(member.weight >= 1.0 for member in members)
    uniform = [m.weight for m in members if m.stratum.startswith("uniform")]
    assert sum(uniform) == pytest.approx(n)
    assert len(uniform) == -(-min(count, n) // 2)


def test_the_click_stratum_follows_demand() -> None:
    pages = replace(blank_pages(1000), demand=np.where(np.arange(1000) < 100, 9.0, 1.0))
    drawn = [
        member.page
        for seed in range(20)
        for member in choose(pages, 40, TERMS, seed=seed)
        if member.stratum.startswith("click")
    ]
    assert np.mean(np.array(drawn) < 100) == pytest.approx(0.5, abs=0.1)


class Fixed:
    """Keeps a panel."""

    def __init__(self, pages: Iterable[int]) -> None:
        self.members = [Member(page, "uniform", 1.0, 1 / 6, 0) for page in pages]

    async def panel(self) -> list[Member]:
        return self.members


class Heard:
    def __init__(self) -> None:
        self.pages: list[Ints] = []
        self.outcomes: list[Outcomes] = []

    def learn(self, outcomes: Outcomes) -> None:
        self.outcomes.append(outcomes)

    def of(self, *, panel: bool) -> list[tuple[int, int]]:
        """Page and time of the visits of the panel, or of all others."""
        every = [
            (int(page), int(at.astype(np.int64)))
            for o in self.outcomes
            for page, at, why in zip(o.page, o.at, o.purpose, strict=True)
            if (why == Purpose.PANEL) == panel
        ]
        return sorted(every, key=lambda visit: (visit[1], visit[0]))


def crawl(panel: Panel, days: int = 3) -> tuple[Heard, Ledger]:
    heard, ledger = Heard(), Ledger(Budget.parse(30))
    pages = replace(blank_pages(60, hosts=3), added=np.full(60, instant(START)))
    parts = Parts(
        ticks=Ticks(VirtualClock(START), timedelta(hours=2)),
        predictor=Gamma(),
        policy=Uniform(),
        spacing=Even(seed=3),
        ledger=ledger,
        planner=Planner(seed=3),
        panel=panel,
        proposers=(Limits(), Pins(), Explore(0.1, seed=3)),
    )
    loop = Loop(StillWorld(pages), parts, watchers=[heard])
    asyncio.run(loop.run(START + timedelta(days=days)))
    return heard, ledger


def test_panel_pages_are_visited_at_their_interval_beside_the_budget() -> None:
    heard, ledger = crawl(Panel(Fixed([3, 17, 40])))
    visits = heard.of(panel=True)
    assert {page for page, _ in visits} == {3, 17, 40}
    assert len(visits) >= 3 * 17  # three days, every four hours
    own = heard.of(panel=False)
    assert len(own) <= 3 * 30
    assert ledger.open_ == 0
    for page in (3, 17, 40):
        every = np.sort([at for p, at in visits if p == page])
        gaps = np.diff(every)[1:] - 4 * HOUR.astype(int)
        own_visits = sum(p == page for p, _ in own)
        assert np.count_nonzero(gaps) <= own_visits, "to the second, but for own visits between"
        assert gaps.max() <= 4 * HOUR.astype(int)


def test_the_crawl_goes_on_as_if_there_were_no_panel() -> None:
    with_panel, without = crawl(Panel(Fixed([3, 17, 40])))[0], crawl(Panel())[0]
    pages = [{page for page, _ in heard.of(panel=False)} for heard in (with_panel, without)]
    counts = [len(heard.of(panel=False)) for heard in (with_panel, without)]
    assert counts[0] == counts[1]
    assert pages[0] == pages[1]


def test_a_restored_panel_knows_the_own_visits_of_the_crawl() -> None:
    first = Panel(Fixed([3, 17]))
    crawl(first)
    again = Panel(Fixed([3, 17]))
    again.restore(first.state())
    assert again.last_.tolist() == first.last_.tolist()


def test_what_the_crawl_alone_would_have_known_is_told() -> None:
    member = Member(1, "uniform", 1.0, 1 / 6, 0)
    seen = [
        Sighting(1, 0, "policy", "a"),
        Sighting(1, 1, "panel", "a"),
        Sighting(1, 2, "panel", "b"),  # missed: over before the crawl came
        Sighting(1, 3, "panel", None),
        Sighting(1, 4, "panel", "c"),
        Sighting(1, 5, "explore", "c"),  # caught
        Sighting(1, 86_400_000_000, "panel", "c"),
    ]
    (life,) = lives_of([member], seen)
    assert (life.visits, life.failed, life.days) == (5, 1, 1.0)
    assert (life.changes, life.caught) == (2, 1)
    assert (life.checks, life.right) == (4, 2)


def test_the_panel_on_the_command_line(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.furnish()
    assert "no panel" in stage.refusal("panel", "show")
    short = stage.refusal("panel", "plan", "--pages", "2", "--every", "1h")
    assert "shorter than a tick" in short
    assert "from 1 to" in stage.refusal("panel", "plan", "--pages", "99")
    planned = stage.json("panel", "plan", "--pages", "2", "--every", "4h", "--days", "3")
    assert (planned["pages"], planned["visits a day"]) == (2, 12.0)
    assert "already" in stage.refusal("panel", "plan", "--pages", "2")
    assert stage.json("panel", "show")["strata"]
    assert "strata" in stage.ok("panel", "show")
    stage.ok("panel", "end")
    assert "no panel" in stage.refusal("panel", "end")


def test_freshness_on_the_command_line(tmp_path: Path) -> None:
    """A day of ticks, with a hundred exploring visits of which a fifth found a change."""
    stage = Stage(tmp_path, SETTINGS.replace("[fetch]", "freshness_target = 0.9\n\n[fetch]"))
    stage.furnish([])
    empty = stage.json("freshness")
    assert empty["pages"]["freshness"] is None
    assert "not known yet" in stage.ok("status")
    asyncio.run(_explored(stage.store))
    told = stage.json("freshness", "--window", "24h")
    for name in ("pages", "clicks"):
        assert told[name]["low"] < 0.8 < told[name]["high"]
        assert told[name]["model"] == pytest.approx(0.9)
    assert (told["exploring visits"], told["of them failed"]) == (100, 0)
    assert told["target"]["target"] == 0.9
    assert "%" in stage.ok("freshness")
    assert "pages 80" in stage.json("status")["freshness of the last day"]
    chart = tmp_path / "freshness.html"
    stage.ok("freshness", "--plot", str(chart))
    assert "Freshness" in chart.read_text("utf-8")


async def _explored(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.add([NewPage(f"http://c.example/{n}") for n in range(100)], at=NOW - 9 * DAY)
    pages = (await store.table()).ids.tolist()
    for number in range(12):
        at = NOW - DAY + (number + 1) * DAY // 13
        visits = np.arange(100 * number // 12, 100 * (number + 1) // 12) + 1
        n = len(visits)
        tick = Gauge(at, 1 / 12, 5, 5.0, 0.5, 0.5, 5, 5.0, 200.0)
        await store.gauge(tick, Sample(visits, np.full(n, 0.1), np.ones(n)))
        seen = [
            Observation(
                visit=int(visit),
                page=pages[int(visit)],
                at=at + k,
                purpose="explore",
                propensity=0.05,
                status="ok",
                changed=bool(visit % 5 == 0),
                since=at - 9,
                chance=0.1,
            )
            for k, visit in enumerate(visits)
        ]
        await store.record([Record(o) for o in seen])
    await store.close()
