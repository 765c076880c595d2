"""The audit finds every kind of breach, blames no polite crawler, and measures freshness."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from effort import within
from hypothesis import given
from hypothesis import strategies as st

from salticus.lab.worlds.mall.audit import (
    AccessEntry,
    AnsweredVisits,
    Audit,
    audit,
    fresh_at,
    freshness_over,
)
from salticus.lab.worlds.mall.stock import MallPage, Stock, generate, offsets_of
from salticus.types import instant

START = datetime(2026, 1, 1, tzinfo=UTC)
T = 1_700_000_000.0


def entry(
    arrived: float,
    ended: float | None = None,
    *,
    path: str = "/o/1",
    host: str = "a",
    retry_after: float | None = None,
    crawl_delay: float | None = None,
) -> AccessEntry:
    """A request `arrived` seconds after T that took a hundredth of a second unless told."""
    over = T + (arrived + 0.01 if ended is None else ended)
    return AccessEntry(host, path, T + arrived, 0, over, 200, None, retry_after, crawl_delay)


def rules(found: Audit) -> dict[str, int]:
    return dict(found.counts)


def test_a_polite_log_is_clean() -> None:
    entries = [entry(float(n), host=host) for n in range(50) for host in "abc"]
    found = audit(entries, delay=1.0)
    assert found.clean
    assert found.requests == 150
    assert str(found) == "150 requests, 0 breaches"


def test_a_short_gap_is_found_with_both_requests() -> None:
    entries = [entry(0.0), entry(1.0), entry(1.75, path="/o/2"), entry(3.0)]
    found = audit(entries, delay=1.0)
    (breach,) = found.breaches
    assert (breach.rule, breach.entry, breach.previous) == ("gap", entries[2], entries[1])
    assert breach.short_s == 0.25
    assert "gap: a/o/2" in str(found)
    assert "0.250000 s too soon" in str(found)


def test_there_is_no_tolerance() -> None:
    assert audit([entry(0.0), entry(1.0)], delay=1.0).clean
    assert not audit([entry(0.0), entry(1.0)], delay=np.nextafter(1.0, 2.0)).clean


def test_delays_may_differ_by_host() -> None:
    entries = [entry(float(n), host=host) for n in range(5) for host in "ab"]
    assert rules(audit(entries, delay={"a": 1.0, "b": 2.0})) == {"gap": 4}


def test_order_of_the_log_does_not_matter() -> None:
    entries = [entry(float(n)) for n in (3, 1, 2, 0)]
    assert audit(entries, delay=1.0).clean
    assert len(audit(entries, delay=1.5).breaches) == 3


def test_a_crawl_delay_holds_once_it_is_told() -> None:
    robots = entry(1.0, path="/robots.txt", crawl_delay=2.0)
    assert audit([entry(0.0), robots, entry(3.0), entry(5.0)], delay=1.0).clean
    assert rules(audit([entry(0.0), robots, entry(3.0), entry(4.5)], delay=1.0)) == {"gap": 1}
    assert rules(audit([robots, entry(2.0), entry(4.0)], delay=1.0)) == {"gap": 1}
    assert audit([robots, entry(6.0)], delay=5.0).clean
    assert rules(audit([robots, entry(4.0)], delay=5.0)) == {"gap": 1}


def test_overlaps_are_found_beyond_the_concurrency() -> None:
    entries = [entry(0.0, 5.0), entry(1.0, 5.0), entry(2.0, 3.0), entry(5.0)]
    assert rules(audit(entries, delay=0.0)) == {"overlap": 2}
    found = audit(entries, delay=0.0, concurrency=2)
    (breach,) = found.breaches
    assert (breach.rule, breach.entry) == ("overlap", entries[2])
    assert audit(entries, delay=0.0, concurrency=3).clean
    other = [entry(0.0, 5.0), entry(1.0, 2.0, host="b")]
    assert audit(other, delay=0.0).clean


def test_a_request_that_never_ended_overlaps_all_later_ones() -> None:
    hanging = entry(0.0)
    hanging.ended = None
    assert rules(audit([hanging, entry(9.0), entry(10.0)], delay=1.0)) == {"overlap": 2}


def test_a_killed_crawler_has_no_requests_under_way() -> None:
    entries = [entry(0.0, 5.0), entry(2.0)]
    assert rules(audit(entries, delay=1.0)) == {"overlap": 1}
    assert audit(entries, delay=1.0, kills=[T + 1.0]).clean
    assert rules(audit(entries, delay=1.0, kills=[T - 1.0, T + 3.0])) == {"overlap": 1}


def test_a_kill_excuses_neither_haste_nor_impatience() -> None:
    entries = [entry(0.0, retry_after=3), entry(0.5)]
    assert rules(audit(entries, delay=1.0, kills=[T + 0.2])) == {"gap": 1, "early": 1}


def test_requests_before_a_retry_after_is_over_are_found() -> None:
    told = entry(0.0, retry_after=5)
    found = audit([told, entry(2.0, path="/o/2"), entry(5.02)], delay=1.0)
    (breach,) = found.breaches
    assert (breach.rule, breach.entry.path, breach.previous) == ("early", "/o/2", told)
    assert breach.short_s == pytest.approx(3.01)
    assert audit([told, entry(2.0, host="b")], delay=1.0).clean


def test_the_longest_retry_after_counts() -> None:
    entries = [entry(0.0, retry_after=9), entry(1.0, retry_after=1), entry(5.0), entry(9.5)]
    assert [breach.entry for breach in audit(entries, delay=0.5).breaches] == entries[1:3]


def test_a_request_already_under_way_is_not_early() -> None:
    entries = [entry(0.0, 2.0, retry_after=5), entry(1.0, 1.5)]
    assert rules(audit(entries, delay=1.0, concurrency=2)) == {}


@pytest.mark.parametrize("path", ["/private/", "/private/3", "/%70rivate/3"])
def test_disallowed_paths_are_found(path: str) -> None:
    assert rules(audit([entry(0.0), entry(1.0, path=path)], delay=1.0)) == {"disallowed": 1}
    assert audit([entry(0.0, path="/privateer"), entry(1.0, path="/o/private/")], delay=1.0).clean


def test_a_long_log_is_audited_in_seconds() -> None:
    entries = [entry(n * 0.5, n * 0.5 + 0.7, host=str(n % 20)) for n in range(100_000)]
    with within(150):
        found = audit(entries, delay=5.0, kills=[T + 100 * n for n in range(100)])
    assert found.clean


# ------------------------------------------------------------------------------------- freshness

texts = st.sampled_from(["1 EUR InStock", "2 EUR InStock", None])
events = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), texts), max_size=25)


def stock_of(points: list[tuple[int, int, str | None]], pages: int = 4) -> Stock:
    """A stock of (row, second, value) points; of two at one time the later given holds."""
    ordered = sorted(points, key=lambda point: point[:2])
    start = np.datetime64(START.replace(tzinfo=None), "us")
    return Stock(
        pages=[MallPage(str(row), 0, f"/o/{row}", "A thing") for row in range(pages)],
        offsets=offsets_of(np.array([row for row, _, _ in ordered], dtype=np.int64), pages),
        times=start + np.array([second for _, second, _ in ordered], dtype="timedelta64[s]"),
        values=[value for _, _, value in ordered],
    )


def visits_of(visits: list[tuple[int, int, str | None]]) -> AnsweredVisits:
    start = np.datetime64(START.replace(tzinfo=None), "us")
    return AnsweredVisits(
        rows=np.array([row for row, _, _ in visits], dtype=np.int64),
        at=start + np.array([second for _, second, _ in visits], dtype="timedelta64[s]"),
        values=[value for _, _, value in visits],
    )


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def true_freshness(stock: Stock, copies: dict[int, str | None], when: datetime) -> float:
    """Share of pages whose copy equals the truth, page by page."""
    equal = [copies.get(row) == stock.value(row, when) for row in range(len(stock))]
    return float(np.mean(equal)) if equal else 1.0


def copies_at(visits: list[tuple[int, int, str | None]], second: float) -> dict[int, str | None]:
    passed = sorted((visit for visit in visits if visit[1] <= second), key=lambda visit: visit[1])
    return {row: value for row, _, value in passed}


@given(events, events, st.integers(0, 10), st.integers(11, 22))
def test_freshness_over_time_is_the_mean_of_freshness_at_each_time(
    points: list[tuple[int, int, str | None]],
    visits: list[tuple[int, int, str | None]],
    start: int,
    end: int,
) -> None:
    stock = stock_of(points)
    grid = [second + 0.5 for second in range(start, end)]
    each = [true_freshness(stock, copies_at(visits, s), at(s)) for s in grid]
    for second, share in zip(grid, each, strict=True):
        when = np.full(len(stock), instant(at(second)))
        found = fresh_at(stock, visits_of(visits), np.arange(len(stock)), when)
        assert found.mean() == pytest.approx(share)
    span, every = (at(start), at(end)), np.arange(len(stock))
    exact = freshness_over(stock, visits_of(visits), span)
    assert exact == pytest.approx(np.mean(each), abs=1e-12)
    parts = [freshness_over(stock, visits_of(visits), span, every[k : k + 1]) for k in every]
    assert exact == pytest.approx(np.mean(parts), abs=1e-12)


@given(events, st.integers(0, 20))
def test_a_copy_of_the_truth_is_fresh(
    points: list[tuple[int, int, str | None]], second: int
) -> None:
    stock = stock_of(points)
    rows, when = np.arange(len(stock)), np.full(len(stock), instant(at(second)))
    truth = AnsweredVisits(rows, when, [stock.value(row, at(second)) for row in rows])
    assert fresh_at(stock, truth, rows, when).all()


def test_freshness_between_two_changes() -> None:
    stock = stock_of([(0, 0, "1 EUR InStock"), (0, 4, "2 EUR InStock")], pages=1)
    visits = [(0, 1, "1 EUR InStock"), (0, 7, "2 EUR InStock")]
    assert freshness_over(stock, visits_of(visits), (at(0), at(10))) == pytest.approx(0.6)
    row, when = np.zeros(3, dtype=np.int64), instant(START) + np.array([0, 3, 4], dtype="m8[s]")
    assert fresh_at(stock, visits_of(visits), row, when).tolist() == [False, True, False]


def test_no_time_has_no_freshness() -> None:
    with pytest.raises(ValueError, match="no time"):
        freshness_over(stock_of([]), visits_of([]), (at(1), at(1)))


def test_freshness_of_many_visits_takes_seconds() -> None:
    stock = generate(offers=20_000, days=10)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 20_000, 300_000)
    when = np.datetime64("2026-01-01", "us") + rng.integers(0, 10 * 86_400, 300_000).astype("m8[s]")
    values = rng.choice(np.array(["1 EUR InStock", "2 EUR InStock"], dtype=object), 300_000)
    visits = AnsweredVisits(rows, when, list(values))
    with within(250):
        found = freshness_over(stock, visits, (START, START + timedelta(days=10)))
    assert found < 0.05
