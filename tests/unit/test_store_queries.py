"""SQL has a name, a file, and a plan that does not scan what may be huge."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from salticus.store.sqlite.database import create
from salticus.store.sqlite.queries import QUERIES, migrations, named, statements

# run for every batch of visits, every tick or every page asked for
QUICK = [
    "record",
    "targets",
    "outcomes",
    "edited_pages",
    "page_columns",
    "content",
    "changes",
    "link_entries",
    "unlink_entries",
    "signal_entries",
    "relist",
    "alias_page",
    "same_page",
    "state_rows",
    "tell_pages",
    "forget_aliases",
    "forget_links",
    "forget_observations",
    "forget_pages",
    "forget_signals",
    "forget_sources",
    "forget_values",
    "prune_observations",
    "prune_signals",
]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(create(tmp_path / "salticus.db", migrations())) as connection:
        yield connection


def explain(db: sqlite3.Connection, query: str) -> list[str]:
    unknown = dict.fromkeys(re.findall(r":(\w+)", query))
    return [row["detail"] for row in db.execute(f"EXPLAIN QUERY PLAN {query}", unknown)]


@pytest.mark.parametrize("name", [n for n in QUERIES if not QUERIES[n].startswith("CREATE")])
def test_every_query_fits_the_schema(db: sqlite3.Connection, name: str) -> None:
    explain(db, QUERIES[name])


@pytest.mark.parametrize("name", QUICK)
def test_quick_queries_scan_no_table(db: sqlite3.Connection, name: str) -> None:
    assert not scans(db, QUERIES[name])


def test_a_page_is_found_without_a_scan(db: sqlite3.Connection) -> None:
    assert not scans(db, f"{QUERIES['page_states']} WHERE url = :url")


def scans(db: sqlite3.Connection, query: str) -> list[str]:
    tables = r"SCAN (pages|observations|values|content|signals|links|changes|forgotten)\b"
    return [step for step in explain(db, query) if re.match(tables, step)]


def test_recording_scans_no_table_in_its_trigger_either(db: sqlite3.Connection) -> None:
    program = db.execute(f"EXPLAIN {QUERIES['record']}", {"rows": None, "packed": None})
    steps = [row["opcode"] for row in program]
    assert "Program" in steps, "the trigger is part of the program"
    assert steps.count("Rewind") == steps.count("OpenEphemeral") == 1, "only the batch is scanned"


@pytest.mark.parametrize("table", ["observations", "values", "signals"])
def test_a_page_s_history_is_found_by_index(db: sqlite3.Connection, table: str) -> None:
    plan = explain(db, f'SELECT * FROM "{table}" WHERE page = 1 ORDER BY at')
    assert plan == [f"SEARCH {table} USING INDEX {table}_page_at (page=?)"]


def test_queries_are_found_by_name() -> None:
    text = "-- about the file\n\n-- name: one\nSELECT 1; -- name: no\n-- name: two\nSELECT 2;\n"
    assert named(text) == {"one": "SELECT 1; -- name: no", "two": "SELECT 2;"}


def test_a_script_is_cut_at_statements_not_at_semicolons() -> None:
    script = "-- first; line\nINSERT INTO a VALUES (';');\n\nSELECT\n  1;\n"
    assert [part.split()[-1] for part in statements(script)] == ["(';');", "1;"]
