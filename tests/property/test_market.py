"""Laws of the synthetic market for every size, seed and preset."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.exchange.check import examine
from salticus.exchange.folder import Log
from salticus.lab.worlds.market import PRESETS, MarketSize, make_market
from salticus.lab.worlds.market.catalogue import dealt, even
from salticus.lab.worlds.market.changes import MarketEventKind, MarketEvents, points_of
from salticus.lab.worlds.market.geography import ZONES, calendar_of
from salticus.lab.worlds.market.presets import HAN2019
from salticus.lab.worlds.market.scene import raked
from salticus.types import Ints

DAYS = 40
CALENDARS = {name: calendar_of(preset, DAYS) for name, preset in PRESETS.items()}

sizes = st.builds(MarketSize, st.integers(1, 80), st.integers(1, 12))
presets = st.sampled_from(sorted(PRESETS))
seeds = st.integers(0, 2**32)


@contextmanager
def made(size: MarketSize, seed: int, preset: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        make_market(Path(folder) / "log", size, seed=seed, preset=preset)
        yield Path(folder) / "log"


@settings(max_examples=25, deadline=None)
@given(sizes, seeds, presets)
def test_every_market_is_a_sound_log(size: MarketSize, seed: int, preset: str) -> None:
    with made(size, seed, preset) as folder:
        assert [str(each) for each in examine(folder)] == []
        log = Log(folder)
        tables = {name: log.scan(name).collect() for name in ("values", "demand", "visits")}
        pages, requests = log.scan("pages").collect(), log.scan("requests").collect()
    assert len(pages) == size.offers
    assert tables["values"]["page_id"].n_unique() == size.offers
    end = PRESETS[preset].start + timedelta(days=size.days)
    for table in (*tables.values(), requests):
        assert table.select("page_id", "at").equals(
            table.select("page_id", "at").sort("page_id", "at")
        )
        assert table.filter(
            ~pl.col("at").is_between(PRESETS[preset].start, end, closed="left")
        ).is_empty()
    births = tables["values"].group_by("page_id").agg(born=pl.col("at").min())
    for table in (tables["visits"], requests):
        assert table.join(births, on="page_id").filter(pl.col("at") < pl.col("born")).is_empty()


@settings(max_examples=10, deadline=None)
@given(sizes, seeds, presets)
def test_values_of_visits_follow_from_the_truth(size: MarketSize, seed: int, preset: str) -> None:
    with made(size, seed, preset) as folder:
        truth = Log(folder).scan("values").collect().rename({"value": "true"}).sort("at")
        visits = Log(folder).scan("visits").collect().sort("at")
    met = visits.join_asof(truth, on="at", by="page_id", check_sortedness=False)
    answered = met.filter(pl.col("status") == "ok").sort("page_id", "at")
    held = answered.with_columns(held=pl.col("value").forward_fill().over("page_id"))
    assert held["held"].equals(held["true"])
    told = held.with_columns(before=pl.col("true").shift().over("page_id"))
    assert told["changed"].equals((told["true"] != told["before"]).alias("changed"))
    silent = met.filter(pl.col("status") != "ok")
    assert silent["value"].null_count() == silent["changed"].null_count() == len(silent)


@given(presets, st.sampled_from(range(len(ZONES))), st.integers(1, DAYS), st.integers(0, 23))
def test_local_hours_come_back(preset: str, zone: int, day: int, hour: int) -> None:
    """A change at a local hour is seen in that hour of the merchant's clock, on that day.

    On a day when clocks change, in the hours before noon, it may be seen an hour off.
    """
    calendar = CALENDARS[preset]
    found = int(calendar.utc_hour(np.array([zone]), np.array([day]), np.array([hour]))[0])
    seen = (PRESETS[preset].start + timedelta(hours=found)).astimezone(ZoneInfo(ZONES[zone]))
    wanted = PRESETS[preset].start.replace(tzinfo=None) + timedelta(days=day - 1, hours=hour)
    off = seen.replace(tzinfo=None, minute=0) - wanted
    noon = wanted.replace(hour=12, tzinfo=ZoneInfo(ZONES[zone]))
    clocks_change = noon.utcoffset() != seen.utcoffset()
    assert abs(off) == timedelta(hours=1) if clocks_change else off == timedelta(0)


spells = st.lists(
    st.tuples(st.integers(1, 50), st.integers(1, 30), st.sampled_from([50, 200, 500])), max_size=6
)


@given(spells, st.floats(5, 1e5), seeds)
def test_when_all_sales_are_over_the_old_price_is_back(
    sales: list[tuple[int, int, int]], price: float, seed: int
) -> None:
    start, length, amount = (np.array([s[k] for s in sales], dtype=np.int64) for k in range(3))
    rows: Ints = np.zeros(len(sales), dtype=np.int64)
    born, never = np.array([0]), np.array([10**6])
    events = MarketEvents.spell(rows, start, start + length, MarketEventKind.SALE, amount).lived(
        born, never, 1000
    )
    points = points_of(events, np.array([price]), 0.1, np.random.default_rng(seed))
    assert points.code[0] == points.code[-1]
    assert (points.code[1:] != points.code[:-1]).all()
    assert (points.code <= points.code[0]).all()


@given(
    st.lists(st.tuples(st.just(0.0) | st.floats(1e-6, 10), st.integers(0, 3)), min_size=1), seeds
)
def test_raking_keeps_the_order_within_groups(rows: list[tuple[float, int]], seed: int) -> None:
    rates, group = np.array([r for r, _ in rows]), np.array([g for _, g in rows])
    factor = np.random.default_rng(seed).uniform(0.2, 3.0, 4)
    found = raked(rates, group, factor)
    assert np.isfinite(found).all()
    for each in range(4):
        mine = group == each
        assert (np.diff(found[mine][np.argsort(rates[mine], kind="stable")]) >= 0).all()
    assert ((found > 0) == (rates > 0)).all()


@given(st.lists(st.integers(1, 200), min_size=1, max_size=80), st.floats(0.05, 0.95), seeds)
def test_shares_are_right_to_one_merchant(sizes: list[int], share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    many = np.array(sizes)
    found = dealt(np.array([1 - share, share]), many, rng.random(len(many)), rng)
    assert abs(many[found == 1].sum() - share * many.sum()) <= many.max()


@given(st.integers(1, 3000), st.integers(0, 2999), st.integers(1, 3000), seeds)
def test_every_stretch_is_even(count: int, first: int, length: int, seed: int) -> None:
    stretch = np.sort(even(count, np.random.default_rng(seed))[first : first + length])
    expected = (np.arange(len(stretch)) + 0.5) / max(1, len(stretch))
    bound = (2 + np.log2(1 + len(stretch))) / max(1, len(stretch))
    assert np.abs(stretch - expected).max(initial=0.0) <= bound


@given(st.floats(0.0, 1.0), st.integers(1, 60))
def test_a_plain_week_is_one_on_average(weekend: float, days: int) -> None:
    calendar = calendar_of(replace(HAN2019, weekend=weekend, holiday=1.0), days + 7)
    week = calendar.lively[:, days : days + 7]
    assert np.allclose(week.mean(axis=1), 1.0)
