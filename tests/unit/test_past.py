"""What is known of pages, in cases worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from salticus.features.events import EventKind, Events, make_events
from salticus.features.groups import Groups, groups_of
from salticus.features.kernels import GROUPED, LAGS
from salticus.features.names import DEMAND_WINDOWS, SEASON, WINDOWS, all_names
from salticus.features.past import FeatureStream
from salticus.features.rows import UNKNOWN_ZONE, day_shifts, feasts

START = 17652 * 24
NAN = math.nan


def one_group(pages: int) -> Groups:
    return groups_of(pl.DataFrame({"page_id": range(pages), "merchant": ["m"] * pages}))


def event(kind: EventKind, hour: int, page: int = 0, *numbers: float) -> Events:
    told = (np.array([each], dtype=np.float32) for each in numbers)
    return make_events(kind, np.array([START + hour]), np.array([page]), *told)


def read(past: FeatureStream, hour: int, page: int = 0) -> dict[str, float]:
    found = past.read(np.array([page]), np.array([START + hour]))
    assert found.names == past.names == all_names(past.edges)
    return dict(zip(found.names, found.dense[0].tolist(), strict=True))


def test_lags_hold_every_window() -> None:
    assert {*WINDOWS.values(), *DEMAND_WINDOWS.values(), SEASON, 6, 0} == set(LAGS)
    grouped = {lag for lag, kept in zip(LAGS, GROUPED, strict=True) if kept}
    assert grouped == {0, *WINDOWS.values()}


def test_nothing_told_is_nothing_known() -> None:
    past = FeatureStream(one_group(2), full=False, demand=True)
    found = read(past, 5)
    assert {name for name, value in found.items() if not math.isnan(value)} == {"weekday", "hour"}
    assert past.known(np.array([0, 1])).tolist() == [0, 0]


def test_no_change_in_watched_time_is_zero_and_no_demand_is_unknown() -> None:
    past = FeatureStream(one_group(1), full=True, demand=False)
    past.learn(event(EventKind.BORN, 0))
    found = read(past, 30)
    assert found["page_day"] == found["merchant_week"] == found["merchant_ahead_6"] == 0.0
    assert found["page_rate"] == found["page_since"] == 0.0
    unknown = ("clicks_day", "impressions_day", "price", "move", "merchant_recent", "in_stock")
    assert all(math.isnan(found[name]) for name in unknown)
    assert past.known(np.array([0])).tolist() == [30]


def test_the_last_changes_come_as_steps() -> None:
    past = FeatureStream(one_group(2), full=False, demand=False, depth=3)
    past.learn(event(EventKind.BORN, 0))
    past.learn(event(EventKind.VISIT, 2))
    for hour, move in ((5, 0.1), (6, 0.2), (9, NAN), (20, 0.4)):
        past.learn(event(EventKind.CHANGE, hour, 0, 1.0, move))
        past.learn(event(EventKind.VISIT, hour, 0, 1.0))
        if hour == 5:
            first = past.read(np.array([0, 1]), np.array([START + 6] * 2)).steps
    gone_by = past.read(np.array([0]), np.array([START + 21])).steps
    np.testing.assert_allclose(first[0, 2], [math.log1p(5), math.log1p(3), 0.1], rtol=1e-6)
    assert np.isnan(first[0, :2]).all()
    assert np.isnan(first[1]).all()
    expected = [[1, 1, 0.2], [3, 3, NAN], [11, 11, 0.4]]
    wanted = [[math.log1p(gap), math.log1p(span), move] for gap, span, move in expected]
    np.testing.assert_allclose(gone_by[0], wanted, rtol=1e-6)


def test_all_changes_seen_in_their_hour_are_known_exactly() -> None:
    past = FeatureStream(one_group(1), full=True, demand=False, depth=1)
    past.learn(event(EventKind.BORN, 0))
    past.learn(event(EventKind.CHANGE, 7, 0, 1.0, 0.5))
    steps = past.read(np.array([0]), np.array([START + 8])).steps
    np.testing.assert_allclose(steps[0, 0], [math.log1p(7), 0.0, 0.5], rtol=1e-6)


def test_a_page_may_come_back() -> None:
    past = FeatureStream(one_group(1), full=True, demand=False)
    for kind, hour in (
        (EventKind.BORN, 0),
        (EventKind.GONE, 10),
        (EventKind.CHANGE, 12),
        (EventKind.BORN, 20),
    ):
        past.learn(event(kind, hour))
    assert math.isnan(read(past, 20)["page_hours"])
    found = read(past, 30)
    assert (found["page_age"], found["page_changes"], found["page_hours"]) == (30, 0, 0)


def test_hours_that_were_read_are_closed() -> None:
    past = FeatureStream(one_group(1), full=True, demand=False)
    past.learn(event(EventKind.BORN, 0))
    read(past, 5)
    with pytest.raises(ValueError, match="read already"):
        past.learn(event(EventKind.CHANGE, 4))
    past.learn(event(EventKind.CHANGE, 5))
    assert read(past, 5)["page_changes"] == 0
    assert read(past, 6)["page_changes"] == 1
    with pytest.raises(ValueError, match="ascend"):
        read(past, 5)


def test_reading_nothing_gives_nothing() -> None:
    past = FeatureStream(one_group(1), full=True, demand=False)
    past.learn(Events.none())
    nothing = np.empty(0, dtype=np.int64)
    assert past.read(nothing, nothing).dense.shape == (0, len(past.names))


def test_old_events_are_forgotten() -> None:
    past = FeatureStream(one_group(3), full=False, demand=False)
    past.learn(make_events(EventKind.BORN, np.full(3, START), np.arange(3)))
    for day in range(200):
        hour = np.repeat(START + 24 * day + np.arange(1, 24), 3)
        page = np.tile(np.arange(3), 23)
        past.learn(make_events(EventKind.VISIT, hour, page, np.ones(len(hour), dtype=np.float32)))
        past.read(page[:1], hour[-1:])
    assert len(past.state()["visits_data"]) < 31 * 24 * 3 * 3
    assert past.read(page[:1], hour[-1:]).column("page_visits")[0] == 30 * 23


def test_the_clocks_of_zones_move() -> None:
    spring = 17615  # 2018-03-25: at one o'clock UTC
    shifts = day_shifts(("Europe/Berlin", "no/such", "Asia/Kolkata"), spring)
    assert shifts[0].tolist() == [60] + 23 * [120]
    assert shifts[1].tolist() == 24 * [UNKNOWN_ZONE]
    assert shifts[2].tolist() == 24 * [330]


def test_a_holiday_is_one_of_the_country() -> None:
    assert feasts(("US", "de"), 17716).tolist() == [[0, 1, 0], [0, 0, 0]]  # 2018-07-04
    assert np.isnan(feasts(("nowhere",), 17716)).all()


def test_a_page_without_a_host_is_served_by_its_merchant() -> None:
    groups = groups_of(pl.DataFrame({"merchant": ["b", "a"], "timezone": [None, "UTC"]}))
    assert groups.host.tolist() == groups.merchant.tolist() == [1, 0]
    assert (groups.zone.tolist(), groups.zones) == ([-1, 0], ("UTC",))
    assert len(groups) == 2
