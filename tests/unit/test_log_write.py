"""What is exported is what the store held, whole or not at all."""

from __future__ import annotations

import csv
import json
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from salticus.errors import InputError
from salticus.exchange.check import check
from salticus.exchange.truth import read_pages
from salticus.exchange.write import (
    export_log,
    export_rows,
    harmless_columns,
    resolution_of,
    write_log,
)

FIRST = 1_767_225_600_000_000  # 2026-01-01, in microseconds
VISIT = {
    "page_id": 1, "at": FIRST, "purpose": "policy", "policy": None, "propensity": 0.5,
    "status": "ok", "changed": None, "value": "19.9 EUR InStock", "age_s": 3.5,
}  # fmt: skip
TABLES: dict[str, list[dict[str, Any]]] = {
    "pages": [
        {
            "page_id": 1,
            "url": "http://a.example/1",
            "kind": "offer",
            "tags": ["x", "y"],
            "depth": 2,
        },
        {"page_id": 2, "url": "http://a.example/2", "kind": None, "tags": [], "depth": None},
    ],
    "visits": [VISIT, VISIT | {"page_id": 2, "at": FIRST + 1_500_000, "changed": True}],
    "signals": [{"page_id": 1, "at": FIRST, "kind": "lastmod", "value": "x"}],
    "links": [{"source_id": 1, "page_id": 2, "appeared": FIRST, "vanished": None}],
    "demand": [{"page_id": 1, "at": FIRST, "clicks": 2, "impressions": 9}],
    "requests": [],
}


def rows(table: str) -> Iterator[dict[str, Any]]:
    yield from TABLES[table]


def test_an_exported_log_reads_back(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "log"
    counts = {"pages": 2, "visits": 2, "signals": 1, "links": 1, "demand": 1}
    assert export_log(rows, folder, name="mine") == counts
    visits = pl.read_parquet(folder / "visits.parquet")
    first = datetime(2026, 1, 1, tzinfo=UTC)
    assert visits.schema["at"] == pl.Datetime("us", "UTC")
    assert visits["at"].to_list() == [first, first + timedelta(seconds=1.5)]
    given = [{k: v for k, v in row.items() if k != "at"} for row in TABLES["visits"]]
    assert visits.drop("at").rows(named=True) == given
    assert pl.read_parquet(folder / "signals.parquet").height == 1
    pages = read_pages(folder)
    assert pages.select("page_id", "url", "tags", "depth", "brand").rows() == [
        ("1", "http://a.example/1", ["x", "y"], 2, None),
        ("2", "http://a.example/2", [], None, None),
    ]
    about = json.loads((folder / "log.json").read_text())
    assert about["name"] == "mine"
    assert about["span"] == ["2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:01.500000Z"]
    assert about["rows"] == counts
    assert about["resolution"] == "1s"
    assert sorted(path.name for path in folder.iterdir()) == [
        "demand.parquet", "links.parquet", "log.json", "pages.parquet", "signals.parquet",
        "visits.parquet",
    ]  # fmt: skip
    assert list(folder.parent.iterdir()) == [folder]


def test_an_empty_store_makes_an_empty_log_with_its_columns(tmp_path: Path) -> None:
    export_log(lambda table: iter(()), tmp_path / "log", name="none")
    visits = pl.read_parquet(tmp_path / "log" / "visits.parquet")
    assert visits.height == 0
    assert visits.columns == list(VISIT)
    assert json.loads((tmp_path / "log" / "log.json").read_text())["span"] is None


def test_text_ids_stay_text_and_odd_columns_become_text(tmp_path: Path) -> None:
    odd = [{"page_id": "p", "fields": {"a": 1}}, {"page_id": "q", "fields": True}]
    export_log(lambda table: iter(odd if table == "pages" else ()), tmp_path / "log", name="x")
    pages = pl.read_parquet(tmp_path / "log" / "pages.parquet")
    assert pages.select("page_id", "fields").rows() == [("p", '{"a": 1}'), ("q", "true")]


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        export_log(rows, tmp_path, name="x")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(InputError, match="not empty"):
        export_log(rows, tmp_path / "mine.txt", name="x")


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    export_log(rows, tmp_path / "log", name="x")
    assert (tmp_path / "log" / "log.json").exists()


def broken(table: str) -> Iterator[dict[str, Any]]:
    yield from TABLES[table]
    raise RuntimeError("the store failed")


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the store failed"):
        export_log(broken, tmp_path / "log", name="x")
    kept = tmp_path / "visits.csv"
    kept.write_text("earlier export")
    with pytest.raises(RuntimeError, match="the store failed"):
        export_rows(broken("visits"), kept, "csv")
    assert list(tmp_path.iterdir()) == [kept]
    assert kept.read_text() == "earlier export"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="visits.csv: cannot be written"):
        export_rows(rows("visits"), tmp_path / "file" / "visits.csv", "csv")


class Counted(dict[str, Any]):
    """A row that is counted while it is alive."""

    alive = 0
    most = 0

    def __init__(self, row: dict[str, Any]) -> None:
        super().__init__(row)
        Counted.alive += 1
        Counted.most = max(Counted.most, Counted.alive)

    def __del__(self) -> None:
        Counted.alive -= 1


def test_rows_stream_in_order_without_being_held(tmp_path: Path) -> None:
    def many(table: str) -> Iterator[dict[str, Any]]:
        n = 180_000 if table == "visits" else 0
        return (Counted(VISIT | {"page_id": i, "at": FIRST + i}) for i in range(n))

    export_log(many, tmp_path / "log", name="x")
    visits = pl.read_parquet(tmp_path / "log" / "visits.parquet")
    assert visits["page_id"].to_list() == list(range(180_000))
    assert visits["at"].cast(pl.Int64).to_list()[-1] == FIRST + 179_999
    assert Counted.most <= 100_001


def test_visits_as_csv(tmp_path: Path) -> None:
    assert export_rows(rows("visits"), tmp_path / "v.csv", "csv") == 2
    with (tmp_path / "v.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first["at"] == "2026-01-01T00:00:00.000000Z"
    assert (first["changed"], second["changed"]) == ("", "true")
    assert first["value"] == "19.9 EUR InStock"
    assert float(first["propensity"]) == 0.5


CELLS = (
    st.text(st.sampled_from("=+-@'\t\r\n,;\"0123456789.eE A")) | st.text() | st.floats().map(str)
)


def is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII) is not None


@given(st.lists(CELLS, min_size=1))
@example(["=HYPERLINK(1)", "+1 2", "-cmd", "@SUM(A1)", "-3.5", "+4", "-1e-7", "\t=1", "-2\n"])
def test_no_cell_is_a_formula(cells: list[str]) -> None:
    """Numbers stay numbers, and every other text can be told from its cell."""
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "v.csv", Path(folder) / "w.csv"
        export_rows(iter([VISIT | {"value": cell, "=odd": 1} for cell in cells]), path, "csv")
        harmless_columns(pl.DataFrame({"=odd": cells})).write_csv(other)
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        with other.open(newline="", encoding="utf-8") as file:
            heading, *columns = csv.reader(file)
    found = [row["value"] for row in rows]
    assert heading == ["'=odd"]
    assert [*rows[0]][-1] == "'=odd"
    if "" not in cells:  # which is a line of its own to a reader of one column
        assert [row[0] for row in columns] == found
    for cell, text in zip(cells, found, strict=True):
        assert text in (cell, f"'{cell}")
        assert text[:1] not in "=+-@\t\r" or is_number(text) or not text
        assert text == cell or not is_number(cell)


def test_no_visits_as_csv_is_a_heading(tmp_path: Path) -> None:
    assert export_rows(iter(()), tmp_path / "v.csv", "csv") == 0
    assert (tmp_path / "v.csv").read_text().strip() == ",".join(VISIT)


def test_visits_as_json_lines(tmp_path: Path) -> None:
    assert export_rows(rows("visits"), tmp_path / "v.jsonl", "jsonl") == 2
    lines = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert lines[0] == VISIT | {"at": "2026-01-01T00:00:00.000000Z"}
    assert lines[1]["changed"] is True


# ------------------------------------------------------------------------------- tables of columns

AT = datetime(2026, 1, 1, tzinfo=UTC)
PAGES = pl.DataFrame({"depth": [3, 4], "url": ["http://a.example/1", None], "page_id": ["a", "b"]})
VALUES = pl.DataFrame(
    {"value": ["1", "2"], "at": [AT, AT + timedelta(days=2)], "page_id": ["a", "a"]}
)


def test_a_log_of_columns_is_sound_and_in_order(tmp_path: Path) -> None:
    about = {"name": "mine", "resolution": timedelta(days=1), "made": AT}
    folder = tmp_path / "deep" / "log"
    told = write_log(folder, {"pages": PAGES, "values": VALUES.lazy()}, about)
    assert told == {"pages": 2, "values": 2}
    assert check(folder) == []
    assert pl.read_parquet(folder / "pages.parquet").columns == ["page_id", "url", "depth"]
    values = pl.read_parquet(folder / "values.parquet")
    assert values.equals(VALUES.select("page_id", "at", "value"))
    assert json.loads((folder / "log.json").read_text()) == {
        "name": "mine",
        "span": ["2026-01-01T00:00:00.000000Z", "2026-01-03T00:00:00.000000Z"],
        "resolution": "1d",
        "made": "2026-01-01T00:00:00.000000Z",
        "rows": {"pages": 2, "values": 2},
    }
    assert list(folder.parent.iterdir()) == [folder]


def test_the_same_columns_make_the_same_bytes(tmp_path: Path) -> None:
    n = 600_000  # several row groups, several threads
    values = pl.LazyFrame({"page_id": range(n)}).with_columns(
        at=pl.lit(AT), value=(pl.col("page_id") * 7 % 1000).cast(pl.String)
    )
    for name in ("one", "two"):
        lazy = values.filter(pl.col("page_id") % 3 > 0)
        write_log(
            tmp_path / name, {"pages": values.select("page_id"), "values": lazy}, {"name": "x"}
        )
    for file in ("pages.parquet", "values.parquet", "log.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_types_become_those_of_the_format(tmp_path: Path) -> None:
    local = pl.Series([AT]).dt.convert_time_zone("Asia/Tokyo").dt.cast_time_unit("ms")
    demand = pl.DataFrame({"page_id": [1], "at": local, "clicks": [2]}).cast(
        {"page_id": pl.UInt16, "clicks": pl.Int8}
    )
    pages = pl.DataFrame({"page_id": [1], "kind": ["offer"]}).cast({"kind": pl.Categorical})
    write_log(tmp_path / "log", {"pages": pages, "demand": demand}, {"demand_bucket": "1h"})
    found = pl.read_parquet(tmp_path / "log" / "demand.parquet")
    assert found.rows() == [(1, AT, 2)]
    utc = pl.Datetime("us", "UTC")
    assert dict(found.schema) == {"page_id": pl.Int64, "at": utc, "clicks": pl.Int64}
    assert pl.read_parquet(tmp_path / "log" / "pages.parquet").schema["kind"] == pl.String


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"values": VALUES}, "needs a table `pages`"),
        ({"pages": PAGES, "prices": VALUES}, "no table `prices`; it may have pages, values"),
        ({"pages": PAGES.drop("page_id")}, "table `pages`: column `page_id` is missing"),
        ({"pages": PAGES, "values": VALUES.drop("value")}, "`values`: column `value` is missing"),
        (
            {
                "pages": PAGES,
                "values": VALUES.with_columns(pl.col("at").dt.replace_time_zone(None)),
            },
            "table `values`: column `at` is .*, not a UTC timestamp",
        ),
        ({"pages": PAGES.with_columns(url=pl.lit(5))}, "column `url` is .*, not text"),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    tmp_path: Path, tables: dict[str, pl.DataFrame], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        write_log(tmp_path / "log", tables, {"name": "x"})
    assert list(tmp_path.iterdir()) == []


def test_a_frame_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(frame: pl.DataFrame) -> pl.DataFrame:
        raise RuntimeError("the source failed")

    broken = VALUES.lazy().map_batches(fail, schema=dict(VALUES.schema))
    with pytest.raises(Exception, match="the source failed"):
        write_log(tmp_path / "log", {"pages": PAGES, "values": broken}, {"name": "x"})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        write_log(tmp_path / "full", {"pages": PAGES}, {"name": "x"})
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "mine.txt"]


def test_no_times_have_no_resolution(tmp_path: Path) -> None:
    VALUES.clear().write_parquet(tmp_path / "values.parquet")
    assert resolution_of(pl.scan_parquet(tmp_path / "values.parquet")) is None
