"""The study of a log says what the paper would have said of it, and what it cannot say."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from salticus.charts.sheet import Sheet
from salticus.cli.lab import analyze
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.lab.analyze.shares import ChangeShare, wilson
from salticus.lab.analyze.study import Analysis, sheet_of, study

MONDAY = datetime(2026, 6, 1, tzinfo=UTC)


def hours(n: float) -> datetime:
    return MONDAY + timedelta(hours=n)


def days(n: float) -> datetime:
    return MONDAY + timedelta(days=n)


def make(folder: Path, about: dict[str, Any] | None = None, **tables: dict[str, Any]) -> Path:
    """A log of the given columns; pages are those named in the first table if not given."""
    folder.mkdir(exist_ok=True)
    first = next(iter(tables.values()))
    tables.setdefault("pages", {"page_id": sorted(set(first["page_id"]))})
    for name, columns in tables.items():
        pl.DataFrame(columns).write_parquet(folder / f"{name}.parquet")
    (folder / "log.json").write_text(json.dumps({"name": "test", **(about or {})}))
    return folder


def values(*rows: tuple[str, datetime, str | None]) -> dict[str, Any]:
    page, at, value = zip(*rows, strict=True)
    return {"page_id": page, "at": at, "value": pl.Series(value, dtype=pl.String)}


def visits(*rows: tuple[str, datetime, str, bool | None]) -> dict[str, Any]:
    page, at, status, changed = zip(*rows, strict=True)
    flags = pl.Series(changed, dtype=pl.Boolean)
    return {"page_id": page, "at": at, "status": status, "changed": flags}


def found(folder: Path) -> Analysis:
    return study(Log(folder))


def counts(shares: list[ChangeShare]) -> dict[str, tuple[int, int]]:
    """Changes and downloads by name, of those with downloads."""
    return {s.name: (s.changes, s.downloads) for s in shares if s.downloads}


HOURLY = {"resolution": "1h"}
TWO_OFFERS = values(
    ("A", hours(0), "1"), ("A", hours(1), "2"), ("A", hours(3), "3"),
    ("B", hours(0), "5"), ("B", hours(1), "6"),
)  # fmt: skip


# --------------------------------------------------------------------------------- the definitions


def test_the_two_offers_of_the_paper(tmp_path: Path) -> None:
    """Han et al. (2019), section 3.2: 1 h has 2/3 of the changes, 2 h has 1/3."""
    result = found(make(tmp_path, HOURLY, values=TWO_OFFERS)).intervals
    assert result is not None
    assert [(r.hours, r.changes) for r in result.rows] == [(1.0, 2), (2.0, 1)]
    assert [r.share for r in result.rows] == pytest.approx([2 / 3, 1 / 3])
    assert result.within_day == 1.0
    assert result.median_hours == 1.0


def test_probability_is_downloads_with_change_over_downloads(tmp_path: Path) -> None:
    """Both offers are downloaded at 0, 1, 2 and 3 h: eight downloads, three with a change."""
    overall = found(make(tmp_path, HOURLY, values=TWO_OFFERS)).overall
    assert overall is not None
    assert (overall.pages, overall.downloads, overall.changes) == (2, 8, 3)
    assert overall.probability == 3 / 8


@pytest.mark.parametrize(
    ("rows", "changes", "downloads"),
    [
        ([(0, "1")], 0, 6),  # the first observation is no change
        ([(0, "1"), (2, "1")], 0, 6),  # the same value is none
        ([(0, "1"), (2.2, "2"), (2.8, "3")], 1, 6),  # one download sees one change
        ([(0, "1"), (2.2, "2"), (2.8, "1")], 0, 6),  # or none, if it came and went in between
        ([(0, "1"), (2, None)], 0, 2),  # nothing to download after the end
        ([(0, "1"), (2, None), (4, "1")], 0, 4),  # back as it was
        ([(0, "1"), (2, None), (4, "2")], 1, 4),  # back with another value
        ([(0, None), (4, "2")], 0, 2),
        ([(0.2, "1"), (0.6, None)], 0, 0),
    ],
)
def test_what_an_hourly_download_sees(
    tmp_path: Path, rows: list[tuple[float, str | None]], changes: int, downloads: int
) -> None:
    mine = [("a", hours(at), value) for at, value in rows]
    other = [("b", hours(0), "1"), ("b", hours(5.5), "1")]  # the log lasts for six hours
    overall = found(make(tmp_path, HOURLY, values=values(*mine, *other))).overall
    assert overall is not None
    assert (overall.changes, overall.downloads - 6) == (changes, downloads)


def test_the_log_lasts_to_the_end_of_its_span(tmp_path: Path) -> None:
    span = [MONDAY.isoformat(), hours(10).isoformat()]
    overall = found(make(tmp_path, {**HOURLY, "span": span}, values=TWO_OFFERS)).overall
    assert overall is not None
    assert overall.downloads == 20


def test_wilson_is_that_of_the_books() -> None:
    """Newcombe (1998), Table I, method 3."""
    low, high = wilson(np.array([81, 15, 0, 1]), np.array([263, 148, 20, 29]))
    assert low.round(4).tolist() == [0.2553, 0.0624, 0.0, 0.0061]
    assert high.round(4).tolist() == [0.3662, 0.1605, 0.1611, 0.1718]


# -------------------------------------------------------------------------------------- local time


@pytest.mark.parametrize(
    ("zone", "at", "cell"),
    [
        ("UTC", hours(0), "Mon 00"),
        ("Asia/Tokyo", hours(0), "Mon 09"),
        ("America/New_York", hours(2), "Sun 22"),
        ("Asia/Kolkata", hours(18.5), "Tue 00"),  # half an hour off
        ("Asia/Kolkata", hours(18.4), "Mon 23"),
        ("Asia/Kathmandu", hours(18.25), "Tue 00"),
    ],
)
def test_changes_stand_at_the_hour_of_the_local_clock(
    tmp_path: Path, zone: str, at: datetime, cell: str
) -> None:
    rows = values(("a", days(-1), "1"), ("a", at, "2"), ("a", hours(30), "2"))
    pages = {"page_id": ["a"], "timezone": [zone]}
    week = found(make(tmp_path, {"resolution": "10min"}, values=rows, pages=pages)).week
    assert week is not None
    assert [s.name for s in week.cells if s.changes] == [cell]
    assert [s.name for s in week.weekdays if s.changes] == [cell[:3]]
    assert [s.name for s in week.hours if s.changes] == [cell[4:]]
    assert week.unzoned == 0.0


def test_summer_time_moves_the_hour(tmp_path: Path) -> None:
    """23:00 UTC is midnight in Berlin in winter, and one o'clock after 29 March 2026."""
    before, after = (datetime(2026, 3, d, 23, tzinfo=UTC) for d in (27, 30))
    rows = values(("a", before - timedelta(1), "1"), ("a", before, "2"), ("a", after, "3"))
    pages = {"page_id": ["a"], "timezone": ["Europe/Berlin"]}
    week = found(make(tmp_path, HOURLY, values=rows, pages=pages)).week
    assert week is not None
    assert [s.name for s in week.cells if s.changes] == ["Tue 01", "Sat 00"]


def test_an_unknown_zone_is_utc_and_flagged(tmp_path: Path) -> None:
    rows = values(("a", hours(1), "1"), ("b", hours(1), "1"), ("c", hours(1), "1"))
    pages = {"page_id": ["a", "b", "c"], "timezone": ["Asia/Tokyo", None, "Mars/Olympus"]}
    week = found(make(tmp_path, HOURLY, values=rows, pages=pages)).week
    assert week is not None
    assert counts(week.hours) == {"01": (0, 2), "10": (0, 1)}
    assert week.unzoned == pytest.approx(2 / 3)
    assert "Mars/Olympus" in week.notes[0]
    assert "66.7 % of pages have no usable `timezone`" in week.notes[1]


@pytest.mark.parametrize("about", [{"resolution": "1d"}, {"resolution": "1h"}, {}])
def test_days_have_no_hours_and_the_weekday_of_utc(tmp_path: Path, about: dict[str, str]) -> None:
    """Midnight UTC is Sunday evening in New York; a day's change on Monday stays on Monday."""
    rows = values(("a", days(-2), "1"), ("a", days(0), "2"), ("a", days(1), "2"))
    pages = {"page_id": ["a"], "timezone": ["America/New_York"]}
    result = found(make(tmp_path, about, values=rows, pages=pages))
    assert result.week is not None
    assert result.step == "1d"
    assert counts(result.week.weekdays) == {
        "Sat": (0, 1), "Sun": (0, 1), "Mon": (1, 1), "Tue": (0, 1)
    }  # fmt: skip
    assert result.week.hours == result.week.cells == []
    assert "hours of the day are unknown" in result.week.notes[0]
    assert "UTC date" in result.week.notes[1]
    assert any("00:00 UTC" in note for note in result.notes) == (about.get("resolution") != "1d")


def test_days_take_the_date_of_a_time(tmp_path: Path) -> None:
    """A day's log may hold the time of its crawl: noon and the next midnight are two days."""
    rows = values(("a", hours(12), "1"), ("a", days(1), "2"), ("a", days(3), "3"))
    result = found(make(tmp_path, {"resolution": "1d"}, values=rows))
    assert result.overall is not None
    assert result.intervals is not None
    assert (result.overall.changes, result.overall.downloads) == (2, 4)
    assert [(r.hours, r.changes) for r in result.intervals.rows] == [(24.0, 1), (48.0, 1)]


def test_coarser_times_have_no_weekday(tmp_path: Path) -> None:
    rows = values(("a", days(0), "1"), ("a", days(9), "2"))
    week = found(make(tmp_path, {"resolution": "7d"}, values=rows)).week
    assert week is not None
    assert week.weekdays == []
    assert week.notes == ["weekday and hour: times are known to 7d only"]


def test_an_unknown_resolution_is_said(tmp_path: Path) -> None:
    result = found(make(tmp_path, values=TWO_OFFERS))
    assert result.step == "1h"
    assert "no `resolution`" in result.notes[0]


# --------------------------------------------------------------------------------- other records


def test_visits_alone(tmp_path: Path) -> None:
    """Failed visits are no downloads, and the first answer is no change."""
    rows = visits(
        ("a", hours(0), "ok", True), ("a", hours(2), "timeout", None),
        ("a", hours(5.1), "ok", True), ("a", hours(7), "not_modified", False),
        ("a", hours(9), "ok", True), ("b", hours(1), "ok", None), ("c", hours(1), "gone", None),
    )  # fmt: skip
    result = found(make(tmp_path, HOURLY, visits=rows))
    assert result.source == "visits"
    assert result.overall is not None
    assert result.intervals is not None
    assert result.rates is not None
    assert result.week is not None
    assert (result.overall.pages, result.overall.downloads, result.overall.changes) == (2, 5, 2)
    assert [(r.hours, r.changes) for r in result.intervals.rows] == [(4.0, 1), (5.0, 1)]
    assert counts(result.week.hours) == {
        "00": (0, 1), "01": (0, 1), "05": (1, 1), "07": (0, 1), "09": (1, 1)
    }  # fmt: skip
    assert (result.rates.pages, result.rates.mean) == (1, pytest.approx(2 / (9 / 24)))
    assert result.rates.undone is None
    assert "`value`" in result.rates.notes[1]


def test_visits_with_values_and_no_word_of_change(tmp_path: Path) -> None:
    """A value may be written at every visit or only when it is new."""
    at = [hours(k) for k in range(6)]
    told = {"page_id": ["a"] * 6, "at": at, "value": ["1", "1", "2", None, "1", "3"]}
    result = found(make(tmp_path, HOURLY, visits=told))
    assert result.overall is not None
    assert result.rates is not None
    assert (result.overall.changes, result.overall.downloads) == (3, 6)
    assert result.rates.undone == pytest.approx(1 / 3)
    assert len([note for note in result.notes if "`status`" in note or "`changed`" in note]) == 2


def test_visits_that_tell_nothing_of_change(tmp_path: Path) -> None:
    make(tmp_path, HOURLY, visits={"page_id": ["a"], "at": [MONDAY]})
    with pytest.raises(InputError, match=r"visits\.parquet: neither column `changed` nor `value`"):
        found(tmp_path)


def crawled(folder: Path) -> Path:
    """Two hosts, crawled three and two times; a text is fetched a little after its crawl began."""
    texts = values(
        ("a", hours(0.1), "x"), ("a", hours(8.1), "y"), ("b", hours(8.2), "x"), ("c", hours(3), "x")
    )
    texts["text"] = texts.pop("value")
    pages = {"page_id": ["a", "b", "c"], "host": ["h", "h", "i"]}
    crawls = {"host": ["h", "h", "h", "i", "i"], "at": [hours(k) for k in (0, 8, 17, 3, 11)]}
    return make(folder, {"resolution": "8h"}, texts=texts, pages=pages, crawls=crawls)


def test_texts_on_the_grid_of_crawls(tmp_path: Path) -> None:
    result = found(crawled(tmp_path))
    assert result.source == "texts"
    assert result.overall is not None
    assert result.week is not None
    assert result.rates is not None
    assert (result.overall.pages, result.overall.downloads, result.overall.changes) == (3, 7, 1)
    assert counts(result.week.hours) == {
        "00": (0, 1), "03": (0, 1), "08": (1, 2), "11": (0, 1), "17": (0, 2)
    }  # fmt: skip
    assert result.rates.page_days == pytest.approx((17 + 9 + 8) / 24)
    assert "up to 8h" in result.week.notes[1]


def test_texts_of_hosts_that_were_never_crawled(tmp_path: Path) -> None:
    pages = {"page_id": ["a", "b", "c"], "host": ["h", "h", None]}
    pl.DataFrame(pages).write_parquet(crawled(tmp_path) / "pages.parquet")
    result = found(tmp_path)
    assert result.overall is not None
    assert result.overall.pages == 2
    assert "1 rows of texts.parquet are of hosts without a row in crawls.parquet" in result.notes


def test_a_merchant_that_falls_silent_ends_there(tmp_path: Path) -> None:
    """Ten pages of m change daily for 40 days and then never again; those of n go on."""
    rows = [
        (f"{m}{k}", days(d), str(d))
        for m, last in (("m", 40), ("n", 80))
        for k in range(10)
        for d in range(last)
    ]
    pages = {"page_id": [f"{m}{k}" for m in "mn" for k in range(10)], "merchant": ["m", "n"] * 10}
    pages["merchant"] = [name[0] for name in pages["page_id"]]
    result = found(make(tmp_path, {"resolution": "1d"}, values=values(*rows), pages=pages))
    assert result.groups is not None
    merchants = {s.name: s for s in result.groups["merchant"].rows}
    assert (merchants["m"].downloads, merchants["n"].downloads) == (400, 800)
    assert result.notes == [
        "nothing is heard of m (10 pages) after 2026-07-10, 40 days before the log ends: "
        "its crawl is taken to have stopped then"
    ]


# ------------------------------------------------------------------------------------ the sections


def test_intervals_peak_at_a_day(tmp_path: Path) -> None:
    """Pages that change at random, and some that change once a day."""
    rng = np.random.default_rng(5)
    gaps = np.concatenate([rng.geometric(0.04, 4000), np.repeat([24, 48], [300, 150])])
    rows = values(*((f"p{k}", hours(0), "1") for k in range(len(gaps))))
    later = values(*((f"p{k}", hours(int(g)), "2") for k, g in enumerate(gaps)))
    both = {name: [*rows[name], *later[name]] for name in rows}
    result = found(make(tmp_path, HOURLY, values=both)).intervals
    assert result is not None
    assert [peak.hours for peak in result.peaks] == [24.0, 48.0]


def test_groups(tmp_path: Path) -> None:
    rows = values(
        ("a", hours(0), "1"), ("a", hours(1), "2"), ("b", hours(0), "1"), ("c", hours(0), "1")
    )
    pages = {
        "page_id": ["a", "b", "c"],
        "category": ["Media > Books", "Media>Music", None],
        "merchant": ["m", "n", "m"],
    }
    groups = found(make(tmp_path, HOURLY, values=rows, pages=pages)).groups
    assert groups is not None
    assert counts(groups["category"].rows) == {"Media": (1, 4)}
    assert groups["category"].unknown is not None
    assert groups["category"].unknown.downloads == 2
    assert groups["category"].notes == [
        "column `category` of pages.parquet is empty for 33.3 % of the pages seen"
    ]
    assert counts(groups["merchant"].rows) == {"m": (1, 4), "n": (0, 2)}
    assert groups["country"].notes == ["pages.parquet has no column `country`"]


def test_merchants_are_thirty_and_the_extremes(tmp_path: Path) -> None:
    """Merchant k has one page that changes k times in 1200 hours; the last one is born late."""
    rows = [(f"{k}", hours(1100 if k == 39 else 0), "0") for k in range(40)]
    rows += [(f"{k}", hours(1101 + j), str(j + 1)) for k in range(40) for j in range(k)]
    ids = [f"{k}" for k in range(40)]
    span = [MONDAY.isoformat(), hours(1200).isoformat()]
    about = {**HOURLY, "span": span}
    pages = {"page_id": ids, "merchant": ids}
    groups = found(make(tmp_path, about, values=values(*rows), pages=pages)).groups
    assert groups is not None
    merchants = groups["merchant"]
    assert (merchants.groups, len(merchants.rows)) == (40, 30)
    assert [s.name for s in merchants.highest] == [f"{k}" for k in range(38, 28, -1)]
    assert [s.name for s in merchants.lowest] == [f"{k}" for k in range(10)]


def test_rates(tmp_path: Path) -> None:
    """Ten pages for ten days: one changes every other day and back, the rest never."""
    rows = [("p0", days(d), str(d // 2 % 2)) for d in range(0, 10, 2)]
    rows += [(f"p{k}", days(0), "1") for k in range(1, 10)]
    span = [MONDAY.isoformat(), days(10).isoformat()]
    rates = found(make(tmp_path, {"resolution": "1d", "span": span}, values=values(*rows))).rates
    assert rates is not None
    assert (rates.pages, rates.page_days, rates.mean) == (10, 100.0, 0.04)
    assert rates.never == 0.9
    assert rates.top_1_percent == rates.top_10_percent == 1.0
    assert rates.undone == 0.75  # the first change leads to a new value, the others back
    assert [(b.pages, b.share, b.low <= 0.4 < b.high) for b in rates.bins] == [(1, 0.1, True)]


def test_values_that_come_back_late_are_no_flash_sales(tmp_path: Path) -> None:
    rows = values(("a", hours(0), "1"), ("a", hours(1), "2"), ("a", hours(50), "1"))
    rates = found(make(tmp_path, HOURLY, values=rows)).rates
    assert rates is not None
    assert rates.undone == 0.0


def demanded(folder: Path) -> Path:
    """Four pages for two days; a has 8 clicks and changes, b has 2, the others none."""
    rows = values(
        ("a", hours(0), "1"), ("a", hours(12), "2"), ("b", hours(0), "1"), ("c", hours(0), "1"),
        ("d", hours(0), "1"), ("d", hours(47.5), "1"),
    )  # fmt: skip
    demand = {
        "page_id": ["a", "a", "b", "c", "a"],
        "at": [hours(1), hours(2), hours(30), hours(3), days(9)],
        "clicks": [3, 3, 2, 0, 2],
        "impressions": [5, 5, 5, 5, 5],
    }
    return make(folder, {**HOURLY, "demand_bucket": "1h"}, values=rows, demand=demand)


def test_demand(tmp_path: Path) -> None:
    demand = found(demanded(tmp_path)).demand
    assert (demand.clicks, demand.impressions) == (10, 25)
    assert demand.gini == pytest.approx(0.65)
    assert demand.top_10_percent == pytest.approx(0.8)
    assert demand.lorenz[0] == (0.0, 0.0)
    assert demand.lorenz[-2:] == [(0.75, pytest.approx(0.2)), (1.0, 1.0)]
    assert demand.page_days == 8
    assert demand.click_days == 2 / 8  # what comes after the last download does not count
    assert demand.impression_days == 3 / 8
    assert [(d.decile, d.pages, d.clicks, d.changes) for d in demand.deciles] == [
        (0, 2, 0, 0), (3, 1, 2, 0), (8, 1, 8, 1)
    ]  # fmt: skip
    assert demand.rank_correlation == pytest.approx(0.8164965809)


def test_demand_without_impressions_in_long_buckets(tmp_path: Path) -> None:
    path = demanded(tmp_path) / "demand.parquet"
    pl.read_parquet(path).drop("impressions").write_parquet(path)
    (tmp_path / "log.json").write_text('{"resolution": "1h", "demand_bucket": "7d"}')
    demand = found(tmp_path).demand
    assert (demand.clicks, demand.click_days, demand.impressions) == (10, None, None)
    assert "`demand_bucket`" in demand.notes[0]
    assert "`impressions`" in demand.notes[1]


def test_demand_of_a_log_without_changes(tmp_path: Path) -> None:
    (demanded(tmp_path) / "values.parquet").unlink()
    result = found(tmp_path)
    assert result.overall is result.week is result.groups is None
    assert "no values.parquet, visits.parquet or texts.parquet" in result.notes[0]
    assert result.demand.page_days == 4 * 10
    assert result.demand.click_days == 3 / 40
    assert len(result.demand.notes) == 2


# ---------------------------------------------------------------------------- what cannot be done


@pytest.mark.parametrize(
    ("drop", "reason"),
    [
        ("crawls.parquet", "texts.parquet without crawls.parquet"),
        ("texts.parquet", "no values.parquet, visits.parquet or texts.parquet"),
    ],
)
def test_a_missing_table_is_named(tmp_path: Path, drop: str, reason: str) -> None:
    (crawled(tmp_path) / drop).unlink()
    result = found(tmp_path)
    assert result.overall is None
    assert reason in result.notes[0]
    assert result.demand.notes == [
        "demand.parquet is absent: nothing is known of clicks and impressions"
    ]


def test_texts_need_hosts(tmp_path: Path) -> None:
    pl.DataFrame({"page_id": ["a", "b", "c"]}).write_parquet(crawled(tmp_path) / "pages.parquet")
    assert "column `host` of pages.parquet" in found(tmp_path).notes[0]


@pytest.mark.parametrize("pages", [["a"], []])
def test_a_log_without_rows(tmp_path: Path, pages: list[str]) -> None:
    ids = pl.Series(pages, dtype=pl.String)
    empty = pl.DataFrame(values(("a", MONDAY, "1"))).head(0).to_dict(as_series=True)
    result = found(make(tmp_path, HOURLY, values=empty, pages={"page_id": ids}))
    assert result.overall is None
    assert result.notes[-1] == "values.parquet shows no page of pages.parquet"
    sheet_of(result).html()


def test_rows_of_strangers_are_left_out_and_counted(tmp_path: Path) -> None:
    result = found(make(tmp_path, HOURLY, values=TWO_OFFERS, pages={"page_id": ["A"]}))
    assert result.overall is not None
    assert result.overall.pages == 1
    assert result.notes == [
        "2 rows of values.parquet are of no page in pages.parquet or without a time"
    ]


@pytest.mark.parametrize(
    ("pages", "about", "fault"),
    [
        ({"page_id": ["A", "A"]}, {}, r"pages\.parquet: column `page_id` has 'A' more than once"),
        ({"page_id": ["A", None]}, {}, r"pages\.parquet: column `page_id` has empty rows"),
        ({"page_id": [1]}, {}, r"values\.parquet: column `page_id` is text, but integer in pages"),
        ({"url": ["A"]}, {}, r"pages\.parquet: column `page_id` is missing"),
        ({"page_id": ["A"]}, {"span": ["x", "y"]}, r"log\.json: `span`: 'y' is not a time"),
        ({"page_id": ["A"]}, {"resolution": "soon"}, r"log\.json: `resolution`"),
    ],
)
def test_bad_input_is_named(
    tmp_path: Path, pages: dict[str, Any], about: dict[str, Any], fault: str
) -> None:
    make(tmp_path, about, values=TWO_OFFERS, pages=pages)
    with pytest.raises(InputError, match=fault):
        found(tmp_path)


def test_a_table_that_is_not_parquet_is_named(tmp_path: Path) -> None:
    (make(tmp_path, values=TWO_OFFERS) / "values.parquet").write_bytes(b"page_id,at,value\n")
    with pytest.raises(InputError, match=r"values\.parquet: not a Parquet file"):
        found(tmp_path)


# ------------------------------------------------------------------------------ page and command


def everything(folder: Path) -> Path:
    """A log with every section: two merchants in two zones, with clicks."""
    rng = np.random.default_rng(2)
    rows = [(f"p{k}", hours(0), "0") for k in range(40)]
    for k in range(40):
        at = np.flatnonzero(rng.random(500) < 0.02 * (1 + k % 3)) + 1
        rows += [(f"p{k}", hours(int(h)), str(rng.integers(3))) for h in at]
    ids = [f"p{k}" for k in range(40)]
    pages = {
        "page_id": ids,
        "timezone": [["Europe/Paris", "Asia/Kolkata"][k % 2] for k in range(40)],
        "country": [["FR", "IN"][k % 2] for k in range(40)],
        "category": [["Toys > Dolls", "Media"][k % 2] for k in range(40)],
        "merchant": [f"</script><b>m{k}" for k in range(40)],
        "stratum": ["uniform", "click"] * 20,
        "kind": ["offer"] * 40,
    }
    demand = {
        "page_id": ids * 2,
        "at": [hours(k) for k in range(80)],
        "clicks": list(range(80)),
        "impressions": [100] * 80,
    }
    return make(folder, HOURLY, values=values(*rows), pages=pages, demand=demand)


def test_the_page_has_every_section_and_needs_no_network(tmp_path: Path) -> None:
    page = sheet_of(found(everything(tmp_path))).html()
    body = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    titles = re.findall(r"<h2>(.*?)</h2>", body)
    assert titles == [
        "Days of the week and hours of the day", "Time between two changes",
        *(f"By {by}" for by in ("country", "category", "merchant", "stratum", "kind")),
        "Change rates", "Demand",
    ]  # fmt: skip
    assert page.count("vegaEmbed(") >= 10
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=", body)
    assert "default-src 'none'" in page
    assert "<b>m1" not in page
    assert page.count("<script>") == page.count("</script>")


def test_the_page_is_the_same_every_time(tmp_path: Path) -> None:
    log = everything(tmp_path)
    assert sheet_of(found(log)).html() == sheet_of(found(log)).html()


@pytest.fixture
def command() -> typer.Typer:
    app = typer.Typer()
    app.command()(analyze)
    return app


def test_the_command_prints_facts_and_notes(tmp_path: Path, command: typer.Typer) -> None:
    result = CliRunner().invoke(command, [str(make(tmp_path, values=TWO_OFFERS))])
    assert result.exit_code == 0, result.output
    assert re.search(r"probability of change +37\.5 % \(13\.7 % to 69\.4 %\)", result.stdout)
    assert "note: log.json gives no `resolution`" in result.stdout


def test_the_command_prints_json_and_writes_the_page(tmp_path: Path, command: typer.Typer) -> None:
    log, page = everything(tmp_path / "log"), tmp_path / "new" / "report.html"
    result = CliRunner().invoke(command, [str(log), "--out", str(page), "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told == msgspec.json.decode(msgspec.json.encode(found(log)))
    assert (
        told["overall"]["probability"] == told["overall"]["changes"] / told["overall"]["downloads"]
    )
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert [p.name for p in page.parent.iterdir()] == ["report.html"]


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="there: cannot be written"):
        Sheet("x").write(tmp_path / "there")


def test_a_sheet_sets_numbers_right_and_text_safe() -> None:
    page = Sheet("<T>").heading("`h`").words("a & b").remarks([]).remarks(["`c` < d"])
    page.table(("name", "n", "share"), [("<x>", 1234, "5.0 %"), ("y", None, "0 %")])
    html = page.html()
    assert "<title>&lt;T&gt;</title>" in html
    assert "<h2><code>h</code></h2>" in html
    assert "<p>a &amp; b</p>" in html
    assert html.count("<ul") == 1
    assert "<td>&lt;x&gt;</td>" in html
    assert '<td class="number">1,234</td><td class="number">5.0&nbsp;%</td>' in html
    assert '<td class="number">–</td>' in html
    assert "<script>" not in html
