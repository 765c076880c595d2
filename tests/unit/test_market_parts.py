"""The parts of the market one by one: each process alone does what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.errors import InputError
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.lab.worlds.market.blocks import SIZE, Block, blocks_of
from salticus.lab.worlds.market.catalogue import classes, dealt, even_places
from salticus.lab.worlds.market.changes import GONE, MarketEventKind, MarketEvents, points_of
from salticus.lab.worlds.market.geography import COUNTRIES, ZONES, Calendar, calendar_of
from salticus.lab.worlds.market.make import names, pages_table
from salticus.lab.worlds.market.presets import HAN2019, PRESETS, Preset
from salticus.lab.worlds.market.scene import Scene, promotions_of, raked, scene_of
from salticus.lab.worlds.market.taxonomy import LEAVES, SERIES, TOPS
from salticus.types import UNKNOWN, Floats, Ints, Purpose, Status

PLAIN = replace(
    HAN2019, burst=0.0, flash=0.0, outage=0.0, promotion=0.0, births=0.0, deaths=0.0, rate=0.3
)
"""Moves alone, and no lives to take into account."""


def live(preset: Preset, offers: int = 800, days: int = 30, seed: int = 5) -> tuple[Scene, Block]:
    """A market of one block."""
    assert offers <= SIZE
    drawn, lived = np.random.SeedSequence(seed).spawn(2)
    scene = scene_of(preset, offers, days, drawn)
    (block,) = blocks_of(scene, lived)
    return scene, block


def changes(block: Block) -> tuple[Ints, Ints]:
    """Offer and hour of every change; births are none."""
    first = np.diff(block.points.row, prepend=-1) > 0
    return block.points.row[~first], block.points.hour[~first]


def local(scene: Scene, row: Ints, hour: Ints) -> tuple[Ints, Ints]:
    """Local day (0 = the first UTC day) and local hour of hours of the log."""
    offset = scene.calendar.offset[scene.catalogue.zone[row], hour // 24 + 1]
    return np.divmod((60 * hour + offset) // 60, 24)


# ------------------------------------------------------------------------------------------- parts


def test_parts_have_chances_of_their_own() -> None:
    """What the crawler does alters neither the truth nor its readers."""
    _, one = live(HAN2019)
    _, other = live(replace(HAN2019, batch_hours=6.0, failure=0.5, insta=0.1))
    for table in ("points", "demand", "requests"):
        ours, theirs = getattr(one, table), getattr(other, table)
        for name in type(ours).__dataclass_fields__:
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), (table, name)
    assert len(one.visits) != len(other.visits)


def test_blocks_hold_every_offer_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("salticus.lab.worlds.market.blocks.SIZE", 100)
    drawn, lived = np.random.SeedSequence(0).spawn(2)
    scene = scene_of(HAN2019, 250, 5, drawn)
    blocks = list(blocks_of(scene, lived))
    born = [block.first + row for block in blocks for row in np.unique(block.points.row)]
    assert born == list(range(250))
    assert len({block.visits.second[:50].tobytes() for block in blocks}) == 3


def test_a_folder_with_something_in_it_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    told: list[int] = []
    with pytest.raises(InputError, match="already there"):
        make_market(tmp_path, MarketSize(10, 3), told=told.append)
    assert told == []


# ---------------------------------------------------------------------------------------- calendar


def test_changes_of_batch_merchants_wait_for_their_local_hour() -> None:
    scene, block = live(PLAIN)
    row, hour = changes(block)
    shops, merchant = scene.catalogue.merchants, scene.catalogue.merchant[row]
    _, found = local(scene, row, hour)
    batch = shops.period[merchant] > 0
    assert batch.any()
    assert (found[batch] == shops.hour[merchant][batch]).all()
    assert len(np.unique(found[~batch])) == 24


@pytest.mark.parametrize("period", [24, 48])
def test_batches_are_a_period_apart(period: int) -> None:
    scene, block = live(replace(PLAIN, daily_batch=0.5, other_batch=0.5))
    row, hour = changes(block)
    mine = scene.catalogue.merchants.period[scene.catalogue.merchant[row]] == period
    gaps = np.diff(hour[mine])[np.diff(row[mine]) == 0]
    assert len(gaps) > 100
    assert (gaps % period == 0).all()
    assert gaps.min() == period


def test_a_market_may_rest_at_the_weekend() -> None:
    scene, block = live(replace(PLAIN, weekend=0.0))
    row, hour = changes(block)
    day, _ = local(scene, row, hour)
    weekday = (day + scene.preset.start.weekday()) % 7
    assert set(weekday.tolist()) == {0, 1, 2, 3, 4}


def test_days_of_a_plain_week_are_one_on_average() -> None:
    calendar = calendar_of(replace(HAN2019, holiday=1.0), 14)
    assert calendar.lively[:, :14].mean() == pytest.approx(1.0)


def test_sales_days_are_livelier() -> None:
    calendar = calendar_of(HAN2019, 80)
    us = [country.code for country in COUNTRIES].index("US")
    independence_day = 1 + 31 + 30 + 3  # counted from the day before 1 May
    plain = independence_day + 7
    ratio = calendar.lively[us, independence_day] / calendar.lively[us, plain]
    assert ratio == pytest.approx(HAN2019.holiday)


def test_half_hours_are_seen_at_the_next_whole_hour() -> None:
    calendar = Calendar(3, np.array([[330] * 5]), np.ones((1, 5)))
    zone, day = np.array([0, 0]), np.array([2, 2])
    assert calendar.utc_hour(zone, day, np.array([0, 6])).tolist() == [19, 25]


# -------------------------------------------------------------------------------------- evenness


def test_classes_hold_their_shares_of_the_offers() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.lognormal(3.0, 1.0, 400).astype(np.int64) + 1
    weights = np.array([0.7, 0.2, 0.1])
    for found in (classes(weights, sizes, rng), dealt(weights, sizes, rng.random(400), rng)):
        shares = np.bincount(found, sizes) / sizes.sum()
        assert np.abs(shares - weights).max() < 0.02


def test_what_is_dealt_is_dealt_to_the_lively_and_the_sleepy_alike() -> None:
    rng = np.random.default_rng(0)
    sizes, places = np.full(400, 10), rng.random(400)
    found = dealt(np.array([0.9, 0.1]), sizes, places, rng)
    quarters = [(found[(4 * places).astype(int) == k] == 1).mean() for k in range(4)]
    assert max(quarters) - min(quarters) < 0.05


def test_liveliness_is_even_within_groups_and_over_all() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 10, 500)
    places = even_places(np.full(500, 7), group, rng)
    assert np.abs(np.sort(places) - (np.arange(500) + 0.5) / 500).max() < 1e-9
    means = np.bincount(group, places) / np.bincount(group)
    assert np.abs(means - 0.5).max() < 0.04


# ------------------------------------------------------------------------------ rates and processes


def test_dormant_offers_never_change() -> None:
    scene, block = live(replace(HAN2019, dormant=1.0, dormant_slope=0.0, deaths=0.0))
    assert not scene.rate.any()
    assert len(block.points) == len(scene)


def test_rates_have_the_mean_of_the_preset_and_a_heavy_tail() -> None:
    scene, _ = live(HAN2019, offers=8000, days=1)
    rate = np.sort(scene.rate)[::-1]
    assert rate.mean() == pytest.approx(HAN2019.rate, rel=0.05)
    assert rate[:400].sum() > 0.3 * rate.sum()
    assert rate.max() <= HAN2019.top_rate


def test_countries_and_categories_get_their_factors() -> None:
    scene, _ = live(HAN2019, offers=8000, days=1)
    country, leaf = scene.catalogue.country, scene.catalogue.leaf
    by_country = np.bincount(country, scene.rate) / np.bincount(country)
    assert by_country[[c.code for c in COUNTRIES].index("IN")] > 2 * by_country.mean() * 0.7
    top = np.array([TOPS.index(each.top) for each in LEAVES])[leaf]
    by_top = np.bincount(top, scene.rate) / np.bincount(top)
    assert TOPS[int(by_top.argmax())] == "Software"


def test_raking_leaves_nothing_at_nothing() -> None:
    rates = np.array([0.0, 0.0, 1.0])
    found = raked(rates, np.array([0, 0, 1]), np.array([3.0, 1.0]))
    assert found[0] == found[1] == 0.0
    assert np.isfinite(raked(np.zeros(3), np.array([0, 1, 1]), np.ones(2))).all()


def test_bursts_are_one_to_three_hours_apart() -> None:
    _, calm = live(PLAIN)
    _, busy = live(replace(PLAIN, burst=1.0, burst_length=3.0))
    for block, low, high in ((calm, 0.0, 0.2), (busy, 0.4, 1.0)):
        row, hour = changes(block)
        gaps = np.diff(hour)[np.diff(row) == 0]
        assert low <= (gaps <= 3).mean() <= high


def test_regimes_shift_the_rate_and_not_its_mean() -> None:
    counts = {}
    for spread in (0.0, 1.5):
        preset = replace(PLAIN, regime_spread=spread, regime_days=10.0, rate=0.1)
        preset = replace(preset, daily_batch=0.0, other_batch=0.0)  # batches swallow triggers
        scene, block = live(preset, offers=4000, days=60)
        row, hour = changes(block)
        halves = [np.bincount(row[hour // 720 == k], minlength=len(scene)) for k in (0, 1)]
        counts[spread] = (len(row), np.corrcoef(*halves)[0, 1])
    assert counts[1.5][0] == pytest.approx(counts[0.0][0], rel=0.15)
    assert counts[1.5][1] < counts[0.0][1] - 0.05


def test_promotions_run_from_midnight_to_midnight() -> None:
    alone = replace(PLAIN, rate=1e-9, promotion=1.0, promotion_days=5.0)
    scene, block = live(alone)
    row, hour = changes(block)
    assert len(row) > 100
    assert set(local(scene, row, hour)[1].tolist()) == {0}


def test_promotions_are_those_of_the_merchant() -> None:
    campaigns = promotions_of(HAN2019, 30, 200, np.random.default_rng(0))
    merchant = np.array([4, 7, 4])
    row, campaign = campaigns.of(merchant)
    owner = np.searchsorted(campaigns.first, campaign, side="right") - 1
    assert np.array_equal(owner, merchant[row])
    assert np.array_equal(campaign[row == 0], campaign[row == 2])
    assert (campaigns.end > campaigns.start).all()


# ------------------------------------------------------------------------------------------ prices


def priced(
    *events: tuple[int, MarketEventKind, int], price: float = 1000.0
) -> list[tuple[int, int]]:
    """Hours and codes of one offer that is born at 0."""
    every = [(0, MarketEventKind.BIRTH, 0), *events]
    hour, kind, amount = (np.array(column) for column in zip(*every, strict=True))
    rows = np.zeros(len(every), dtype=np.int64)
    found = MarketEvents(rows, hour, kind.astype(np.int8), amount)
    points = points_of(found, np.array([price]), 0.0, np.random.default_rng(0))
    return list(zip(points.hour.tolist(), points.code.tolist(), strict=True))


def test_sales_and_outages_are_taken_back_exactly() -> None:
    sale = priced((3, MarketEventKind.SALE, 250), (9, MarketEventKind.SALE, -250))
    assert sale == [(0, 2001), (3, 1501), (9, 2001)]
    outage = priced((3, MarketEventKind.STOCK, 1), (9, MarketEventKind.STOCK, -1))
    assert outage == [(0, 2001), (3, 2000), (9, 2001)]


def test_sales_may_overlap_but_give_nothing_away() -> None:
    both = priced(
        (1, MarketEventKind.SALE, 500),
        (2, MarketEventKind.SALE, 500),
        (3, MarketEventKind.SALE, -500),
    )
    assert both == [(0, 2001), (1, 1001), (2, 401), (3, 1001)]


def test_what_changes_nothing_leaves_no_point() -> None:
    assert priced((4, MarketEventKind.MOVE, 0)) == [(0, 2001)]  # a spread of 0: the old price again
    assert priced((4, MarketEventKind.SALE, 100), (4, MarketEventKind.SALE, -100)) == [(0, 2001)]


def test_the_gone_have_no_value() -> None:
    assert priced((7, MarketEventKind.DEATH, 0)) == [(0, 2001), (7, GONE)]


def test_lives_begin_and_end_once() -> None:
    scene, block = live(replace(HAN2019, births=0.01, deaths=0.02))
    first = np.diff(block.points.row, prepend=-1) > 0
    assert np.array_equal(block.points.hour[first], scene.catalogue.born)
    gone = block.points.code == GONE
    assert np.array_equal(block.points.hour[gone], scene.catalogue.dies[block.points.row[gone]])
    assert np.append(np.diff(block.points.row) > 0, True)[gone].all()
    days = block.demand.day
    row = block.demand.row
    assert (24 * days >= scene.catalogue.born[row]).all()
    assert (24 * (days + 1) <= scene.catalogue.dies[row]).all()


# ----------------------------------------------------------------------------- readers and crawler


def test_popularity_has_nothing_to_do_with_behaviour() -> None:
    """The share of clicks on hosts that reject is their share of the offers, in every stratum."""
    scene, _ = live(PRESETS["han2020"], offers=8000, days=1)
    rejected = scene.failure > 0.5
    assert rejected.mean() == pytest.approx(PRESETS["han2020"].rejecting, abs=0.02)
    for stratum in (scene.catalogue.clicked, ~scene.catalogue.clicked):
        clicks = scene.clicks[stratum]
        share = clicks[rejected[stratum]].sum() / clicks.sum()
        assert share == pytest.approx(rejected[stratum].mean(), abs=0.05)


@pytest.mark.parametrize("renown", [0.0, 0.9])
def test_a_brand_tells_its_share_of_popularity(renown: float) -> None:
    """Brand, series and category tell a third of `renown` each, of the variance of log clicks."""
    scene, _ = live(replace(HAN2019, renown=renown, top_clicks=1e9, click_share=0.0), 8000, 1)
    score, brand = np.log(scene.clicks), scene.catalogue.brand
    means = np.bincount(brand, score) / np.maximum(np.bincount(brand), 1)
    told = means[brand].var() / score.var()
    by_chance = scene.catalogue.brands / len(score)
    assert told == pytest.approx(renown / 3 + by_chance, abs=0.1)


def test_the_click_stratum_is_weighted_by_clicks() -> None:
    """Law: the stratum's mean of 1/clicks is the uniform stratum's 1/mean of clicks."""
    free = replace(HAN2019, top_clicks=1e9, impression_spread=0.8, clicking_spread=0.4)
    scene, _ = live(replace(free, click_share=0.5), offers=8000, days=1)
    clicks, clicked = scene.clicks, scene.catalogue.clicked
    assert (1 / clicks[clicked]).mean() == pytest.approx(1 / clicks[~clicked].mean(), rel=0.05)
    assert clicked.mean() == 0.5


def test_an_offer_asks_for_one_visit_a_quarter_of_an_hour() -> None:
    _, block = live(replace(HAN2019, top_clicks=5000.0, click_share=1.0), offers=200, days=10)
    asked = block.requests
    assert np.unique(np.stack([asked.row, asked.second // 900]), axis=1).shape[1] == len(asked)
    assert np.bincount(asked.row).max() > 500


def test_insta_visits_follow_their_requests() -> None:
    _, block = live(HAN2019)
    visits, asked = block.visits, block.requests
    insta = visits.purpose == Purpose.INSTA
    starts = asked.row * 10**8 + asked.second
    after = visits.row[insta] * 10**8 + visits.second[insta]
    delay = after - starts[np.searchsorted(starts, after) - 1]
    assert (delay >= 0).all()
    assert (delay <= 60).all()
    _, none = live(replace(HAN2019, insta=0.0))
    assert not (none.visits.purpose == Purpose.INSTA).any()


@pytest.mark.parametrize(("failure", "kept"), [(0.0, 1.0), (1.0, 0.0)])
def test_visits_fail_as_often_as_they_should(failure: float, kept: float) -> None:
    scene, block = live(replace(HAN2019, failure=failure, rejecting=0.0, deaths=0.0))
    assert (scene.failure == failure).all()
    assert (block.visits.status == Status.OK).mean() == kept
    assert (block.visits.changed[block.visits.status != Status.OK] == UNKNOWN).all()


def test_rejecting_hosts_reject_all_their_offers() -> None:
    scene, block = live(PRESETS["han2020"])
    shops = scene.catalogue.merchants
    assert shops.rejects.any()
    rejected = shops.rejects[scene.catalogue.merchant][block.visits.row]
    answered = np.isin(block.visits.status, [Status.OK, Status.GONE])
    assert answered[rejected].mean() < 0.05
    assert answered[~rejected].mean() > 0.8


def test_the_crawler_forgets_what_is_gone() -> None:
    scene, block = live(replace(HAN2019, deaths=0.05, failure=0.0, rejecting=0.0))
    gone = block.visits.status == Status.GONE
    assert gone.sum() > 50
    assert np.bincount(block.visits.row[gone]).max() == 1
    last = np.append(np.diff(block.visits.row) > 0, True)
    assert last[gone].all()


# ------------------------------------------------------------------------------------- words, words


def test_names_differ() -> None:
    many = names(70_000, "x")
    assert len(set(many)) == 70_000
    assert len(set(SERIES)) == len(SERIES)


def test_pages_tell_what_predicts() -> None:
    scene, _ = live(HAN2019, offers=300, days=1)
    pages = pages_table(scene)
    row: dict[str, Any] = pages.row(7, named=True)
    assert row["title"].split()[:2] == [row["brand"], SERIES[scene.catalogue.series[7]]]
    assert row["category"].count(" > ") >= 1
    assert row["url"].startswith(f"https://{row['host']}/")
    assert row["tags"] == [row["category"].partition(" > ")[0].lower()]
    assert set(pages["timezone"]) <= set(ZONES)
    assert pages.null_count().sum_horizontal().item() == 0
    failure: Floats = pages["failure"].to_numpy()
    assert np.array_equal(failure, scene.failure)
