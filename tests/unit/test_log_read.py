"""A log is read as it stands, or refused by the name of its file and column."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from salticus.errors import InputError
from salticus.log.read import read_pages, read_values

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def values_file(folder: Path, **columns: list[Any]) -> Path:
    given = {"page_id": ["a"], "at": [NOON], "value": ["1"]} | columns
    pl.DataFrame(given).write_parquet(folder / "values.parquet")
    return folder


def test_values_come_by_page_and_time(tmp_path: Path) -> None:
    later = NOON + timedelta(hours=1)
    values_file(tmp_path, page_id=["b", "a", "b"], at=[later, NOON, NOON], value=["2", None, "1"])
    assert read_values(tmp_path).rows() == [("a", NOON, None), ("b", NOON, "1"), ("b", later, "2")]


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 1, 1, 12),  # noqa: DTZ001 - a log without a zone is read as UTC
        datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        pl.Series([NOON], dtype=pl.Datetime("ms", "UTC")),
        pl.Series([NOON], dtype=pl.Datetime("ns", "UTC")).dt.convert_time_zone("Asia/Tokyo"),
    ],
)
def test_times_of_any_form_are_utc_in_microseconds(tmp_path: Path, at: Any) -> None:
    values_file(tmp_path, at=at if isinstance(at, pl.Series) else [at])
    values = read_values(tmp_path)
    assert values.schema["at"] == pl.Datetime("us", "UTC")
    assert values["at"].to_list() == [NOON]


def test_a_day_is_its_midnight(tmp_path: Path) -> None:
    values_file(tmp_path, at=[date(2026, 1, 1)])
    assert read_values(tmp_path)["at"].to_list() == [NOON - timedelta(hours=12)]


def test_pages_keep_columns_that_the_format_does_not_know(tmp_path: Path) -> None:
    pl.DataFrame({"page_id": [3], "colour": ["red"]}).write_parquet(tmp_path / "pages.parquet")
    assert read_pages(tmp_path).rows(named=True) == [{"page_id": "3", "colour": "red"}]


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"at": [1]}, "column `at` is Int64, not a timestamp"),
        ({"at": [timedelta(1)]}, r"column `at` is Duration.*, not a timestamp"),
        ({"at": pl.Series([None], dtype=pl.Datetime("us"))}, "column `at` has empty rows"),
        ({"page_id": [1.5]}, "column `page_id` is Float64, neither text nor integer"),
        ({"page_id": pl.Series([None], dtype=pl.String)}, "column `page_id` has empty rows"),
        ({"value": [["1"]]}, r"column `value` is List\(String\), not text"),
    ],
)
def test_a_wrong_column_is_named(tmp_path: Path, columns: dict[str, Any], fault: str) -> None:
    values_file(tmp_path, **columns)
    with pytest.raises(InputError, match=rf"values\.parquet: {fault}"):
        read_values(tmp_path)


@pytest.mark.parametrize("column", ["page_id", "at", "value"])
def test_a_missing_column_is_named(tmp_path: Path, column: str) -> None:
    values_file(tmp_path)
    path = tmp_path / "values.parquet"
    pl.read_parquet(path).drop(column).write_parquet(path)
    with pytest.raises(InputError, match=rf"values\.parquet: column `{column}` is missing"):
        read_values(tmp_path)


def test_a_page_given_twice_is_named(tmp_path: Path) -> None:
    pl.DataFrame({"page_id": ["a", "b", "a"]}).write_parquet(tmp_path / "pages.parquet")
    with pytest.raises(
        InputError, match=r"pages\.parquet: column `page_id` has 'a' more than once"
    ):
        read_pages(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pages\.parquet: no such file"):
        read_pages(tmp_path)


def test_a_file_that_is_not_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "pages.parquet").write_bytes(b"page_id,url\n1,http://a.example/\n")
    with pytest.raises(InputError, match=r"pages\.parquet: not a Parquet file"):
        read_pages(tmp_path)
