"""A sound log passes, whatever it holds; a broken one is named by file, column and row."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.exchange import check as checking
from salticus.exchange.check import check, examine
from salticus.exchange.folder import REQUIRED, TABLES, Log
from salticus.exchange.probe import damage
from salticus.exchange.rules import Violation

START = datetime(2026, 1, 1, tzinfo=UTC)
HOURS = 240
ABOUT = {
    "name": "made",
    "resolution": "1h",
    "demand_bucket": "1h",
    "span": ["2026-01-01", "2026-01-20T00:00:00Z"],
}
Draw = Callable[[Any], Any]


# ------------------------------------------------------------------------------------- sound logs


@dataclass
class Made:
    """A log that is not written yet."""

    tables: dict[str, pl.DataFrame]
    about: dict[str, Any]

    @contextmanager
    def written(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for table, frame in self.tables.items():
                frame.write_parquet(folder / f"{table}.parquet", row_group_size=5)
            (folder / "log.json").write_text(json.dumps(self.about))
            yield folder


def hour(number: int) -> datetime:
    return START + timedelta(hours=number)


@st.composite
def logs(draw: Draw, *, full: bool = False) -> Made:
    """A sound log; a full one has all tables, and a first page with two values at least."""
    pages = draw(st.integers(1, 6))
    number = draw(st.booleans())
    ids = [7 * n if number else f"page {n}" for n in range(pages)]
    tables = {"pages": page_rows(draw, ids)}
    makers = {
        "values": value_rows, "demand": demand_rows, "visits": visit_rows, "requests": event_rows,
        "links": link_rows, "texts": text_rows, "signals": signal_rows, "crawls": crawl_rows,
    }  # fmt: skip
    for table, make in makers.items():
        if full or draw(st.booleans()):
            rows = make(draw, ids)
            tables[table] = rows if full or draw(st.integers(0, 9)) else rows.clear()
    unit = draw(st.sampled_from(["ms", "us", "ns"]))
    zone = draw(st.sampled_from(["UTC", "UTC", "Asia/Tokyo"]))
    for table, frame in tables.items():
        times = pl.col(pl.Datetime).dt.cast_time_unit(unit).dt.convert_time_zone(zone)
        tables[table] = frame.with_columns(times)
    return Made(tables, dict(ABOUT))


def some(draw: Draw, rows: dict[str, Any], needed: tuple[str, ...]) -> pl.DataFrame:
    """These columns, perhaps without some that are not needed, perhaps with one unheard of."""
    extra = {"row": list(range(len(rows[needed[0]])))} if draw(st.booleans()) else {}
    kept = {c: cells for c, cells in rows.items() if c in needed or draw(st.integers(0, 3))}
    return pl.DataFrame(kept | extra)


def page_rows(draw: Draw, ids: list[Any]) -> pl.DataFrame:
    n = len(ids)

    def column(*choices: str | None) -> pl.Series:
        return pl.Series(
            draw(st.lists(st.sampled_from(choices), min_size=n, max_size=n)), dtype=pl.String
        )

    rows = {
        "page_id": ids,
        "kind": column("offer", "source", None),
        "timezone": column("Europe/Paris", "Asia/Kolkata", "UTC", None),
        "stratum": column("uniform", "click", None),
        "host": ["a.example", *column("a.example", "b.example")][:n],
        "tags": pl.Series([[] if k % 2 else ["x"] for k in range(n)], dtype=pl.List(pl.String)),
    }
    return pl.DataFrame(rows)


def histories(draw: Draw, ids: list[Any]) -> list[tuple[Any, int]]:
    """Rows of (page, hour), those of a page in order of time; of the first page at least two."""
    several = st.sets(st.integers(0, HOURS), max_size=5)
    hours = [draw(several) for _ in ids]
    hours[0] |= {3, 4}
    rows = [(page, at) for page, times in zip(ids, hours, strict=True) for at in sorted(times)]
    return sorted(rows, key=lambda row: row[1]) if draw(st.booleans()) else rows


def value_rows(draw: Draw, ids: list[Any]) -> pl.DataFrame:
    rows = histories(draw, ids)
    gone = draw(st.sets(st.sampled_from(ids)))
    last = {page: max(at for other, at in rows if other == page) for page, _ in rows}
    return pl.DataFrame(
        {
            "page_id": [page for page, _ in rows],
            "at": [hour(at) for _, at in rows],
            "value": [None if p in gone and last[p] == at else f"{at}.99" for p, at in rows],
        },
        schema_overrides={"value": pl.String},
    )


def text_rows(draw: Draw, ids: list[Any]) -> pl.DataFrame:
    return value_rows(draw, ids).rename({"value": "text"})


def demand_rows(draw: Draw, ids: list[Any]) -> pl.DataFrame:
    rows = draw(st.permutations(histories(draw, ids)))
    clicks = list(range(len(rows)))
    each = {"page_id": [p for p, _ in rows], "at": [hour(at) for _, at in rows]}
    return some(draw, {**each, "clicks": clicks, "impressions": clicks}, REQUIRED["demand"])


def events(draw: Draw, ids: list[Any]) -> dict[str, Any]:
    any_row = st.tuples(st.sampled_from(ids), st.floats(0, HOURS))
    rows = draw(st.lists(any_row, min_size=1, max_size=8))
    return {
        "page_id": [page for page, _ in rows],
        "at": [START + timedelta(hours=at) for _, at in rows],
    }


def event_rows(draw: Draw, ids: list[Any]) -> pl.DataFrame:
    return some(draw, events(draw, ids), REQUIRED["requests"])


def visit_rows(draw: Draw, ids: list[Any]) -> pl.DataFrame:
    rows = events(draw, ids)
    n = len(rows["at"])
    rows |= {
        "purpose": ["policy"] * n,
        "propensity": pl.Series(
            [draw(st.none() | st.floats(0, 1)) for _ in range(n)], dtype=pl.Float64
        ),
        "status": ["ok", *["timeout"] * (n - 1)],
        "changed": [draw(st.none() | st.booleans()) for _ in range(n)],
        "age_s": pl.Series([None, *[4] * (n - 1)]).cast(pl.Float64),
    }
    return some(draw, rows, (*REQUIRED["visits"], "propensity", "status", "purpose", "age_s"))


def link_rows(draw: Draw, ids: list[Any]) -> pl.DataFrame:
    rows = events(draw, ids)
    stays = draw(st.lists(st.none() | st.integers(0, 999), min_size=len(rows["at"]), max_size=99))
    gone = [
        at + timedelta(hours=stay) if stay is not None else None
        for at, stay in zip(rows["at"], stays, strict=False)
    ]
    return pl.DataFrame(
        {
            "source_id": [ids[0]] * len(gone),
            "page_id": rows["page_id"],
            "appeared": rows["at"],
            "vanished": pl.Series(gone, dtype=pl.Datetime("us", "UTC")),
        }
    )


def signal_rows(draw: Draw, ids: list[Any]) -> pl.DataFrame:
    rows = events(draw, ids)
    more = {"kind": ["lastmod"] * len(rows["at"]), "value": [None] * len(rows["at"])}
    return some(draw, rows | more, REQUIRED["signals"])


def crawl_rows(draw: Draw, ids: list[Any]) -> pl.DataFrame:
    rows = events(draw, ids)
    return pl.DataFrame({"host": ["a.example"] * len(rows["at"]), "at": rows["at"]})


@settings(max_examples=25, deadline=None)
@given(made=logs())
def test_a_sound_log_passes(made: Made) -> None:
    with made.written() as folder:
        assert examine(folder) == []


# ------------------------------------------------------------------------------------ broken ones


Where = tuple[str, str | None, int | None]
Breakage = Callable[[Draw, Made], Where]
BREAKAGES: dict[str, Breakage] = {}


def breakage(function: Breakage) -> Breakage:
    BREAKAGES[function.__name__] = function
    return function


def columns(*kinds: str, needed: bool = False) -> list[tuple[str, str]]:
    """The columns of the format that are of these kinds."""
    every = [(t, c) for t, table in TABLES.items() for c, kind in table.items() if kind in kinds]
    return [(t, c) for t, c in every if c in REQUIRED[t] or not needed]


def change(made: Made, table: str, column: str, row: int, cell: Any) -> Where:
    """Put another cell there; answers where that is, rows counted from 1."""
    frame = made.tables[table]
    cells = frame[column].to_list()
    cells[row] = cell
    made.tables[table] = frame.with_columns(pl.Series(column, cells, dtype=frame.schema[column]))
    return f"{table}.parquet", column, row + 1


def a_row(draw: Draw, made: Made, table: str) -> int:
    return int(draw(st.integers(0, made.tables[table].height - 1)))


@breakage
def missing_pages(draw: Draw, made: Made) -> Where:
    del made.tables["pages"]
    return "pages.parquet", None, None


@breakage
def missing_column(draw: Draw, made: Made) -> Where:
    table, column = draw(st.sampled_from([(t, c) for t in REQUIRED for c in REQUIRED[t]]))
    made.tables[table] = made.tables[table].drop(column)
    return f"{table}.parquet", column, None


@breakage
def naive_times(draw: Draw, made: Made) -> Where:
    table, column = draw(st.sampled_from(columns("time")))
    naive = pl.col(column).dt.replace_time_zone(None)
    made.tables[table] = made.tables[table].with_columns(naive)
    return f"{table}.parquet", column, None


@breakage
def wrong_type(draw: Draw, made: Made) -> Where:
    there = [(t, c) for t in made.tables for c in made.tables[t].columns if c in TABLES[t]]
    table, column = draw(st.sampled_from(there))
    others: dict[str, list[Any]] = {
        "id": [1.5, True, START],
        "time": [1, "2026-01-01", START.date(), timedelta(1)],
        "text": [1.5, 7, ["a"]],
        "texts": ["a", [1]],
        "float": ["0.5"],
        "count": [1.0, "1"],
        "bool": [1, "true"],
    }
    cell = draw(st.sampled_from(others[TABLES[table][column]]))
    cells = pl.Series(column, [cell] * made.tables[table].height)
    made.tables[table] = made.tables[table].with_columns(cells)
    return f"{table}.parquet", column, None


@breakage
def other_ids(draw: Draw, made: Made) -> Where:
    table, column = draw(st.sampled_from([c for c in columns("id") if c[0] != "pages"]))
    frame = made.tables[table]
    kind = pl.Int64 if frame.schema[column] == pl.String else pl.String
    made.tables[table] = frame.with_columns(pl.Series(column, range(frame.height)).cast(kind))
    return f"{table}.parquet", column, None


@breakage
def empty_cell(draw: Draw, made: Made) -> Where:
    table, column = draw(st.sampled_from([*columns("id", "time", needed=True), ("crawls", "host")]))
    frame = made.tables[table]
    made.tables[table] = pl.concat([frame, frame[-1]])
    return change(made, table, column, frame.height, None)


@breakage
def unknown_id(draw: Draw, made: Made) -> Where:
    table, column = draw(st.sampled_from([c for c in columns("id") if c[0] != "pages"]))
    stranger = "nobody" if made.tables[table].schema[column] == pl.String else -1
    return change(made, table, column, a_row(draw, made, table), stranger)


@breakage
def page_twice(draw: Draw, made: Made) -> Where:
    frame = made.tables["pages"]
    made.tables["pages"] = pl.concat([frame, frame[a_row(draw, made, "pages")]])
    return "pages.parquet", "page_id", frame.height + 1


@breakage
def time_twice(draw: Draw, made: Made) -> Where:
    table = draw(st.sampled_from(["values", "demand"]))
    row = a_row(draw, made, table)
    frame = made.tables[table]
    made.tables[table] = pl.concat([frame[: row + 1], frame[row:]])
    return f"{table}.parquet", "at", row + 2


def neighbours(draw: Draw, made: Made, table: str) -> tuple[int, int]:
    """Two rows of a page with none of it between them."""
    ids = made.tables[table]["page_id"].to_list()
    first = {page: n for n, page in reversed(list(enumerate(ids)))}
    later = draw(st.sampled_from([n for n, page in enumerate(ids) if first[page] < n]))
    return max(n for n in range(later) if ids[n] == ids[later]), later


@breakage
def unsorted(draw: Draw, made: Made) -> Where:
    table = draw(st.sampled_from(["values", "texts"]))
    one, two = neighbours(draw, made, table)
    order = list(range(made.tables[table].height))
    order[one], order[two] = two, one
    made.tables[table] = made.tables[table][order]
    return f"{table}.parquet", "at", two + 1


@breakage
def no_change(draw: Draw, made: Made) -> Where:
    one, two = neighbours(draw, made, "values")
    return change(made, "values", "value", two, made.tables["values"]["value"][one])


@breakage
def outside_the_span(draw: Draw, made: Made) -> Where:
    table, column = draw(st.sampled_from(columns("time", needed=True)))
    frame = made.tables[table]
    if draw(st.booleans()):
        page = frame[-1].with_columns(
            pl.lit(hour(24 * 19 + 1)).cast(frame.schema[column]).alias(column)
        )
        page = page.with_columns(pl.lit(None).alias(c) for c in page.columns if c == "vanished")
        page = page.with_columns(pl.lit("new").alias(c) for c in page.columns if c == "value")
        made.tables[table] = pl.concat([frame, page], how="vertical_relaxed")
        return f"{table}.parquet", column, frame.height + 1
    made.about["span"] = ["2025-06-01", "2025-06-30T12:00:00+02:00"]
    made.tables = {
        name: rows if name in (table, "pages") else rows.clear()
        for name, rows in made.tables.items()
    }
    return f"{table}.parquet", column, 1


@breakage
def off_the_grid(draw: Draw, made: Made) -> Where:
    row = a_row(draw, made, "demand")
    return change(
        made, "demand", "at", row, made.tables["demand"]["at"][row] + timedelta(minutes=1)
    )


@breakage
def vanished_first(draw: Draw, made: Made) -> Where:
    row = a_row(draw, made, "links")
    before = made.tables["links"]["appeared"][row] - timedelta(seconds=1)
    return change(made, "links", "vanished", row, before)


@breakage
def bad_cell(draw: Draw, made: Made) -> Where:
    cells = [
        ("demand", "clicks", -1),
        ("visits", "propensity", float("nan")),
        ("visits", "propensity", 1.5),
        ("visits", "propensity", -0.5),
        ("visits", "age_s", -1.0),
        ("pages", "timezone", "Mars/Olympus"),
        ("pages", "stratum", "random"),
    ]
    table, column, cell = draw(st.sampled_from(cells))
    return change(made, table, column, a_row(draw, made, table), cell)


@breakage
def bad_about(draw: Draw, made: Made) -> Where:
    faults = [
        ("name", None), ("name", 7), ("name", ""), ("resolution", None), ("resolution", "soon"),
        ("resolution", 0), ("resolution", "9" * 20 + "d"), ("demand_bucket", None),
        ("demand_bucket", []), ("span", "2026"), ("span", ["2026-01-01"]), ("span", [1, 2]),
        ("span", ["2026-01-31", "2026-01-01"]), ("span", ["2026-01-01T00:00", "2026-12-01"]),
    ]  # fmt: skip
    key, value = draw(st.sampled_from(faults))
    made.about[key] = value
    if value is None and draw(st.booleans()):
        del made.about[key]
    return "log.json", key, None


def named(found: list[Violation], level: str = "violation") -> list[Where]:
    return [(each.file, each.column, each.row) for each in found if each.level == level]


@pytest.mark.parametrize("how", BREAKAGES)
@settings(max_examples=9, deadline=None)
@given(data=st.data())
def test_what_is_broken_is_named_and_nothing_else(how: str, data: st.DataObject) -> None:
    made = data.draw(logs(full=True))
    where = BREAKAGES[how](data.draw, made)
    with made.written() as folder:
        found = examine(folder)
    assert named(found) == [where], [str(each) for each in found]
    assert str(found[0]).startswith(where[0])


@settings(max_examples=7, deadline=None)
@given(data=st.data())
def test_odd_labels_are_warnings(data: st.DataObject) -> None:
    made = data.draw(logs(full=True))
    labels = [("pages", "kind"), ("visits", "purpose"), ("visits", "status"), ("crawls", "host")]
    table, column = data.draw(st.sampled_from(labels))
    where = change(made, table, column, a_row(data.draw, made, table), "odd")
    with made.written() as folder:
        found = examine(folder)
    assert named(found) == []
    assert named(found, "warning") == [where]


# ---------------------------------------------------------------------------------------- damage


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_a_truncated_file_is_named(data: st.DataObject) -> None:
    made = data.draw(logs(full=True))
    table = data.draw(st.sampled_from(list(TABLES)))
    with made.written() as folder:
        path = folder / f"{table}.parquet"
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        assert named(check(folder)) == [(path.name, None, None)]


@settings(max_examples=5, deadline=None)
@given(made=logs(full=True), table=st.sampled_from(list(TABLES)), step=st.integers(20, 40))
def test_no_truncation_goes_unseen(made: Made, table: str, step: int) -> None:
    with made.written() as folder, tempfile.TemporaryDirectory() as name:
        whole = (folder / f"{table}.parquet").read_bytes()
        cuts = [Path(name) / f"{n}.parquet" for n in range(0, len(whole), step)]
        for path in cuts:
            path.write_bytes(whole[: int(path.stem)])
        found = damage(cuts)
        assert list(found) == cuts
        assert all(list(faults) == [None] for faults in found.values())


flips = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255))


@settings(max_examples=2, deadline=None)
@given(
    made=logs(full=True),
    table=st.sampled_from(list(TABLES)),
    flipped=st.lists(flips, min_size=10, max_size=25),
)
def test_a_flipped_byte_is_named_or_harmless(
    made: Made, table: str, flipped: list[tuple[float, int]]
) -> None:
    with made.written() as folder, tempfile.TemporaryDirectory() as name:
        path = folder / f"{table}.parquet"
        copies = [Path(name) / f"{n}.parquet" for n in range(len(flipped))]
        for copy, (place, bits) in zip(copies, flipped, strict=True):
            content = bytearray(path.read_bytes())
            content[int(place * len(content))] ^= bits
            copy.write_bytes(content)
        faults = damage(copies)
        for copy in copies:
            path.write_bytes(copy.read_bytes())
            found = named(examine(folder, {path: faults.get(copy, {})}))
            assert bool(found) or copy not in faults
            if not found:
                Log(folder).scan(table).collect()


# ----------------------------------------------------------------------------------------- order


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 5), st.sampled_from("ab")), max_size=30
    ),
    piece=st.integers(1, 7),
)
def test_order_is_that_of_each_page_whatever_the_pieces(
    rows: list[tuple[int, int, str]], piece: int
) -> None:
    frame = pl.DataFrame(
        {
            "page_id": [page for page, _, _ in rows],
            "at": pl.Series([hour(at) for _, at, _ in rows], dtype=pl.Datetime("us", "UTC")),
            "value": pl.Series([value for _, _, value in rows], dtype=pl.String),
        },
        schema_overrides={"page_id": pl.Int64},
    ).with_row_index("row", 1)
    ids = pl.DataFrame({"page_id": [3, 1, 0, 2]}).with_row_index("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "_PIECE", piece)
        found = checking.order_of(frame.lazy(), ids, "value")
    early, again, repeated = set(), set(), set()
    last: dict[int, tuple[int, str]] = {}
    for row, (page, at, value) in enumerate(rows, 1):
        before, had = last.get(page, (-1, ""))
        last[page] = (at, value)
        if at <= before:
            (early if at < before else again).add(row)
        elif value == had:
            repeated.add(row)
    for tally, expected in zip(
        (found.early, found.again, found.repeated), (early, again, repeated), strict=True
    ):
        assert (tally.count, tally.first) == (len(expected), min(expected, default=None))
