"""The hours of a host, in wall time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.clock import SystemClock, VirtualClock
from salticus.config import Hours
from salticus.fetch.hosts import HostLimiter, Window

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR = 3600.0
windows = st.sampled_from(
    [
        "10:00-11:00",
        "22:00-06:00",
        "00:00-00:01",
        "23:59-23:58",
        "02:30-02:45 Europe/Vienna",
        "01:15-03:30 America/New_York",
        "22:00-02:30 Europe/Vienna",
        "12:00-12:30 Asia/Kathmandu",
    ]
)
moments = st.integers(0, 365 * 86_400).map(lambda seconds: NOON + timedelta(seconds=seconds))
changes = st.sampled_from(["2026-03-29T00:00", "2026-10-25T00:00", "2026-03-08T05:00"]).flatmap(
    lambda text: st.integers(0, 5 * 3600).map(
        lambda s: datetime.fromisoformat(text).replace(tzinfo=UTC) + timedelta(seconds=s)
    )
)  # hours in which clocks are put forward or back


def window(text: str, now: datetime = NOON) -> Window:
    return Window(Hours.parse(text), VirtualClock(now))


def test_opening_and_holding() -> None:
    noon = NOON.timestamp()
    night = window("22:00-06:00")
    assert not night.holds(noon)
    assert night.opening(noon) == noon + 10 * HOUR
    assert night.holds(noon + 10 * HOUR)
    assert night.opening(noon + 11 * HOUR) == noon + 11 * HOUR
    assert not night.holds(noon + 18 * HOUR)


def test_only_the_part_of_a_span_that_lies_inside_counts() -> None:
    noon, night = NOON.timestamp(), window("22:00-06:00")
    assert night.open_for(noon, noon + 9 * HOUR) == 0.0
    assert night.open_for(noon, noon + 11 * HOUR) == HOUR
    assert night.open_for(noon, noon + 24 * HOUR) == 8 * HOUR
    assert night.open_for(noon, noon + 72 * HOUR) == 24 * HOUR
    assert night.open_for(noon + 17 * HOUR, noon + 19 * HOUR) == HOUR


def test_world_hours_are_short_on_a_fast_clock() -> None:
    now = datetime.now(UTC)
    clock = SystemClock(speed=3600.0, world_origin=NOON, wall_origin=now)
    night = Window(Hours.parse("22:00-06:00"), clock)
    assert night.opening(now.timestamp()) == pytest.approx(now.timestamp() + 10, abs=0.01)
    assert night.open_for(now.timestamp(), now.timestamp() + 24) == pytest.approx(8, abs=0.01)


def test_capacity_counts_the_hours() -> None:
    noon = NOON.timestamp()
    gate = HostLimiter("a.org", delay=60.0, concurrency=1, start=0.0, window=window("22:00-06:00"))
    assert gate.capacity(noon, 9 * HOUR) == 0.0
    assert gate.capacity(noon, 11 * HOUR) == 60.0
    gate.next_at = noon + 10.5 * HOUR
    assert gate.capacity(noon, 11 * HOUR) == 30.0
    free = HostLimiter("a.org", delay=0.0, concurrency=1, start=0.0, window=window("22:00-06:00"))
    assert free.capacity(noon, 9 * HOUR) == 0.0
    assert free.capacity(noon, 11 * HOUR) == float("inf")


def test_a_turn_is_not_taken_outside_and_not_hoped_for_before_the_opening() -> None:
    noon = NOON.timestamp()
    gate = HostLimiter("a.org", delay=60.0, concurrency=1, start=0.0, window=window("22:00-06:00"))
    assert not gate.enter(noon)
    assert gate.earliest(noon) == noon + 10 * HOUR
    assert gate.enter(noon + 10 * HOUR)


@given(windows, st.one_of(moments, changes), st.floats(0, 1e5))
def test_laws_of_windows_hold_where_clocks_are_changed_too(
    text: str, now: datetime, ahead: float
) -> None:
    some, start = window(text, now), now.timestamp()
    opening = some.opening(start + ahead)
    assert opening >= start + ahead
    assert (opening == start + ahead) == some.holds(start + ahead)
    inside = some.open_for(start, start + ahead)
    assert -1e-3 <= inside <= ahead + 1e-3
    halves = some.open_for(start, start + ahead / 2) + some.open_for(
        start + ahead / 2, start + ahead
    )
    assert halves == pytest.approx(inside, abs=3700), "but for an hour at a change of clocks"
