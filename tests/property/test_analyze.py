"""The study counts as one would by hand, whatever the order of the rows and the time zone."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.exchange.folder import Log
from salticus.lab.analyze.demand import gini
from salticus.lab.analyze.intervals import peaks
from salticus.lab.analyze.shares import ChangeShare, wilson
from salticus.lab.analyze.study import Analysis, study

# two days before clocks change in Berlin
START = datetime(2026, 3, 27, tzinfo=UTC)
HOUR = timedelta(hours=1)
ZONES = ["UTC", "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns", None]
MINUTES = 4 * 24 * 60


class History(NamedTuple):
    """A page: its time zone, and its values by the minute from which they hold."""

    zone: str | None
    values: dict[int, str | None]


histories = st.lists(
    st.builds(
        History,
        st.sampled_from(ZONES),
        st.dictionaries(
            st.integers(0, MINUTES), st.sampled_from(["1", "2", "3", None]), min_size=1, max_size=12
        ),
    ),
    min_size=1,
    max_size=5,
)


@contextmanager
def log_of(pages: list[History], order: list[int] | None = None) -> Iterator[Path]:
    """The log of the pages, its rows in the given order (of pages and of values)."""
    rows = [
        (f"p{k}", START + timedelta(minutes=minute), value)
        for k, page in enumerate(pages)
        for minute, value in page.values.items()
    ]
    ids = [(f"p{k}", page.zone, f"m{k % 2}") for k, page in enumerate(pages)]
    if order is not None:
        rows = [rows[k] for k in np.argsort(np.resize(order, len(rows)))]
        ids.reverse()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        schema: Any = {"page_id": pl.String, "at": pl.Datetime("us", "UTC"), "value": pl.String}
        pl.DataFrame(rows, schema, orient="row").write_parquet(folder / "values.parquet")
        columns = dict.fromkeys(("page_id", "timezone", "merchant"), pl.String)
        pl.DataFrame(ids, columns, orient="row").write_parquet(folder / "pages.parquet")
        span = [START.isoformat(), (START + timedelta(minutes=MINUTES)).isoformat()]
        (folder / "log.json").write_text(json.dumps({"resolution": "10min", "span": span}))
        yield folder


def studied(pages: list[History], order: list[int] | None = None) -> Analysis:
    with log_of(pages, order) as folder:
        return study(Log(folder))


class Count(NamedTuple):
    """Downloads and changes by hour of the local week, and hours since the change before."""

    downloads: Counter[str]
    changes: Counter[str]
    gaps: Counter[float]


def by_hand(pages: list[History], end: datetime) -> Count:
    """Download every page at the end of every hour of its local clock."""
    count = Count(Counter(), Counter(), Counter())
    for page in pages:
        zone = ZoneInfo(page.zone or "UTC")
        offset = timedelta(seconds=START.astimezone(zone).utcoffset().total_seconds() % 3600)  # type: ignore[union-attr]
        at, held, last = START - HOUR - offset, None, None
        while at < end:
            shown = value_at(page, at + HOUR)
            if shown is not None:
                cell = f"{at.astimezone(zone):%a %H}"
                count.downloads[cell] += 1
                if held not in (None, shown):
                    count.changes[cell] += 1
                    count.gaps[(at - last) / HOUR] += 1  # type: ignore[operator]
                last = at if held != shown else last
                held = shown
            at += HOUR
    return count


def value_at(page: History, when: datetime) -> str | None:
    """What the page holds just before `when`."""
    known = [m for m in page.values if START + timedelta(minutes=m) < when]
    return page.values[max(known)] if known else None


def end_of(pages: list[History]) -> datetime:
    """The end of the span, or of the minute after the last row."""
    last = max(max(page.values) for page in pages)
    tick = timedelta(microseconds=1)
    return START + max(timedelta(minutes=MINUTES), timedelta(minutes=last) + tick)


def as_days(pages: list[History]) -> bool:
    """Times that are all at midnight are taken as days."""
    return all(minute % (24 * 60) == 0 for page in pages for minute in page.values)


@settings(max_examples=30, deadline=None)
@given(histories)
def test_counting_without_listing_downloads_is_counting(pages: list[History]) -> None:
    if as_days(pages):
        return
    found, count = studied(pages), by_hand(pages, end_of(pages))
    if found.overall is None:
        assert not count.downloads
        return
    assert found.week is not None
    assert found.intervals is not None
    assert {s.name: s.downloads for s in found.week.cells if s.downloads} == count.downloads
    assert {s.name: s.changes for s in found.week.cells if s.changes} == count.changes
    assert {r.hours: r.changes for r in found.intervals.rows} == count.gaps


def every_share(found: Analysis) -> list[ChangeShare]:
    assert found.overall is not None
    assert found.week is not None
    assert found.groups is not None
    week = found.week.weekdays + found.week.hours + found.week.cells
    return [found.overall, *week, *found.groups["merchant"].rows]


@settings(max_examples=30, deadline=None)
@given(histories)
def test_the_parts_add_up(pages: list[History]) -> None:
    found = studied(pages)
    if found.overall is None:
        return
    assert found.week is not None
    assert found.groups is not None
    assert found.intervals is not None
    assert found.rates is not None
    total = (found.overall.downloads, found.overall.changes)
    for parts in (found.week.weekdays, found.week.hours, found.groups["merchant"].rows):
        if parts:
            assert (sum(s.downloads for s in parts), sum(s.changes for s in parts)) == total
    for share in every_share(found):
        if share.probability is not None:
            assert share.probability * share.downloads == pytest.approx(share.changes)
            assert 0 <= share.low <= share.probability <= share.high <= 1  # type: ignore[operator]
    assert sum(r.changes for r in found.intervals.rows) == total[1]
    assert sum(r.share for r in found.intervals.rows) == pytest.approx(min(1, total[1]))
    never = found.rates.never or 0.0
    assert sum(b.share for b in found.rates.bins) + never == pytest.approx(1.0)


@settings(max_examples=25, deadline=None)
@given(histories, st.lists(st.integers(0, 99), min_size=1, max_size=30))
def test_the_order_of_rows_and_pages_changes_nothing(
    pages: list[History], order: list[int]
) -> None:
    encoded = [msgspec.json.encode(studied(pages, o)) for o in (None, order)]
    names = [json.loads(text) | {"log": None} for text in encoded]
    assert names[0] == names[1]


@settings(max_examples=25, deadline=None)
@given(histories, st.integers(-11, 11))
def test_another_zone_turns_the_week(pages: list[History], shift: int) -> None:
    """`Etc/GMT-3` is three hours ahead of UTC."""
    if as_days(pages):
        return
    zone = f"Etc/GMT{-shift:+d}" if shift else "UTC"
    weeks = [studied([p._replace(zone=z) for p in pages]).week for z in ("UTC", zone)]
    if weeks[0] is None or weeks[1] is None:
        assert weeks == [None, None]
        return
    here, there = ([(s.downloads, s.changes) for s in week.cells] for week in weeks if week)
    assert there == here[-shift:] + here[:-shift]


@given(st.integers(1, 10**12), st.floats(0, 1))
def test_wilson_holds_the_share_and_tightens(n: int, p: float) -> None:
    downloads = np.array([n, 4 * n])
    changes = np.array([int(p * n), 4 * int(p * n)])
    low, high = wilson(changes, downloads)
    assert np.all((low >= 0) & (low <= changes / downloads))
    assert np.all((high <= 1) & (high >= changes / downloads))
    assert high[1] - low[1] < high[0] - low[0]


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=50), st.integers(1, 9))
def test_gini_knows_no_unit_and_no_order(counts: list[int], factor: int) -> None:
    here = gini(np.array(counts))
    if here is None:
        assert sum(counts) == 0
        return
    assert -1e-9 <= here < 1
    assert gini(factor * np.array(counts[::-1])) == pytest.approx(here)


@given(st.lists(st.integers(0, 10**6), max_size=80))
def test_peaks_are_higher_than_their_neighbours(counts: list[int]) -> None:
    found = peaks(np.array([0, *counts]), reach=10)
    assert list(found) == sorted(found)
    padded = [0, *counts]
    assert all(padded[k] > max(padded[k - 1], padded[k + 1]) for k in found)
