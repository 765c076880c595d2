"""The figures of a log are those that one counts by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from salticus.cli.exchange import log_info
from salticus.errors import InputError
from salticus.exchange.info import info

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
SHARED = Path(__file__).parents[3] / "shared" / "data"

PAGES = {
    "page_id": ["a", "b", "c", "d"],
    "kind": ["offer", "offer", "offer", None],
    "country": ["FR", "DE", "FR", "FR"],
    "merchant": ["x", "x", "y", None],
    "stratum": ["uniform", "click", "uniform", None],
}
VALUES = [("a", 0, "1"), ("a", 2, "2"), ("a", 4, "1"), ("b", 5, "1"), ("b", 6, None), ("c", 0, "9")]


def write(folder: Path, about: dict[str, Any] | None = None, **tables: Any) -> Path:
    """A log of four pages; rows are tuples of page, day and the rest."""
    names = {
        "values": ("value",), "texts": ("text",), "demand": ("clicks", "impressions"),
        "visits": ("status", "purpose", "changed"), "requests": (), "signals": ("kind",),
    }  # fmt: skip
    pl.DataFrame(PAGES).write_parquet(folder / "pages.parquet")
    for table, rows in tables.items():
        columns = dict(zip(("page_id", "at", *names[table]), zip(*rows, strict=True), strict=True))
        columns["at"] = tuple(START + day * DAY for day in columns["at"])
        pl.DataFrame(columns).write_parquet(folder / f"{table}.parquet")
    if about is not None:
        (folder / "log.json").write_text(json.dumps(about))
    return folder


ABOUT = {"name": "mine", "resolution": "1d", "span": ["2026-01-01", "2026-01-10"]}


def test_pages_are_counted(tmp_path: Path) -> None:
    facts = info(write(tmp_path, ABOUT))
    assert (facts["name"], facts["resolution"]) == ("mine", "1d")
    assert (facts["rows"], facts["pages"], facts["merchants"]) == ({"pages": 4}, 4, 2)
    assert list(facts["pages_by_kind"].items()) == [("offer", 3), ("unknown", 1)]
    assert facts["pages_by_country"] == {"FR": 3, "DE": 1}
    assert facts["pages_by_stratum"] == {"uniform": 2, "click": 1, "unknown": 1}
    assert "changes_per_page" not in facts


def test_changes_are_counted_while_a_page_lives(tmp_path: Path) -> None:
    """a lives ten days and changes twice, b lives one day and goes, c lives ten and rests."""
    facts = info(write(tmp_path, ABOUT, values=VALUES))
    assert facts["pages_with_values"] == 3
    assert facts["changes_per_page"] == {"median": 1.0, "p90": 2.0, "max": 2}
    assert facts["changes_per_page_day"] == pytest.approx(3 / 21, abs=1e-4)
    assert facts["share_never_changed"] == pytest.approx(1 / 3, abs=1e-4)


def test_sums_do_not_overflow(tmp_path: Path) -> None:
    """More page-days than fit into 64 bits of microseconds, more clicks than into 32."""
    pages, days = 3_000, 40_000
    log = write(tmp_path, {"name": "x", "demand_bucket": "1d"})
    at = [START, START + days * DAY] * pages
    ids = [n // 2 for n in range(2 * pages)]
    values = {"page_id": ids, "at": at, "value": ["1", "2"] * pages}
    pl.DataFrame(values).write_parquet(log / "values.parquet")
    clicks = pl.Series([10**6] * 2 * pages, dtype=pl.Int32)
    demand = {"page_id": ids, "at": at, "clicks": clicks}
    pl.DataFrame(demand).write_parquet(log / "demand.parquet")
    facts = info(log)
    assert facts["changes_per_page_day"] == pytest.approx(1 / days)
    assert facts["clicks_per_day"] == pytest.approx(10**6 * 2 * pages / days)


def test_texts_stand_in_for_values(tmp_path: Path) -> None:
    facts = info(write(tmp_path, ABOUT, texts=[("a", 0, "x"), ("a", 5, "y")]))
    assert facts["pages_with_texts"] == 1
    assert facts["changes_per_page_day"] == pytest.approx(0.1)


def test_visits_and_clicks_are_rates(tmp_path: Path) -> None:
    visits = [
        ("a", 1, "ok", "policy", None),
        ("b", 2, "ok", "policy", True),
        ("a", 3, "timeout", "panel", None),
        ("c", 4, None, "policy", False),
    ]
    demand = [("a", 0, 30, 100), ("b", 9, 20, 0)]
    facts = info(write(tmp_path, ABOUT, visits=visits, demand=demand))
    assert facts["visits_per_page_day"] == pytest.approx(4 / 40)
    assert facts["share_by_status"] == {"ok": 0.5, "timeout": 0.25, "unknown": 0.25}
    assert facts["share_by_purpose"] == {"policy": 0.75, "panel": 0.25}
    assert facts["clicks_per_day"] == pytest.approx(5)
    assert facts["impressions_per_day"] == pytest.approx(10)


def test_without_a_span_the_times_tell(tmp_path: Path) -> None:
    facts = info(write(tmp_path, values=VALUES, requests=[("a", 8)]))
    assert facts["name"] == tmp_path.name
    assert facts["span"] == ["2026-01-01 00:00:00+00:00", "2026-01-09 00:00:00+00:00"]
    assert facts["changes_per_page_day"] == pytest.approx(3 / 17, abs=1e-4)


def test_a_log_of_one_moment_has_no_rates(tmp_path: Path) -> None:
    one = [("a", 0, "ok", "policy", None)]
    facts = info(write(tmp_path, values=[("a", 0, "1")], visits=one, demand=[("a", 0, 1, 1)]))
    assert facts["changes_per_page_day"] is None
    assert facts["visits_per_page_day"] is None
    assert facts["clicks_per_day"] is None


def test_empty_tables_have_no_figures(tmp_path: Path) -> None:
    write(tmp_path, values=VALUES, visits=[("a", 0, "ok", "policy", None)])
    for table in ("values", "visits"):
        path = tmp_path / f"{table}.parquet"
        pl.read_parquet(path).clear().write_parquet(path)
    facts = info(tmp_path)
    assert (facts["span"], facts["rows"]["values"]) == ([], 0)


# --------------------------------------------------------------------------------- what it is for


def uses(folder: Path) -> dict[str, str]:
    found: dict[str, str] = info(folder)["uses"]
    return found


def test_truth_can_be_replayed(tmp_path: Path) -> None:
    found = uses(write(tmp_path, ABOUT, values=VALUES))
    assert found["simulate"] == "yes (values.parquet; ticks of 1d or more)"
    assert found["serve in a mall"] == "yes (values.parquet)"
    assert found["weigh by clicks"] == "synthetic, because demand.parquet is missing"
    hours = "hour in UTC (pages.parquet: no `timezone`)"
    assert found["analyze"] == f"yes (values.parquet; by {hours}, country, merchant)"
    assert found["find new pages"] == "no, because links.parquet is missing"
    assert found["replay requests"] == "no, because requests.parquet is missing"


@pytest.mark.parametrize(
    ("days", "demand", "said"),
    [
        ([], False, "no, because links.parquet has no link of which it is known"),
        ([None], False, "no, because links.parquet has no link of which it is known"),
        ([1, 1, None], False, "no, because all links of links.parquet appeared at once"),
        ([1, 2], False, "yes (links.parquet; all links count alike, because demand.parquet"),
        ([1, 2], True, "yes (links.parquet; what pages are worth by demand.parquet)"),
    ],
)
def test_links_can_be_replayed_if_new_ones_appear(
    tmp_path: Path, days: list[int | None], demand: bool, said: str
) -> None:
    """It promised so of any file with that name."""
    appeared = [None if day is None else START + day * DAY for day in days]
    links = {"source_id": ["a"] * len(days), "page_id": ["b"] * len(days), "appeared": appeared}
    kinds = {"source_id": pl.String, "page_id": pl.String, "appeared": pl.Datetime("us", "UTC")}
    write(tmp_path, ABOUT, **({"demand": [("b", 1, 3, 4)]} if demand else {}))
    pl.DataFrame(links, schema=kinds).write_parquet(tmp_path / "links.parquet")
    assert uses(tmp_path)["find new pages"].startswith(said)


def test_visits_alone_are_imputed(tmp_path: Path) -> None:
    log = write(tmp_path, visits=[("a", 1, "ok", "policy", True)])
    because = "imputed, because it has visits.parquet but no values.parquet"
    assert uses(log)["simulate"] == because
    assert uses(log)["analyze"].startswith("yes (visits.parquet;")
    path = log / "visits.parquet"
    pl.read_parquet(path).drop("changed").write_parquet(path)
    assert "no column `changed`" in uses(log)["simulate"]
    assert "neither column `changed` nor `value`" in uses(log)["analyze"]


def test_texts_need_crawls_to_be_studied(tmp_path: Path) -> None:
    log = write(tmp_path, texts=[("a", 0, "x")])
    assert uses(log)["simulate"] == "yes (texts.parquet; log.json lacks `resolution`)"
    assert uses(log)["analyze"] == "no, because texts.parquet tells nothing without crawls.parquet"
    crawls = pl.DataFrame({"host": ["h"], "at": [START]})
    crawls.write_parquet(log / "crawls.parquet")
    assert "pages.parquet has no column `host`" in uses(log)["analyze"]
    pl.DataFrame({**PAGES, "host": ["h"] * 4}).write_parquet(log / "pages.parquet")
    assert uses(log)["analyze"].startswith("yes (texts.parquet;")


def test_demand_needs_its_bucket(tmp_path: Path) -> None:
    log = write(tmp_path, demand=[("a", 0, 1, 1)])
    assert uses(log)["weigh by clicks"] == "no, because log.json lacks `demand_bucket`"
    assert uses(log)["analyze"].startswith("demand only (demand.parquet), because values.parquet")
    assert uses(log)["simulate"].startswith("no, because values.parquet, texts.parquet and visits")
    write(tmp_path, {"demand_bucket": "1d"})
    assert uses(log)["weigh by clicks"] == "yes (demand.parquet)"


# ------------------------------------------------------------------------------------- the command


def command(*words: str) -> Any:
    app = typer.Typer()
    app.command()(log_info)
    return CliRunner().invoke(app, words)


def test_the_command_prints_facts(tmp_path: Path) -> None:
    log = str(write(tmp_path, ABOUT, values=VALUES))
    lines = [" ".join(line.split()) for line in command(log).stdout.splitlines()]
    assert lines[0] == "mine"
    assert "changes per page median 1.0, p90 2.0, max 2" in lines
    assert "pages by country FR 3, DE 1" in lines
    assert "simulate yes (values.parquet; ticks of 1d or more)" in lines
    facts = json.loads(command(log, "--json").stdout)
    assert facts["changes_per_page"]["max"] == 2
    assert facts["uses"]["simulate"].startswith("yes")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pages\.parquet: no such file"):
        info(tmp_path)
    write(tmp_path, {"name": "x", "span": ["soon", "later"]})
    with pytest.raises(InputError, match=r"log\.json: `span`: soon is not a time"):
        info(tmp_path)


def test_real_logs_are_as_their_readme_says() -> None:
    if not SHARED.exists():
        pytest.skip("the traces are not here")
    fuel = info(SHARED / "fuel")
    assert fuel["rows"] == {"pages": 33_148, "values": 883_531}
    assert fuel["changes_per_page_day"] == pytest.approx(0.23, abs=0.04)
    grocery = info(SHARED / "grocery")
    assert len(grocery["pages_by_country"]) == 3
    assert grocery["merchants"] == 9
    assert grocery["share_never_changed"] > 0.5
