"""A log warms a store: what was learnt elsewhere counts, once, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from salticus.cli.exchange import import_
from salticus.config import Config, parse
from salticus.crawl.importing import import_log
from salticus.crawl.opening import stored
from salticus.errors import InputError, StoreLocked
from salticus.exchange.write import export_log, write_log
from salticus.observe import digest
from salticus.store.sqlite.database import instance_lock
from salticus.store.sqlite.store import SqliteStore
from salticus.types import NewPage, Observation, Record, Target, Value
from salticus.types.state import unpack

pytestmark = pytest.mark.usefixtures("read_here")
T = TypeVar("T")

DAY = datetime(2026, 1, 1, tzinfo=UTC)
NOON = int(DAY.timestamp() * 1e6)
HOUR = 3_600_000_000
URLS = [f"http://shop{n % 2}.example/{n}" for n in range(4)]

PAGES = pl.DataFrame(
    {
        "page_id": ["a", "b", "c", "d"],
        "url": ["HTTP://Shop0.example:80/0#top", *URLS[1:]],
        "kind": ["offer", None, None, None],
        "title": ["Kettle", "Cup", None, None],
        "tags": [["x", "y"], None, [], None],
        "max_interval": [2.5, None, None, None],
    }
)
ROWS = [  # page, hours, status, changed, value
    ("a", 0, "ok", None, "19.9 EUR"),
    ("b", 1, "ok", None, "hello"),
    ("a", 24, "ok", False, None),
    ("a", 48, "timeout", None, None),
    ("a", 72, "ok", True, "21 EUR"),
    ("c", 73, "gone", None, None),
    ("a", 96, "not_modified", False, None),
]


def visits(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    columns = ("page_id", "hours", "status", "changed", "value")
    types = (pl.String, pl.Int64, pl.String, pl.Boolean, pl.String)
    frame = pl.DataFrame(rows, schema=dict(zip(columns, types, strict=True)), orient="row")
    return frame.with_columns(at=DAY + pl.duration(hours="hours")).drop("hours")


def a_log(folder: Path, about: dict[str, Any] | None = None, **tables: pl.DataFrame) -> Path:
    """A log with these tables in place of the usual ones."""
    usual = {"pages": PAGES, "visits": visits(ROWS)}
    write_log(folder, usual | tables, {"name": "x", "resolution": "1h"} | (about or {}))
    return folder


class Shop:
    """A store to import into, and what is in it."""

    def __init__(self, folder: Path) -> None:
        self.config: Config = parse({"store": str(folder / "salticus.db")})

    def take(self, log: Path, **options: Any) -> dict[str, int]:
        return asyncio.run(import_log(self.config, log, **options))

    def ask(self, question: Callable[[SqliteStore], Awaitable[T]]) -> T:
        async def main() -> T:
            async with stored(self.config) as store:
                return await question(store)

        return asyncio.run(main())

    def target(self, url: str) -> Target:
        async def find(store: SqliteStore) -> Target:
            page = await store.page(url)
            return (await store.targets(np.array([page.page])))[0]

        return self.ask(find)

    def visits(self) -> list[dict[str, Any]]:
        async def scan(store: SqliteStore) -> list[dict[str, Any]]:
            return list(store.scan("visits"))

        return self.ask(scan)


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_pages_and_visits_are_taken_in(tmp_path: Path, shop: Shop) -> None:
    assert shop.take(a_log(tmp_path / "log")) == {"pages": 4, "visits": 7}
    page = shop.ask(lambda store: store.page(URLS[0]))
    assert (page.url, page.kind, page.tags, page.max_interval) == (
        URLS[0],
        "offer",
        ["x", "y"],
        2.5,
    )
    assert (page.visits, page.changes, page.failures) == (5, 1, 1)
    assert (page.value, page.fields) == ("21 EUR", {"title": "Kettle"})
    assert page.last_visit == page.last_answer == NOON + 96 * HOUR
    assert (page.last_change, page.status) == (NOON + 72 * HOUR, "not_modified")
    other = shop.ask(lambda store: store.page(URLS[1]))
    assert (other.kind, other.value, other.demand) == ("page", "hello", None)
    gone = shop.ask(lambda store: store.page(URLS[2]))
    assert (gone.status, gone.value, gone.last_answer, gone.kind) == ("gone", None, None, None)
    told = [(row["at"], row["status"], row["changed"], row["value"]) for row in shop.visits()]
    assert told == [(NOON + h * HOUR, status, c, v) for _, h, status, c, v in ROWS]


def test_importing_twice_adds_nothing(tmp_path: Path, shop: Shop) -> None:
    log = a_log(tmp_path / "log")
    shop.take(log)
    before = (shop.visits(), shop.ask(lambda store: store.page(URLS[0])))
    assert shop.take(log) == {"pages": 0, "visits": 0}
    assert (shop.visits(), shop.ask(lambda store: store.page(URLS[0]))) == before


def test_a_longer_log_adds_what_is_new(tmp_path: Path, shop: Shop) -> None:
    shop.take(a_log(tmp_path / "short", visits=visits(ROWS[:4])))
    assert shop.take(a_log(tmp_path / "long")) == {"pages": 0, "visits": 3}
    assert [row["at"] for row in shop.visits()] == [NOON + h * HOUR for _, h, *_ in ROWS]
    page = shop.ask(lambda store: store.page(URLS[0]))
    assert (page.visits, page.value, page.last_visit) == (5, "21 EUR", NOON + 96 * HOUR)


# ------------------------------------------------------------------------- the first live visit


def test_the_first_live_visit_is_compared_with_the_last_value(tmp_path: Path, shop: Shop) -> None:
    shop.take(a_log(tmp_path / "log"))
    target = shop.target(URLS[0])
    assert (target.digest, target.seen) == (digest("21 EUR"), NOON + 96 * HOUR)
    assert shop.target(URLS[3]).digest is None


@pytest.mark.parametrize("how", ["option", "digests"])
def test_values_that_cannot_be_compared_are_not_kept(tmp_path: Path, shop: Shop, how: str) -> None:
    about = {"values_are": "digests"} if how == "digests" else {}
    log = a_log(tmp_path / "log", about)
    assert shop.take(log, values=how == "digests") == {"pages": 4, "visits": 7}
    assert shop.target(URLS[0]).digest is None
    page = shop.ask(lambda store: store.page(URLS[0]))
    assert (page.visits, page.changes, page.value) == (5, 1, None)


def test_a_change_to_an_unknown_value_leaves_none_to_compare_with(
    tmp_path: Path, shop: Shop
) -> None:
    rows = [("a", 0, "ok", None, "1"), ("a", 1, "ok", True, None), ("b", 0, "ok", None, "1")]
    shop.take(a_log(tmp_path / "log", visits=visits(rows)))
    assert shop.target(URLS[0]).digest is None
    assert shop.target(URLS[1]).digest == digest("1")
    assert shop.ask(lambda store: store.page(URLS[0])).changes == 1


def test_changes_are_derived_where_the_log_tells_values_alone(tmp_path: Path, shop: Shop) -> None:
    told = [("a", "5"), ("a", "5"), ("a", "6"), ("a", "5")]
    rows = [(page, n, None, None, value) for n, (page, value) in enumerate(told)]
    shop.take(a_log(tmp_path / "log", visits=visits(rows).drop("changed", "status")))
    found = [(row["status"], row["changed"], row["value"]) for row in shop.visits()]
    assert found == [("ok", None, "5"), ("ok", False, None), ("ok", True, "6"), ("ok", True, "5")]
    assert {row["purpose"] for row in shop.visits()} == {"policy"}
    assert {row["propensity"] for row in shop.visits()} == {None}


# --------------------------------------------------------------------- stores that have visits


def seen(number: int, hours: int, **known: Any) -> Observation:
    usual = {"at": NOON + hours * HOUR, "purpose": "policy", "propensity": 1.0, "status": "ok"}
    return Observation(visit=number, page=1, **usual | known)


def lived(shop: Shop, *observations: Observation) -> None:
    async def live(store: SqliteStore) -> None:
        await store.add([NewPage(URLS[0])], at=NOON)
        await store.record([Record(observation) for observation in observations])

    shop.ask(live)


def test_what_was_visited_later_stays_as_it_is(tmp_path: Path, shop: Shop) -> None:
    value = Value("offer", "30 EUR")
    lived(shop, seen(1, 500, value=value, digest=digest("30 EUR"), etag='"e"'),
          seen(2, 501, status="busy", fault="patience"))  # fmt: skip
    shop.take(a_log(tmp_path / "log"))
    page, target = shop.ask(lambda store: store.page(URLS[0])), shop.target(URLS[0])
    assert (page.value, page.status, page.fault) == ("30 EUR", "busy", "patience")
    assert (page.last_visit, page.last_answer) == (NOON + 501 * HOUR, NOON + 500 * HOUR)
    assert (page.visits, page.changes, page.last_change) == (7, 1, NOON + 72 * HOUR)
    assert (target.digest, target.etag) == (digest("30 EUR"), '"e"')


def test_what_was_visited_earlier_is_overtaken(tmp_path: Path, shop: Shop) -> None:
    old = seen(1, -9, value=Value("offer", "1 EUR"), digest=digest("1 EUR"), etag='"old"')
    lived(shop, old)
    shop.take(a_log(tmp_path / "log"))
    target = shop.target(URLS[0])
    assert (target.digest, target.etag) == (digest("21 EUR"), None)


def test_the_planner_s_numbers_stay_free(tmp_path: Path, shop: Shop) -> None:
    shop.take(a_log(tmp_path / "log"))
    lived(shop, *(seen(number, 600 + number) for number in range(1, 4)))
    assert len(shop.visits()) == len(ROWS) + 3


def test_the_predictor_has_learnt_the_visits(tmp_path: Path, shop: Shop) -> None:
    shop.take(a_log(tmp_path / "log"))
    state = unpack(shop.ask(lambda store: store.recall()) or b"")
    learnt = state["predictor.Serving"]
    assert learnt["ids"].tolist() == [1]  # of the others nothing can be said yet
    assert learnt["days"][0] > 0.0
    assert int(state["planner.Planner"]["next_visit"]) == 1
    assert len(state["open"]["visit"]) == 0


def test_a_run_goes_on_from_what_was_imported(tmp_path: Path, shop: Shop) -> None:
    """The snapshot that an import leaves is one that a loop can resume from."""
    from salticus.crawl.opening import clock_of
    from salticus.crawl.parts import make_parts
    from salticus.crawl.snapshot import Snapshot

    shop.take(a_log(tmp_path / "log"))

    async def resumed(store: SqliteStore) -> tuple[Any, Any]:
        parts = make_parts(shop.config, clock_of(shop.config), store)
        return parts, await Snapshot(parts.named(), store).recall()

    parts, recalled = shop.ask(resumed)
    assert recalled is not None
    assert len(recalled[0]) == len(recalled[1]) == 0
    assert parts.predictor.rates(np.array([1]))[0] != 0.25


# ------------------------------------------------------------------------------------- demand


def test_demand_is_the_mean_of_the_last_thirty_days(tmp_path: Path, shop: Shop) -> None:
    clicks = [("a", 0, 1000), ("a", 31, 30), ("a", 60, 60), ("b", 0, 7)]
    demand = pl.DataFrame(clicks, schema=["page_id", "day", "clicks"], orient="row").with_columns(
        at=DAY + pl.duration(days="day")
    )
    about = {"demand_bucket": "1d"}
    shop.take(a_log(tmp_path / "log", about, demand=demand.drop("day")))
    found = [shop.ask(lambda store, url=url: store.page(url)).demand for url in URLS]
    assert found == [3.0, 0.0, 0.0, 0.0]


def test_demand_of_a_short_log_is_the_mean_of_its_days(tmp_path: Path, shop: Shop) -> None:
    demand = pl.DataFrame({"page_id": ["a", "a"], "at": [DAY, DAY + timedelta(days=3)],
                           "clicks": [4, 4]})  # fmt: skip
    shop.take(a_log(tmp_path / "log", {"demand_bucket": "1d"}, demand=demand))
    assert shop.ask(lambda store: store.page(URLS[0])).demand == 2.0


# ----------------------------------------------------------------------------------- bad input


def odd(**columns: Any) -> pl.DataFrame:
    """The usual visits, something of the last one another."""
    last = {name: pl.lit(value) for name, value in columns.items()}
    return pl.concat([visits(ROWS[:-1]), visits(ROWS[-1:]).with_columns(**last)])


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"pages": PAGES.drop("url")}, "pages.parquet: column `url`: missing; a page is visited"),
        (
            {"pages": PAGES.with_columns(url=pl.col("url").replace(URLS[2], None))},
            "pages.parquet: column `url`, row 3: empty",
        ),
        (
            {"pages": PAGES.with_columns(url=pl.col("url").replace(URLS[3], "ftp://x.example/"))},
            "ftp://x.example/' cannot be visited",
        ),
        (
            {"pages": PAGES.with_columns(url=pl.col("url").replace(URLS[3], f"{URLS[1]}#x"))},
            "2 pages share one with another, the first is 'b' (http://shop1.example/1)",
        ),
        (
            {"pages": PAGES.with_columns(max_interval=pl.lit(-1.0))},
            "column `max_interval`, row 1 (and 3 more): not a number of days",
        ),
        ({"visits": odd(page_id="nosuch")}, "visits.parquet: column `page_id`, row 7"),
        ({"visits": odd(status="fine")}, "visits.parquet: column `status`, row 7: not one of ok"),
        ({"visits": visits([*ROWS, ROWS[0]])}, "visits.parquet: column `at`, row 8: the page has"),
    ],
)
def test_a_bad_log_leaves_the_store_as_it_was(
    tmp_path: Path, shop: Shop, tables: dict[str, pl.DataFrame], complaint: str
) -> None:
    lived(shop, seen(1, 0))
    before = shop.ask(lambda store: store.summary())
    with pytest.raises(InputError) as caught:
        shop.take(a_log(tmp_path / "log", **tables))
    assert complaint in str(caught.value)
    after = shop.ask(lambda store: store.summary())
    assert (after.pages, after.visits) == (before.pages, before.visits) == (1, 1)
    assert shop.take(a_log(tmp_path / "good")) == {"pages": 3, "visits": 6}


def test_a_damaged_file_is_named(tmp_path: Path, shop: Shop) -> None:
    log = a_log(tmp_path / "log")
    body = (log / "visits.parquet").read_bytes()
    (log / "visits.parquet").write_bytes(body[: len(body) // 2])
    with pytest.raises(InputError, match=r"nothing was imported[^§]*visits\.parquet"):
        shop.take(log)
    with pytest.raises(InputError, match="no such folder"):
        shop.take(tmp_path / "absent")


def test_a_store_in_use_is_not_touched(tmp_path: Path, shop: Shop) -> None:
    log = a_log(tmp_path / "log")
    with instance_lock(Path(shop.config.store)), pytest.raises(StoreLocked):
        shop.take(log)
    assert shop.ask(lambda store: store.summary()).pages == 0


def test_pages_alone_are_a_log_too(tmp_path: Path, shop: Shop) -> None:
    write_log(tmp_path / "log", {"pages": PAGES.select("page_id", "url")}, {"name": "x"})
    assert shop.take(tmp_path / "log") == {"pages": 4, "visits": 0}


def test_visits_come_in_batches(tmp_path: Path, shop: Shop, monkeypatch: Any) -> None:
    monkeypatch.setattr("salticus.exchange.past._BATCH", 2)
    shop.take(a_log(tmp_path / "log"))
    shop.ask(lambda store: asyncio.to_thread(export_log, store.scan, tmp_path / "out", name="x"))
    found = pl.read_parquet(tmp_path / "out" / "visits.parquet")
    assert found["value"].to_list() == [value for *_, value in ROWS]
    pages = pl.read_parquet(tmp_path / "out" / "pages.parquet")
    assert pages["title"].to_list() == ["Kettle", "Cup", None, None]
    assert pages["max_interval"].to_list() == [2.5, None, None, None]


def test_the_command_tells_what_was_new(tmp_path: Path, shop: Shop) -> None:
    log, config = a_log(tmp_path / "log"), tmp_path / "salticus.toml"
    config.write_text('store = "salticus.db"\n')
    app = typer.Typer()
    app.command()(import_)
    arguments = [str(log), "--config", str(config)]
    told = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert json.loads(told.stdout)["new"] == {"pages": 4, "visits": 7}
    told = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert told.stdout.split() == f"imported {log} new pages 0 new visits 0".split()
