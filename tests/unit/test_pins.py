"""Fixed intervals, pauses and windows of hours: from the settings to the plan."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.allocate.baselines import Uniform
from salticus.allocate.capacity import within_capacity
from salticus.allocate.explore import Explore
from salticus.allocate.limits import Pins, check_feasible, forced
from salticus.clock import SystemClock
from salticus.config import Hours, Scope, parse
from salticus.crawl.census import Census
from salticus.crawl.live import Live
from salticus.errors import ConfigError, Infeasible
from salticus.store.base import Store
from salticus.store.nouns import Edit, Query
from salticus.store.sqlite.store import SqliteStore
from salticus.testing import START, MemoryStore, a_grant, a_tick, blank_pages
from salticus.types import (
    DAY,
    NEVER,
    Count,
    Floats,
    Ints,
    NewPage,
    Pages,
    Target,
    Tick,
    Times,
    instant,
)

NOBODY: Ints = np.empty(0, dtype=np.int64)
SHOP = "http://shop.example/"


def pinned(interval: Floats, ago: Floats) -> Pages:
    """Pages with intervals, last visited so many days ago."""
    n = len(interval)
    last: Times = instant(START) - np.rint(ago * DAY.astype(np.int64)).astype("m8[us]")
    return replace(blank_pages(n), interval=interval, last_visit=last)


# --------------------------------------------------------------------------------------- the tick


def test_a_pinned_page_is_visited_in_the_tick_in_which_its_interval_ends() -> None:
    hour = 1 / 24
    ago = np.array([10, 10 - 1e-6, 12, 11.99, 40, 2]) * hour  # the tick is two hours long
    pages = pinned(np.array([12, 12, 12, 12, 12, np.nan]) * hour, ago)
    assert Pins().draw(pages, a_grant(99), a_tick()).rows.tolist() == [4, 2, 3]
    assert Pins().draw(pages, a_grant(99), a_tick(1)).rows[-2:].tolist() == [0, 1]


def test_a_pinned_page_that_was_never_visited_is_due_first() -> None:
    pages = pinned(np.full(3, 1.0), np.array([5.0, 0.0, 3.0]))
    pages.last_visit[1] = NEVER
    assert Pins().draw(pages, a_grant(99), a_tick()).rows.tolist() == [1, 0, 2]


@given(st.data())
def test_pins_take_what_hosts_and_budget_leave(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    visits = data.draw(st.integers(0, 20))
    pages = replace(
        pinned(rng.choice([0.1, 1.0, np.nan], n), rng.random(n) * 3),
        host=rng.integers(0, 3, n),
        cost=rng.choice([1.0, 3.0], n),
        open=rng.random(n) < 0.8,
        capacity=np.array([2.0, 5.0, np.inf]),
    )
    taken = rng.permutation(n)[: data.draw(st.integers(0, 2))]
    taken = taken[np.cumsum(pages.cost[taken]) <= visits]
    drawn = Pins().draw(pages, a_grant(visits, taken=taken), a_tick()).rows
    rows = np.concatenate([taken, drawn])
    assert np.array_equal(rows[: len(taken)], taken), "what was there comes first"
    assert len(np.unique(rows)) == len(rows)
    more = rows[len(taken) :]
    assert np.all(pages.open[more] & ~np.isnan(pages.interval[more]))
    assert pages.cost[rows].sum() <= visits
    load, before = (np.bincount(pages.host[some], minlength=3) for some in (rows, taken))
    assert np.all(load <= np.maximum(pages.capacity, before))


def test_a_closed_page_is_not_forced_and_comes_as_soon_as_it_opens() -> None:
    pages = replace(
        blank_pages(2), max_interval=np.full(2, 0.5), last_visit=np.full(2, instant(START) - DAY)
    )
    shut = replace(pages, open=np.array([True, False]))
    assert forced(shut, 9, 9.0, a_tick()).tolist() == [0]
    assert forced(pages, 9, 9.0, a_tick()).tolist() == [0, 1]


@given(st.data())
def test_neither_policy_nor_lot_comes_back_within_the_minimum_interval(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    pages = replace(
        pinned(rng.choice([1.0, np.nan, np.nan], n), rng.choice([0.0, 0.5, 1.0, 2.0], n)),
        min_interval=rng.choice([0.0, 0.5, 1.0, 1.5], n),
        max_interval=rng.choice([0.1, np.inf], n),
    )
    pages.last_visit[rng.random(n) < 0.1] = NEVER
    ago = (instant(START) - pages.last_visit) / DAY
    early = ago < pages.min_interval
    drawn = Explore(1.0, seed=3).draw(pages, a_grant(10 * n), a_tick()).rows
    expected = within_capacity(Uniform(), pages, float(n), NOBODY)
    free = np.isnan(pages.interval) & ~early
    assert sorted(drawn) == np.flatnonzero(free).tolist()
    assert expected.tolist() == free.tolist()
    must = forced(pages, n, n, a_tick())
    limits = np.concatenate([must, Pins().draw(pages, a_grant(n, taken=must), a_tick()).rows])
    wanted = np.isfinite(pages.max_interval) | ((ago >= 1.0) & ~np.isnan(pages.interval))
    assert set(limits) >= set(np.flatnonzero(wanted & (ago > 0.1))), "law: these come all the same"


# ------------------------------------------------------------------------------- what can be kept


def test_pins_count_against_the_budget() -> None:
    pages = replace(blank_pages(10), interval=np.full(10, 0.25))
    with pytest.raises(Infeasible, match="the fixed intervals need .* at least 40 visits") as error:
        check_feasible(pages, 39, a_tick())
    assert error.value.needed == pytest.approx(40)
    check_feasible(pages, 40, a_tick())
    both = replace(pages, max_interval=np.array([1.0, 7.0] * 5))
    with pytest.raises(Infeasible, match="maximum and fixed intervals.*`max_interval` or `inter"):
        check_feasible(both, 39, a_tick())
    check_feasible(both, 40, a_tick())  # the pins keep the maximum intervals


def test_pins_count_against_what_a_host_can_take() -> None:
    pages = replace(blank_pages(10), interval=np.full(10, 0.25), capacity=np.array([3.0]))
    with pytest.raises(Infeasible, match="36 visits a day, but the fixed intervals .* need 40"):
        check_feasible(pages, 99, a_tick())


def test_a_fixed_interval_is_no_shorter_than_a_tick() -> None:
    pages = replace(blank_pages(2), interval=np.array([np.nan, 1 / 24]))
    with pytest.raises(Infeasible, match="a fixed interval of 1 h needs ticks of at most 1 h"):
        check_feasible(pages, 1e6, a_tick())
    check_feasible(pages, 1e6, a_tick(length=timedelta(hours=1)))


# ------------------------------------------------------------------------------------ the settings


def test_rules_may_say_when() -> None:
    text = {"interval": "6h", "max_interval": "1d", "hours": "08:00-20:00", "pause": True}
    rule = parse({"pages": [{"match": "*", **text}]}).pages[0]
    assert (rule.interval, rule.max_interval, rule.pause) == (DAY / 4, DAY, True)
    assert rule.hours is not None
    assert rule.hours.length == timedelta(hours=12)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"interval": "0s"}, "interval of pages that match '\\*' must be more than 0"),
        ({"max_interval": 0}, "max_interval of pages that match '\\*' must be more than 0"),
        ({"hours": "08:00-09:00"}, "a window of 1:00:00 needs ticks of at most 0:30:00"),
        ({"interval": "often"}, "not a duration"),
        ({"min_interval": "0s"}, "min_interval of pages that match '\\*' must be more than 0"),
        ({"min_interval": "3d", "max_interval": "1d"}, "below its min_interval of 3 days"),
        (
            {"min_interval": "3d", "tag": "tea"},
            "of pages with the tag 'tea' is 2 days",
        ),
        ({"importance": -1.0}, "importance of pages that match '\\*' must be 0 or more"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(setting: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse({"max_interval": "2d", "pages": [{"match": "*", **setting}]})


def test_a_rule_says_which_pages_it_is_for() -> None:
    with pytest.raises(ConfigError, match="rule 2 of .*needs a `match`, a `host` or a `tag`"):
        parse({"pages": [{"tag": "tea"}, {"interval": "6h"}]})


@given(
    st.integers(0, 23), st.integers(0, 23), st.integers(0, 24 * 60), st.sampled_from([30, 120, 400])
)
def test_a_window_spans_a_tick_if_every_minute_lies_in_it(
    first: int, last: int, start: int, length: int
) -> None:
    if first == last:
        return
    hours = Hours.parse(f"{first:02}:00-{last:02}:00 Europe/Vienna")
    begin = START + timedelta(minutes=start)
    minutes = [begin + timedelta(minutes=k) for k in range(length)]
    inside = all(hours.holds(minute) for minute in minutes)
    assert hours.spans(begin, begin + timedelta(minutes=length)) == inside
    assert hours.length == timedelta(hours=(last - first) % 24)


# --------------------------------------------------------------------------------------- the store


async def offered(store: Store, rules: list[dict[str, object]]) -> Census:
    config = parse({"pages": rules, "max_interval": "9d"})
    census = Census(store, max_interval=config.max_interval_days, rules=config.pages)
    await census.refresh()
    return census


def columns(census: Census, tick: Tick) -> dict[str, list[object]]:
    pages = census.pages(tick, lambda host: np.inf)
    days = np.nan_to_num(pages.interval).tolist()
    limits = pages.max_interval.tolist()
    named = {"ids": pages.ids.tolist(), "interval": days, "max": limits}
    return {**named, "open": pages.open.tolist()}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_census_knows_what_rules_say_of_its_pages(kind: str, tmp_path: Path) -> None:
    rules: list[dict[str, object]] = [
        {"match": "*/a*", "interval": "6h"},
        {"match": "*/ab*", "pause": True},  # never the first to match
        {"match": "*/b*", "hours": "08:00-20:00", "max_interval": "2d"},
        {"match": "*/c*", "pause": True},
    ]

    async def main() -> None:
        sqlite = kind == "sqlite"
        store = await SqliteStore.open(str(tmp_path / "a.db")) if sqlite else MemoryStore()
        await store.add([NewPage(SHOP + name) for name in ("ab", "b", "c", "d")], at=1)
        census = await offered(store, rules)
        night = columns(census, Tick(0, START, START + timedelta(hours=2)))
        first, second, _, last = sorted((await store.table()).ids.tolist())
        assert night["ids"] == [first, second, last]
        assert night["interval"] == [0.25, 0.0, 0.0]
        assert night["max"] == [9.0, 2.0, 9.0]
        assert night["open"] == [True, False, True]
        day = datetime(2026, 1, 1, 8, tzinfo=UTC)
        assert columns(census, Tick(0, day, day + timedelta(hours=2)))["open"] == [True] * 3

        await store.add([NewPage(SHOP + "a2")], at=2)
        await store.edit(Query(url=SHOP + "b"), Edit(max_interval=1.0))
        await census.refresh()
        later = columns(census, a_tick())
        assert later["interval"] == [0.25, 0.0, 0.0, 0.25]
        assert later["max"] == [9.0, 1.0, 9.0, 9.0], "a page's own comes before its rule's"
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_rules_are_for_hosts_and_tags_too(kind: str, tmp_path: Path) -> None:
    rules: list[dict[str, object]] = [
        {"tag": "slow", "min_interval": "2d"},
        {"host": "*.example", "match": "*/b", "importance": 3.0},
        {"host": "other.*", "importance": 0.0},
    ]

    async def main() -> None:
        sqlite = kind == "sqlite"
        store = await SqliteStore.open(str(tmp_path / "a.db")) if sqlite else MemoryStore()
        urls = (SHOP + "a", SHOP + "b", "http://other.example:8080/c", SHOP + "d")
        await store.add([NewPage(url, demand=2.0) for url in urls], at=1)
        await store.edit(Query(url=urls[0]), Edit(add_tags=("slow",)))
        census = await offered(store, rules)
        pages = census.pages(a_tick(), lambda host: np.inf)
        assert pages.min_interval.tolist() == [2.0, 0.0, 0.0, 0.0]
        assert pages.demand.tolist() == [2.0, 6.0, 0.0, 2.0]
        await store.edit(Query(url=urls[1]), Edit(add_tags=("slow",)))
        await census.refresh()
        pages = census.pages(a_tick(), lambda host: np.inf)
        assert pages.min_interval.tolist() == [2.0, 2.0, 0.0, 0.0], "a tag by hand counts at once"
        assert pages.demand.tolist() == [2.0, 2.0, 0.0, 2.0]
        await store.edit(Query(url=urls[1]), Edit(remove_tags=("slow",)))
        at = int(START.timestamp() * 1e6) - 86_400_000_000
        await store.count([Count(url, at, clicks=70) for url in urls])
        await census.refresh()
        await census.heed()
        clicks = census.pages(a_tick(), lambda host: np.inf).demand
        assert clicks[0] > 10, "demand is learnt from clicks"
        assert clicks.tolist() == pytest.approx([clicks[0], 3 * clicks[0], 0.0, clicks[0]])
        await store.close()

    asyncio.run(main())


def test_a_rule_is_found_once_and_everybody_goes_by_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    unused: Any = None  # nothing is fetched or read

    class Counting(SqliteStore):
        async def fitting(self, pages: Ints, scopes: Sequence[Scope]) -> Ints:
            asked.extend(pages.tolist())
            return await super().fitting(pages, scopes)

    def never(scope: Scope, target: Target) -> bool:
        raise AssertionError(f"{target.url} is compared with patterns once more")

    async def numbers(world: Live, tick: Tick) -> list[int]:
        await world.census.refresh()
        pages = world.census.everyone(tick, lambda host: np.inf)
        targets = await world.targets(pages.ids)
        assert [target.rule for target in targets] == pages.rule.tolist()
        assert (await world.census.rules(pages.ids)).tolist() == pages.rule.tolist()
        return pages.rule.tolist()

    async def main() -> None:
        store = await Counting.open(str(tmp_path / "a.db"))
        await store.add([NewPage(SHOP + name) for name in ("a", "b", "c")], at=1)
        first, second, third = ids = (await store.table()).ids.tolist()
        told: list[dict[str, object]] = [{"match": "*/a", "kind": "offer"}, {"tag": "dear"}]
        for rules in (told, told[::-1]):  # as after an edit of the settings
            asked.clear()
            config = parse({"pages": rules})
            world = Live(store, unused, unused, SystemClock(), config)
            with monkeypatch.context() as patched:
                patched.setattr(Scope, "fits", never)
                known = await numbers(world, a_tick())
                assert known == await numbers(world, a_tick(1))
                assert asked == ids, "once a page"
            targets = await store.targets(np.array(ids))
            assert known == [config.ruled(target).rule for target in targets]
            await store.edit(Query(url=SHOP + "b"), Edit(add_tags=("dear",)))
            await store.edit(Query(url=SHOP + "c"), Edit(add_tags=("cheap",)))
            assert (await numbers(world, a_tick(2)))[1] == rules.index({"tag": "dear"})
            assert asked == [*ids, second, third], "and once more if it was edited"
            await store.edit(Query(url=SHOP + "b"), Edit(remove_tags=("dear",)))
        await store.close()

    asyncio.run(main())
