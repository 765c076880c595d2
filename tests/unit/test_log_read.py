"""A log is read as it stands, or refused by the name of its file and column."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from salticus.errors import InputError
from salticus.exchange.folder import Log, LogMetadata
from salticus.exchange.truth import read_pages, read_values

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


def test_a_value_that_is_a_number_is_its_text(tmp_path: Path) -> None:
    values_file(tmp_path, page_id=[1], value=[3.5])
    assert read_values(tmp_path).rows() == [("1", NOON, "3.5")]


def test_pages_keep_columns_that_the_format_does_not_know(tmp_path: Path) -> None:
    pl.DataFrame({"page_id": [3], "colour": ["red"]}).write_parquet(tmp_path / "pages.parquet")
    assert read_pages(tmp_path).rows(named=True) == [{"page_id": "3", "colour": "red"}]


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"at": [1]}, "column `at` is Int64, not a UTC timestamp"),
        ({"at": [timedelta(1)]}, r"column `at` is Duration.*, not a UTC timestamp"),
        (
            {"at": [NOON.replace(tzinfo=None)]},
            "column `at` is a timestamp without a time zone, not a UTC timestamp",
        ),
        ({"at": [NOON.date()]}, "column `at` is a date without a time, not a UTC timestamp"),
        ({"at": pl.Series([None], dtype=pl.Datetime("us", "UTC"))}, "column `at` has empty rows"),
        ({"page_id": [1.5]}, "column `page_id` is Float64, not text or integer"),
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


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no such folder"):
        Log(tmp_path / "nowhere")


def test_a_file_that_is_not_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "pages.parquet").write_bytes(b"page_id,url\n1,http://a.example/\n")
    with pytest.raises(InputError, match=r"pages\.parquet: not a Parquet file"):
        read_pages(tmp_path)


def test_damage_inside_a_file_is_named(tmp_path: Path) -> None:
    path = values_file(tmp_path, page_id=["a"], value=["x" * 1000]) / "values.parquet"
    content = path.read_bytes()
    at = content.rindex(b"\x28\xb5\x2f\xfd")  # where the last compressed page begins
    path.write_bytes(content[:at] + b"zzzz" + content[at + 4 :])
    with pytest.raises(InputError, match=r"values\.parquet: not a Parquet file, or damaged"):
        read_values(tmp_path)


# ------------------------------------------------------------------------------- reading it lazily


def test_a_scan_gives_every_column_its_one_form(tmp_path: Path) -> None:
    text = pl.Series(["x"], dtype=pl.Categorical)
    given = {"page_id": text, "title": [None], "tags": [[]], "host": text, "row": [1]}
    pl.DataFrame(given).write_parquet(tmp_path / "pages.parquet")
    assert Log(tmp_path).scan("pages", "host").collect_schema() == {
        "page_id": pl.String(),
        "title": pl.String(),
        "tags": pl.List(pl.String),
        "host": pl.String(),
        "row": pl.Int64(),
    }
    with pytest.raises(InputError, match=r"pages\.parquet: column `url` is missing"):
        Log(tmp_path).scan("pages", "url")


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "log [1]*"
    folder.mkdir()
    values_file(folder)
    log = Log(folder)
    assert (log.rows("values"), log.rows("texts")) == (1, 0)
    assert log.scan("values").collect().height == 1
    assert log.columns("texts") == set()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ('{"resolution": "often"}', "`resolution`: 'often' is not a duration"),
        ('{"resolution": "0s"}', "`resolution`: it must be more than 0"),
        ('{"demand_bucket": "99999999999999d"}', "`demand_bucket`: 99999999999999d is too long"),
    ],
)
def test_what_is_wrong_with_log_json_is_named(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "log.json").write_text(text)
    with pytest.raises(InputError, match=rf"log\.json: {fault}"):
        Log(tmp_path)


def test_what_log_json_says_is_known(tmp_path: Path) -> None:
    about = {"name": "mine", "resolution": "10min", "demand_bucket": 3600, "licence": "CC0"}
    (tmp_path / "log.json").write_text(json.dumps(about))
    found = Log(tmp_path).about
    assert (found.name, found.rest["licence"]) == ("mine", "CC0")
    assert found.resolution == timedelta(minutes=10)
    assert found.demand_bucket == timedelta(hours=1)
    assert found.ends() is None
    (tmp_path / "log.json").unlink()
    assert Log(tmp_path).about.name == tmp_path.name


def test_a_span_includes_its_ends() -> None:
    about = LogMetadata("x", rest={"span": ["2026-01-01T12:00:00+02:00", "2026-01-03"]})
    assert about.ends() == (
        datetime(2026, 1, 1, 10, tzinfo=UTC),
        datetime(2026, 1, 3, 23, 59, 59, 999_999, tzinfo=UTC),
    )
