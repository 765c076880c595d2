"""What `check` says, to whom and how; that it says what is true is a property."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from salticus.cli.exchange import log_check
from salticus.exchange import probe
from salticus.exchange.check import check, examine
from salticus.exchange.folder import REQUIRED, TABLES
from salticus.exchange.probe import ask, damage
from salticus.exchange.rules import Violation

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DOCS = Path(__file__).parents[2] / "docs"
SHARED = Path(__file__).parents[3] / "shared" / "data"
ZSTD = b"\x28\xb5\x2f\xfd"  # what a compressed page begins with


def write(folder: Path, about: Any = None, **tables: dict[str, Any]) -> Path:
    """A log of a page `a` and a page `b`, and of these tables."""
    usual: dict[str, Any] = {"pages": {"page_id": ["a", "b"]}}
    for name, rows in (usual | tables).items():
        pl.DataFrame(rows).write_parquet(folder / f"{name}.parquet")
    given = {"name": "x", "resolution": "1h", "demand_bucket": "1h"} if about is None else about
    (folder / "log.json").write_text(json.dumps(given))
    return folder


def values(*rows: tuple[str, int, str | None]) -> dict[str, Any]:
    return {
        "page_id": [page for page, _, _ in rows],
        "at": [NOON + hours * HOUR for _, hours, _ in rows],
        "value": [value for _, _, value in rows],
    }


SOUND = values(("a", 0, "1"), ("a", 1, "2"), ("b", 0, "1"))


def said(folder: Path) -> list[str]:
    return [str(each) for each in examine(folder)]


# ------------------------------------------------------------------------------------- what it says


def test_violations_read_well(tmp_path: Path) -> None:
    log = write(
        tmp_path,
        pages={"page_id": ["a", "b", "a"], "timezone": ["UTC", "Paris", None]},
        values=values(("a", 2, "1"), ("a", 1, "2"), ("a", 0, "3"), ("c", 0, "1"), ("b", 0, "1")),
        visits={"page_id": ["a"], "at": [NOON.replace(tzinfo=None)], "propensity": [1.5]},
        requests={"page_id": [1], "at": [NOON]},
    )
    assert said(log) == [
        "pages.parquet: column `timezone`, row 2: 'Paris' is no IANA time zone; "
        "write a name such as Europe/Paris, or leave it empty",
        "pages.parquet: column `page_id`, row 3: 'a' has a row already; keep one row a page",
        "values.parquet: column `page_id`, row 4: 'c' is not in pages.parquet; "
        "add it there, or leave these rows out",
        "values.parquet: column `at`, row 2 (and 1 more): 2026-01-01 13:00:00+00:00 is earlier "
        "than the row before it of the same page; sort by page_id, at",
        "visits.parquet: column `at`: a timestamp without a time zone, not a UTC timestamp; "
        "write with the times that they are UTC",
        "visits.parquet: column `propensity`, row 1: 1.5 is no probability; "
        "write a number from 0 to 1, or leave it empty",
        "requests.parquet: column `page_id`: Int64, but `page_id` of pages.parquet is String; "
        "use one type of id throughout",
    ]


def test_a_table_of_which_nothing_can_be_judged_is_named(tmp_path: Path) -> None:
    log = write(tmp_path, values={"value": ["1", "2"]})
    assert said(log) == [
        f"values.parquet: column `{column}`: missing; every row needs it"
        for column in ("page_id", "at")
    ]


def test_in_log_json_there_are_no_columns() -> None:
    wrong = Violation("log.json", "span", "it is short", "lengthen it")
    assert str(wrong) == "log.json: `span`: it is short; lengthen it"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "log.json: not JSON (Expecting property name"),
        ("7", "log.json: not a JSON object; write one JSON object"),
        ('{"name": "x"}', "log.json: `resolution`: missing; say how finely"),
        ('{"name": "x", "resolution": "1 fortnight"}', "log.json: `resolution`: '1 fortnight' is"),
        ('{"name": "x", "resolution": 1, "span": ["2026-01-01T00:00", "2026-02-01"]}',
         "log.json: `span`: 2026-01-01T00:00 has no time zone"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_log_json_is_said(tmp_path: Path, text: str, fault: str) -> None:
    log = write(tmp_path, values=SOUND)
    (log / "log.json").write_text(text)
    (found,) = said(log)
    assert found.startswith(fault)


def test_only_values_need_a_resolution_and_only_demand_a_bucket(tmp_path: Path) -> None:
    log = write(tmp_path, {"name": "x"}, visits={"page_id": ["a"], "at": [NOON]})
    assert said(log) == []
    write(tmp_path, {"name": "x"}, demand={"page_id": ["a"], "at": [NOON], "clicks": [1]})
    assert [each.column for each in examine(log)] == ["demand_bucket"]


def test_a_log_without_log_json_is_a_log(tmp_path: Path) -> None:
    log = write(tmp_path, values=SOUND)
    (log / "log.json").unlink()
    assert [(each.file, each.level) for each in examine(log)] == [("log.json", "warning")]


def test_what_looks_odd_is_a_warning(tmp_path: Path) -> None:
    about = {"name": "x", "resolution": "1h", "rows": {"pages": 3, "values": 3}}
    log = write(tmp_path, about, values=SOUND, value=SOUND)
    found = examine(log)
    assert [(each.level, each.file, each.problem) for each in found] == [
        ("warning", "log.json", "3 for pages.parquet, which has 2"),
        ("warning", "value.parquet", "not a table of the format, so it is not read"),
    ]


# ------------------------------------------------------------------------------------ what it finds


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    (found,) = check(tmp_path / "nowhere")
    assert str(found).startswith(f"{tmp_path / 'nowhere'}: no such folder")


def test_without_pages_the_rest_is_still_looked_at(tmp_path: Path) -> None:
    log = write(tmp_path, values=values(("a", 1, "1"), ("a", 0, "2")))
    (log / "pages.parquet").unlink()
    found = [(each.file, each.column, each.row) for each in examine(log)]
    assert found == [("pages.parquet", None, None), ("values.parquet", "at", 2)]


def test_pages_may_stand_between_one_another(tmp_path: Path) -> None:
    rows = values(("a", 0, "1"), ("b", 0, "1"), ("a", 1, "2"), ("b", 1, None))
    assert said(write(tmp_path, values=rows)) == []


def test_demand_may_come_in_any_order_but_once(tmp_path: Path) -> None:
    at = [NOON + n * HOUR for n in (2, 1, 0)]
    demand = {"page_id": ["a"] * 3, "at": at, "clicks": [1, 2, 3]}
    assert said(write(tmp_path, demand=demand)) == []
    again = {"page_id": ["a"] * 4, "at": [*at, at[0]], "clicks": [1, 2, 3, 4]}
    (found,) = examine(write(tmp_path, demand=again))
    assert (found.column, found.row, found.count) == ("at", 4, 1)


def test_weeks_begin_where_the_log_lets_them_begin(tmp_path: Path) -> None:
    at = [NOON, NOON + timedelta(weeks=1), NOON + timedelta(weeks=2, hours=1)]
    demand = {"page_id": ["a"] * 3, "at": at, "clicks": [1, 2, 3]}
    (found,) = examine(write(tmp_path, {"name": "x", "demand_bucket": "7d"}, demand=demand))
    assert (found.column, found.row) == ("at", 3)


def test_a_bucket_may_begin_before_the_span(tmp_path: Path) -> None:
    about = {"name": "x", "demand_bucket": "1d", "span": ["2026-01-01T10:00:00Z", "2026-01-02"]}
    day = NOON - 12 * HOUR
    at = [day, day - 24 * HOUR]
    log = write(tmp_path, about, demand={"page_id": ["a"] * 2, "at": at, "clicks": [1, 1]})
    assert [(each.column, each.row) for each in examine(log)] == [("at", 2)]


def test_two_texts_at_one_time_are_a_warning(tmp_path: Path) -> None:
    texts = {"page_id": ["a", "a"], "at": [NOON, NOON], "text": ["x", "y"]}
    (found,) = examine(write(tmp_path, texts=texts))
    assert (found.level, found.column, found.row) == ("warning", "at", 2)


def test_ids_are_numbers_of_any_width(tmp_path: Path) -> None:
    big = 2**63 + 5
    pages = {"page_id": pl.Series([3, big], dtype=pl.UInt64)}
    narrow = {"page_id": pl.Series([3, 4], dtype=pl.Int16), "at": [NOON] * 2}
    found = examine(write(tmp_path, pages=pages, requests=narrow))
    assert [(each.column, each.row, each.problem) for each in found] == [
        ("page_id", 2, "4 is not in pages.parquet")
    ]


def test_times_that_no_calendar_has_are_shown(tmp_path: Path) -> None:
    far = pl.Series([0, 2**62]).cast(pl.Datetime("us", "UTC"))
    (found,) = examine(write(tmp_path, requests={"page_id": ["a", "a"], "at": far}))
    assert (found.row, found.problem) == (2, f"{2**62} µs after 1970 is no time of our calendar")


@pytest.mark.parametrize("name", ["fuel", "grocery", "news", "teletext", "trending"])
def test_real_logs_pass(name: str) -> None:
    if not (SHARED / name).exists():
        pytest.skip(f"the trace {name} is not here")
    assert [str(each) for each in check(SHARED / name) if each.level == "violation"] == []


# ------------------------------------------------------------------------------------------- damage


def test_a_damaged_column_is_named_and_the_others_are_looked_at(tmp_path: Path) -> None:
    rows = [("a", n, str(n)) for n in range(50)]
    log = write(tmp_path, values=values(*rows, ("a", 0, "x")))
    path = log / "values.parquet"
    content = path.read_bytes()
    last = content.rindex(ZSTD)  # the last page of the last column
    path.write_bytes(content[:last] + b"zzzz" + content[last + 4 :])
    found = check(log)
    assert [(each.file, each.column, each.row) for each in found] == [
        ("values.parquet", "value", None),
        ("values.parquet", "at", 51),
        ("values.parquet", "at", 51),
    ]
    assert found[0].problem.startswith("cannot be read (")
    assert found[0].remedy == "write the file anew"


def test_a_reader_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each child answers one question, and dies of the next."""
    mortal = """
import json, os, sys
path, columns = json.load(sys.stdin)[0]
print("ready", json.dumps({"columns": [path]}), sep="\\n", flush=True)
os.abort()
"""
    monkeypatch.setattr(probe, "_CHILD", ("-c", mortal))
    died = {"fault": "its reader broke off"}
    questions: list[probe.Question] = [("a", None), ("b", None), ("c", None)]
    assert ask(questions) == [{"columns": ["a"]}, died, {"columns": ["c"]}]
    assert damage([tmp_path]) == {tmp_path: {None: "its reader broke off"}}


def test_a_reader_that_cannot_start_is_not_taken_for_damage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "_CHILD", ("-c", "raise ImportError('no polars')"))
    with pytest.raises(RuntimeError, match="no polars"):
        ask([("a", None)])


# --------------------------------------------------------------------------------- its description


def test_every_table_and_column_is_described() -> None:
    text = (DOCS / "reference" / "log-format.md").read_text("utf-8")
    parts = re.split(r"^## ", text, flags=re.M)
    for table, columns in TABLES.items():
        (part,) = (part for part in parts if part.startswith(f"`{table}.parquet`"))
        rows = re.findall(r"^\| `(\w+)` \|[^|]*\| (yes)?", part, re.M)
        assert [column for column, _ in rows] == list(columns), table
        needed = tuple(column for column, need in rows if need)
        assert sorted(needed) == sorted(REQUIRED[table]), table


# ------------------------------------------------------------------------------------- the command


def command(*words: str) -> Any:
    app = typer.Typer()
    app.command()(log_check)
    return CliRunner().invoke(app, words)


def test_the_command_says_ok(tmp_path: Path) -> None:
    done = command(str(write(tmp_path, values=SOUND)))
    assert (done.exit_code, done.stdout) == (0, "ok: 2 pages, 3 values\n")


def test_the_command_names_everything_and_fails(tmp_path: Path) -> None:
    log = write(tmp_path, values=values(("c", 0, "1")), value=SOUND)
    done = command(str(log))
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "values.parquet: column `page_id`, row 1: 'c' is not in pages.parquet; "
        "add it there, or leave these rows out",
        "warning: value.parquet: not a table of the format, so it is not read; rename or remove it",
        "not sound: violations 1, warnings 1",
    ]
    done = command(str(log), "--json")
    assert done.exit_code == 1
    answer = json.loads(done.stdout)
    assert answer["ok"] is False
    assert answer["violations"] == [
        {
            "file": "values.parquet",
            "column": "page_id",
            "problem": "'c' is not in pages.parquet",
            "remedy": "add it there, or leave these rows out",
            "row": 1,
            "count": 1,
            "level": "violation",
        }
    ]
    assert [each["file"] for each in answer["warnings"]] == ["value.parquet"]


def test_warnings_alone_are_no_failure(tmp_path: Path) -> None:
    done = command(str(write(tmp_path, values=SOUND, value=SOUND)), "--json")
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["ok"]) == (0, True)
    assert answer["rows"] == {"pages": 2, "values": 3}
