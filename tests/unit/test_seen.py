"""The events of a tiny market: as told by its tables, and by loops over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.features.events import EventKind, Events, among, by_days
from salticus.features.groups import groups_of
from salticus.features.past import FeatureStream
from salticus.features.seen import pages_of, seen_events
from salticus.features.truths import NEVER_GONE
from salticus.lab.studies.calibration.market import full_history, partial_history
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.types.coins import coins

HOUR = 3_600_000_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder = tmp_path_factory.mktemp("market") / "log"
    make_market(folder, MarketSize(60, 20), seed=4)
    return Log(folder)


def whole(log: Log, observe: str, seed: int = 0) -> Events:
    days = list(seen_events(log, pages_of(log), observe, seed=seed))
    numbers = [int(day.hour[0]) // 24 for day in days]
    assert numbers == sorted(set(numbers))
    assert all((day.hour // 24 == n).all() for day, n in zip(days, numbers, strict=True))
    events = days[0]
    for day in days[1:]:
        events = events.join(day)
    order = np.lexsort((events.kind, events.page, events.hour))
    assert (order == np.arange(len(events))).all()
    return events


def pairs(events: Events, kind: EventKind) -> list[tuple[int, int]]:
    kept = events.kind == kind
    return sorted(zip(events.page[kept].tolist(), events.hour[kept].tolist(), strict=True))


def test_pages_are_in_order_of_their_ids(log: Log) -> None:
    pages = pages_of(log)
    assert pages["page_id"].is_sorted()
    assert len(pages) == log.rows("pages")


def test_full_is_the_truth(log: Log) -> None:
    pages, events = pages_of(log), whole(log, "full")
    truth = full_history(pages, log.scan("values"))
    changes = sorted(zip(truth.page.tolist(), truth.hour.tolist(), strict=True))
    assert pairs(events, EventKind.CHANGE) == changes
    assert pairs(events, EventKind.BORN) == list(enumerate(truth.born.tolist()))
    gone = [(p, h) for p, h in enumerate(truth.gone.tolist()) if h < NEVER_GONE]
    assert pairs(events, EventKind.GONE) == gone
    assert pairs(events, EventKind.VISIT) == []
    assert len(changes) > 50


def test_full_tells_prices_and_moves(log: Log) -> None:
    pages, events = pages_of(log), whole(log, "full")
    values = log.scan("values").sort("page_id", "at").collect()
    for page, name in enumerate(pages["page_id"]):
        prices, last = [], None
        for text in values.filter(pl.col("page_id") == name)["value"]:
            if text is not None and text != last:
                prices.append((float(text.split()[0]), float(text.endswith("InStock"))))
                last = text
        own = events.take((events.page == page) & (events.kind <= EventKind.CHANGE))
        assert own.first.tolist() == pytest.approx([price for price, _ in prices])
        assert own.third.tolist() == [stock for _, stock in prices]
        moves = [np.log(b[0] / a[0]) for a, b in zip(prices, prices[1:], strict=False)]
        assert own.second[1:].tolist() == pytest.approx(moves, abs=1e-6)


def test_partial_is_what_the_visits_saw(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    pages, events = pages_of(log), whole(log, "partial")
    truth = full_history(pages, log.scan("values"))
    seen = partial_history(pages, log.scan("visits"), truth)
    assert pairs(events, EventKind.CHANGE) == sorted(
        zip(seen.page.tolist(), seen.hour.tolist(), strict=True)
    )
    assert pairs(events, EventKind.BORN) == list(enumerate(truth.born.tolist()))
    answers = log.scan("visits").filter(status="ok").sort("page_id", "at").collect()
    page = pages["page_id"].search_sorted(answers["page_id"]).to_numpy()
    at = answers["at"].dt.epoch("us").to_numpy()
    assert pairs(events, EventKind.VISIT) == sorted(
        zip(page.tolist(), (at // HOUR).tolist(), strict=True)
    )
    gaps = np.where(np.diff(page, prepend=-1) == 0, np.diff(at, prepend=0) / HOUR, np.nan)
    visits = events.take(events.kind == EventKind.VISIT)
    visits = visits.take(np.lexsort((visits.hour, visits.page)))
    np.testing.assert_allclose(visits.first, gaps, rtol=1e-6)
    monkeypatch.setattr("salticus.features.seen._CHUNK", 100)
    again = whole(log, "partial")
    assert all(np.array_equal(getattr(events, n), getattr(again, n), equal_nan=True) for n in (
        "hour", "page", "kind", "first", "second", "third"))  # fmt: skip


def test_without_values_a_page_is_born_with_its_first_answer(log: Log, tmp_path: Path) -> None:
    for name in ("pages", "visits"):
        (tmp_path / f"{name}.parquet").write_bytes(log.path(name).read_bytes())
    bare = Log(tmp_path)
    events = whole(bare, "partial")
    first: dict[int, int] = {}
    for page, hour in pairs(events, EventKind.VISIT):
        first.setdefault(page, hour)
    assert pairs(events, EventKind.BORN) == sorted(first.items())
    assert pairs(events, EventKind.DEMAND) == pairs(events, EventKind.GONE) == []
    with pytest.raises(InputError, match="only `partial`"):
        list(seen_events(bare, pages_of(bare), "full"))


def test_coins_see_the_truth_when_they_fall(log: Log) -> None:
    """A loop over pages and hours, with the value of each hour's end."""
    pages, events = pages_of(log), whole(log, "3", seed=5)
    truth = full_history(pages, log.scan("values"))
    low, high = truth.start, int(truth.hour.max())
    values = log.scan("values").with_columns(hour=pl.col("at").dt.epoch("us") // HOUR).collect()
    heads = np.array([coins(5, np.arange(len(pages)), h) < 3 / 24 for h in range(low, high)])
    for page, name in enumerate(pages["page_id"]):
        rows = values.filter(pl.col("page_id") == name).sort("at")
        visits, changes, last = [], [], None
        for hour in (low + np.flatnonzero(heads[:, page])).tolist():
            held = rows.filter(pl.col("hour") <= hour)["value"]
            if len(held) and held[-1] is not None:
                visits.append(hour)
                changes += [hour] if last not in (None, held[-1]) else []
                last = held[-1]
        own = events.take((events.page == page) & (events.hour < high))
        assert own.hour[own.kind == EventKind.VISIT].tolist() == visits
        assert own.hour[own.kind == EventKind.CHANGE].tolist() == changes
    assert len(pairs(events, EventKind.CHANGE)) > 30


def test_a_daily_log_is_visited_daily(log: Log, tmp_path: Path) -> None:
    for name in ("pages", "values"):
        (tmp_path / f"{name}.parquet").write_bytes(log.path(name).read_bytes())
    (tmp_path / "log.json").write_text(json.dumps({"name": "x", "resolution": "1d"}))
    visits = pairs(whole(Log(tmp_path), "1"), EventKind.VISIT)
    assert len(visits) > 500
    assert all(hour % 24 == 0 for _, hour in visits)


def test_coins_fall_until_the_log_ends(log: Log, tmp_path: Path) -> None:
    for name in ("pages", "values"):
        (tmp_path / f"{name}.parquet").write_bytes(log.path(name).read_bytes())
    last = int(whole(log, "full").hour.max())
    end = np.datetime64(last + 100, "h").astype("M8[s]")
    about = {"name": "x", "resolution": "1h", "span": ["2018-01-01", f"{end}Z"]}
    (tmp_path / "log.json").write_text(json.dumps(about))
    visits = pairs(whole(Log(tmp_path), "5"), EventKind.VISIT)
    assert last + 90 < max(hour for _, hour in visits) <= last + 100


def test_events_come_among_others_in_their_days(log: Log) -> None:
    events = whole(log, "full")
    lives = np.isin(events.kind, [EventKind.BORN, EventKind.GONE])
    rest, most = events.take(~lives), events.take(lives)
    for one, other in ((rest, most), (most, rest)):
        days = list(among(by_days(one), other))
        assert all(len(np.unique(day.hour // 24)) == 1 for day in days)
        for name in ("hour", "page", "kind"):
            told = np.concatenate([getattr(day, name) for day in days])
            assert np.array_equal(told, getattr(events, name))


def test_demand_is_known_when_its_bucket_ends(log: Log) -> None:
    events = whole(log, "full").take(slice(None))  # type: ignore[arg-type]
    demand = log.scan("demand").sort("at", "page_id").collect()
    kept = events.take(events.kind == EventKind.DEMAND)
    at = demand["at"].dt.epoch("us").to_numpy() // HOUR
    assert kept.hour.tolist() == (at + 23).tolist()
    assert kept.first.tolist() == demand["clicks"].to_list()
    assert kept.second.tolist() == demand["impressions"].to_list()


@pytest.mark.parametrize("observe", ["often", "0", "-1", "nan"])
def test_what_is_not_a_way_to_see_is_refused(log: Log, observe: str) -> None:
    with pytest.raises(InputError, match="visits per page and day"):
        list(seen_events(log, pages_of(log), observe))


def test_a_log_and_a_stream_tell_the_same(log: Log) -> None:
    """All at once, or day by day with readings in between."""
    pages = pages_of(log)
    groups, rows = groups_of(pages), np.arange(len(pages))
    once, daily = (FeatureStream(groups, full=False, demand=True, depth=3) for _ in range(2))
    once.learn(whole(log, "partial"))
    for day in seen_events(log, pages, "partial"):
        daily.learn(day)
        hour = np.full(len(rows), day.hour[0] // 24 * 24 + 24)
        a, b = once.read(rows, hour), daily.read(rows, hour)
        assert np.array_equal(a.dense, b.dense, equal_nan=True)
        assert np.array_equal(a.steps, b.steps, equal_nan=True)
    assert known_share(a.dense, once.names) > 0.9


def known_share(dense: Any, names: tuple[str, ...]) -> float:
    return float((~np.isnan(dense)).any(axis=0).sum() / len(names))
