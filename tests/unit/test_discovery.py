"""Finding new pages in the loop: what each policy visits, and what the purse pays for."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from salticus import plugins
from salticus.allocate import BUILTIN, DISCOVERY
from salticus.allocate.discover import Discover
from salticus.allocate.discovery import EchoNewpages, Miniflux, NewsCrawl, standing_of
from salticus.cli import app
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.linked import Clicked, LinkTruth, Shown, read_linked
from salticus.lab.simulate.discovery import (
    DISCOVERERS,
    DiscoverySettings,
    contest,
    discover,
    known_of,
    replay,
)
from salticus.lab.worlds.links import LinkReplay
from salticus.lab.worlds.publishers import PublisherSettings, make_publishers, publishers
from salticus.lab.worlds.sight import blind, look
from salticus.predict.finder import Finder
from salticus.testing import a_tick, blank_pages
from salticus.types import (
    CHANGED,
    NEVER,
    UNCHANGED,
    Floats,
    Harvest,
    Ints,
    Outcomes,
    Pages,
    Prospects,
    Tick,
)
from salticus.types.frames import pl

HOUR = np.timedelta64(3_600_000_000, "us")
NOW = np.datetime64("2026-01-01T00:00", "us")  # the start of the first tick


def prospects(pages: int, **columns: Floats) -> Prospects:
    """Nothing to be found, but for the columns given."""
    rate = columns.get("rate", np.zeros(pages))
    blank: dict[str, Any] = {name: np.zeros(pages) for name in Prospects.__dataclass_fields__}
    blank["remaining"] = np.full(pages, np.nan)
    blank["row"] = np.where(rate > 0.0, np.arange(pages), -1)
    blank["backlog"] = np.zeros(pages, dtype=bool)
    gaps = 2.0 ** np.arange(8) / 24.0
    blank["harvest"] = Harvest(gaps, rate[:, None] * gaps, np.ones((pages, len(gaps))))
    return Prospects(**(blank | columns))


def three_sources(waiting: int = 0) -> Pages:
    """Sources visited 1, 2 and 4 hours ago, 24 new links a day on each; and pages that wait."""
    n = 3 + waiting
    last = np.full(n, NEVER)
    last[:3] = NOW - np.array([1, 2, 4]) * HOUR
    remaining = np.full(n, np.nan)
    remaining[3:] = 1.0
    rate, one = np.zeros(n), np.ones(n)
    rate[:3] = 24.0
    told = prospects(n, rate=rate, profit=one, decay=one, remaining=remaining, usual=one)
    added = np.full(n, NOW) - np.arange(n) * HOUR
    return replace(blank_pages(n), last_visit=last, added=added, prospects=told)


def test_found_pages_come_first_and_sources_leave_room_for_what_they_bring() -> None:
    bfs = plugins.make("policy", "bfs", DISCOVERY, seed=0)
    expected = bfs.expected(three_sources(waiting=2), 8.0)
    assert expected.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert bfs.expected(three_sources(waiting=2), 1.0).tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("name", DISCOVERERS)
@given(visits=st.floats(0.0, 40.0), waiting=st.integers(0, 9))
def test_no_policy_plans_more_than_the_visits(name: str, visits: float, waiting: int) -> None:
    pages = three_sources(waiting)
    policy = plugins.make("policy", name, BUILTIN | DISCOVERY, seed=0)
    expected = policy.expected(pages, visits)
    assert np.all((expected >= 0.0) & (expected <= 1.0))
    assert expected.sum() <= visits + 1e-9
    mixed = np.random.default_rng(1).permutation(len(pages))
    again = policy.expected(pages.take(mixed), visits)
    assert np.allclose(again, expected[mixed]), "the order of the rows does not matter"


def test_a_schedule_leaves_sources_alone_until_they_are_due() -> None:
    pages = three_sources(waiting=4)
    fixed = plugins.make("policy", "fixed_sources", DISCOVERY, seed=0)  # once a day
    assert fixed.expected(pages, 40.0)[:3].tolist() == [0.0, 0.0, 0.0]


def test_miniflux_divides_by_the_time_observed() -> None:
    """50 entries in 30 hours are 275 in a week: every 36.7 minutes (miniflux issue 2166)."""
    pages = three_sources()
    assert pages.prospects is not None
    entries, span = np.array([50.0, 1.0, 0.0]), np.array([30 / 24, 0.0, 0.0])
    pages = replace(pages, prospects=replace(pages.prospects, entries=entries, span=span))
    standing = standing_of(pages)
    minutes = 1440 * Miniflux().intervals(pages, standing)
    assert minutes[np.argsort(standing.sources)] == pytest.approx([10080 / 275, 1440.0, 1440.0])


def test_the_news_crawler_waits_longer_after_nothing_new() -> None:
    policy = NewsCrawl()
    for changed in (UNCHANGED, UNCHANGED, CHANGED):
        policy.learn(Outcomes.known(page=np.array([0]), at=NOW, changed=changed))
    assert policy.interval_.values * 24 == pytest.approx([1.5 * 1.5 * 1.5 * 0.8])
    for _ in range(20):
        policy.learn(Outcomes.known(page=np.array([0]), at=NOW, changed=CHANGED))
    assert policy.interval_.values * 24 == pytest.approx([1.5])


@given(
    worth=st.lists(st.floats(0.0, 10.0), max_size=12),
    purse=st.integers(0, 8),
    price=st.floats(0.0, 10.0),
)
def test_the_purse_pays_for_the_best_and_is_never_overdrawn(
    worth: list[float], purse: int, price: float
) -> None:
    part, found = Discover(), 100 + np.arange(len(worth))
    part.open(replace(blank_pages(1), tick=a_tick()), np.full(purse, NOW))
    wait, plan = part.ask(found, np.array(worth), NOW, price=price)
    assert sorted([*wait.tolist(), *plan.page.tolist()]) == found.tolist()
    good = sorted((w for w in worth if w >= price), reverse=True)
    assert sorted((worth[page - 100] for page in plan.page), reverse=True) == good[:purse]
    assert len(part.ask(found, np.full(len(found), 99.0), NOW)[1]) <= purse - len(plan)
    assert len(np.unique(plan.visit)) == len(plan)


# ------------------------------------------------------------------------------------- the world


def a_world(*, steps: int = 240, sources: int = 6, seed: int = 0, clicks: bool = True) -> LinkTruth:
    """Sources with links at different rates that stand for some hours, and clicks that decay."""
    rng = np.random.default_rng(seed)
    rate = np.geomspace(0.05, 2.0, sources)  # links an hour
    source = np.repeat(np.arange(sources), rng.poisson(rate * steps))
    appeared = rng.integers(0, steps, len(source))
    order = np.lexsort((appeared, source))
    source, appeared = source[order], appeared[order]
    vanished = np.minimum(appeared + rng.geometric(0.1, len(source)), steps - 1)
    page = rng.permutation(len(source))
    born = np.empty(len(source), dtype=np.int64)
    born[page] = appeared
    shown = Shown(page, appeared, vanished, len(page))
    return LinkTruth(
        names=[f"s{k}" for k in range(sources)],
        pages=len(page),
        first=np.searchsorted(source, np.arange(sources + 1)),
        page=page,
        appeared=appeared,
        vanished=vanished,
        born=born,
        start=datetime(2026, 1, 1, tzinfo=UTC),
        step=timedelta(hours=1),
        steps=steps,
        attention=_clicks(born, steps, rng) if clicks else shown,
    )


def _clicks(born: Ints, steps: int, rng: np.random.Generator) -> Clicked:
    each = rng.poisson(5.0, len(born))
    page = np.repeat(np.arange(len(born)), each)
    step = born[page] + rng.geometric(0.2, len(page)) - 1
    here = step < steps
    return Clicked(page[here], step[here], np.ones(int(here.sum())), len(born))


@pytest.mark.parametrize("name", DISCOVERERS)
def test_every_policy_finds_pages_within_its_budget(name: str) -> None:
    truth = a_world()
    visits = 0.3 * truth.links_a_day
    score = discover(truth, name, visits, warmup=48)
    made = score.source_visits + score.page_visits
    assert made <= visits * (truth.steps / 24 + 1) + 2
    assert 0.0 < score.share < 1.0
    assert discover(truth, name, visits, warmup=48).share == score.share, "the same seed, the same"


def test_links_at_the_first_visit_are_counted_also_where_a_source_has_none() -> None:
    truth = a_world(steps=48)
    empty = np.append(truth.first, truth.first[-1])
    truth = replace(truth, names=[*truth.names, "empty"], first=empty)
    finder = Finder(truth.sources, resolution=1 / 24)
    LinkReplay(truth, finder)
    source = np.repeat(np.arange(truth.sources), np.diff(truth.first))
    there = np.bincount(source[truth.appeared == 0], minlength=truth.sources)
    assert finder.finds.shown_.tolist() == there.tolist()
    assert there[-1] == 0


@pytest.mark.parametrize("clicks", [True, False])
def test_without_a_limit_every_page_is_held_from_its_first_step(clicks: bool) -> None:
    score = discover(a_world(clicks=clicks), "bfs", 1e6, warmup=24)
    assert (score.share, score.found, score.fetched, score.unseen) == (1.0, 1.0, 1.0, 0.0)
    assert score.delay_hours == 0.0
    assert all(day == pytest.approx(1.0) for day in score.daily)


def test_clicks_after_a_step_are_those_of_all_later_steps() -> None:
    for truth in (a_world(steps=60), a_world(steps=60, clicks=False)):
        pages = np.arange(truth.pages)
        steps = np.array([truth.attention.during(step, pages) for step in range(truth.steps)])
        for step in (0, 7, 59):
            after = truth.attention.after(pages, np.full(truth.pages, step))
            assert after == pytest.approx(steps[step:].sum(axis=0))
        truth.attention.rewind()
        assert truth.attention.during(0, pages) == pytest.approx(steps[0])


# ---------------------------------------------------------------------------------- the publishers

SMALL = PublisherSettings(sources=40, days=8, links=6.0, step=timedelta(hours=1))


def test_a_world_of_publishers_has_the_rates_and_clicks_it_says() -> None:
    truth, told = publishers(replace(SMALL, sources=200), seed=1)
    assert truth.links_a_day == pytest.approx(told.rate.sum(), rel=0.05)
    source = np.repeat(np.arange(truth.sources), np.diff(truth.first))
    early = truth.appeared < 48  # whose clicks have almost all come
    clicks = truth.attention.after(truth.page[early], truth.born[truth.page[early]])
    assert clicks.sum() == pytest.approx(told.profit[source[early]].sum(), rel=0.1)


@pytest.mark.parametrize("steady", [True, False])
def test_links_of_a_source_are_in_order_and_stand_where_they_should(steady: bool) -> None:
    truth, _ = publishers(replace(SMALL, steady=steady, shown=5), seed=2)
    source = np.repeat(np.arange(truth.sources), np.diff(truth.first))
    same = np.diff(source) == 0
    assert np.all(np.diff(truth.appeared)[same] >= 0)
    assert np.all(truth.vanished >= truth.appeared)
    if steady:
        assert np.all(truth.vanished == truth.steps - 1)
    else:
        standing = (truth.appeared <= 100) & (truth.vanished > 100)
        assert np.bincount(source[standing]).max() <= 5
        assert len(truth.page) > truth.pages, "some stand on two sources"


def test_a_world_of_publishers_is_the_same_from_its_log(tmp_path: Path) -> None:
    settings = replace(SMALL, steady=False, shown=5)
    truth, known = publishers(settings, 2)
    make_publishers(tmp_path / "log", settings, 2)
    log = Log(tmp_path / "log")
    again = read_linked(log, settings.step)
    assert (again.sources, again.pages, again.steps) == (truth.sources, truth.pages, truth.steps)
    order = np.argsort([int(name) for name in again.names])
    told = known_of(log, again)
    for column, true in zip(told, known, strict=True):
        assert column[order] == pytest.approx(true)
    assert again.links_a_day == pytest.approx(truth.links_a_day)
    every = np.arange(truth.pages)
    clicks = (t.attention.after(every, np.zeros(truth.pages, int)).sum() for t in (truth, again))
    assert next(clicks) == next(clicks)


def test_a_log_may_say_of_which_formats_its_sources_are(tmp_path: Path) -> None:
    """Feeds are then looked at more often by custom, and none is taken for another's."""
    make_publishers(tmp_path / "log", replace(SMALL, sources=3, days=2), 0)
    log = Log(tmp_path / "log")
    assert read_linked(log, timedelta(minutes=30)).usual.tolist() == [0.5] * 3
    formats = pl.col("page_id").replace_strict({0: "rss", 2: "sitemap"}, default=None)
    pages = log.scan("pages").with_columns(format=formats).collect()
    pages.write_parquet(log.path("pages"))
    truth = read_linked(Log(tmp_path / "log"), timedelta(minutes=30))
    usual = dict(zip(truth.names, truth.usual.tolist(), strict=True))
    assert usual == {"0": 1 / 48, "1": 0.5, "2": 1.0}
    world = replay(truth, "fixed_sources", 1e6)
    looks = dict(zip(truth.names, world.sight_.visits.tolist(), strict=True))
    assert looks["0"] > 10 * looks["1"] > 10 * looks["2"]


def test_without_what_is_true_there_is_no_oracle(tmp_path: Path) -> None:
    make_publishers(tmp_path / "log", replace(SMALL, sources=3, days=2), 0)
    log = Log(tmp_path / "log")
    log.scan("pages").drop("profit").collect().write_parquet(log.path("pages"))
    with pytest.raises(InputError, match="without the column `profit`; use --estimates history"):
        contest(Log(tmp_path / "log"), DiscoverySettings(oracle=True), ["bfs"], [])


# ------------------------------------------------------------------------------- ECHO as it is run


@pytest.mark.parametrize("name", ["echo_newpages", "echo_schedule"])
def test_pages_worth_less_than_the_price_wait_while_sources_are_due(name: str) -> None:
    """Or a source not visited for days would keep the crawl busy with what nobody wants."""
    pages = three_sources(waiting=3)
    assert pages.prospects is not None
    worth = np.array([np.nan] * 3 + [1e-9, 1e9, 0.0])
    pages = replace(pages, prospects=replace(pages.prospects, remaining=worth))
    policy = plugins.make("policy", name, DISCOVERY, seed=0)
    assert policy.expected(pages, 3.0)[3:].tolist() == [1.0, 1.0, 0.0], "no source is due"
    policy.adopt()
    assert 1e-9 < policy.price_ < 1e9
    due = np.where(np.arange(len(pages)) < 3, NOW - 400 * HOUR, pages.last_visit)
    assert not policy.expected(replace(pages, last_visit=due), 3.0)[[3, 5]].any()
    assert plugins.make("policy", f"{name}_published", DISCOVERY, seed=0).expected(pages, 40.0)[3]


def test_intervals_are_for_what_the_budget_brings_on_average() -> None:
    """Not for the visits of one tick, or more sources are kept than all ticks together pay for."""
    pages = three_sources()
    policy = plugins.make("policy", "echo_newpages", DISCOVERY, seed=0)
    standing = standing_of(pages)
    policy.pace(2.0)
    assert np.array_equal(*(policy.intervals(pages, standing, visits) for visits in (1.0, 9.0)))
    policy.pace(4.0)
    assert not np.array_equal(
        policy.intervals(pages, standing, 1.0), EchoNewpages().intervals(pages, standing, 1.0)
    )


def test_what_sources_promise_is_worked_out_every_half_hour() -> None:
    truth, _ = publishers(replace(SMALL, sources=5, step=timedelta(minutes=10)), 0)
    finder, solved = Finder(truth.sources, resolution=1 / 72), []
    finder.solve = lambda: solved.append(1)  # type: ignore[method-assign]
    world = LinkReplay(truth, finder)
    for number in range(9):
        start = truth.start + number * truth.step
        asyncio.run(world.pages(Tick(number, start, start + truth.step)))
    assert len(solved) == 3


def test_a_page_on_several_sources_counts_for_the_first_or_for_all() -> None:
    truth, _ = publishers(replace(SMALL, sources=8, steady=False, again=0.9), 2)
    every, last = np.arange(truth.sources), truth.steps - 1
    sight = [blind(truth), blind(truth)]
    once, one = look(sight[0], truth, every, last)
    shared, all_ = look(sight[1], truth, every, last, shared=True)
    assert np.array_equal(one, all_), "it is found once, either way"
    assert once.new.sum() == len(one)
    assert shared.new.sum() > len(one)
    assert np.all(shared.new >= once.new)


def test_how_a_replayed_crawl_learns_is_an_option(tmp_path: Path) -> None:
    make_publishers(tmp_path / "log", replace(SMALL, sources=6, days=4, steady=False), 0)
    command = ["simulate", str(tmp_path / "log"), "--rate", "30%", "--policy", "echo_newpages"]
    shares = set()
    for more in ([], ["--credit", "all"], ["--push", "2d"], ["--remember", "2"]):
        out = tmp_path / "found.json"
        done = CliRunner().invoke(app, [*command, *more, "--json", str(out)])
        assert done.exit_code == 0, done.output
        (row,) = json.loads(out.read_text("utf-8"))["rows"]
        finite = [hours for hours in row["delays"] if hours is not None]
        assert len(row["delays"]) == 9
        assert finite == sorted(finite)
        shares.add(row["share"])
    assert len(shares) > 1
