"""A store of an earlier version opens, holds what it held, and its crawl goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from salticus.clock import SystemClock
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.lab.worlds.mall.server import Mall
from salticus.lab.worlds.mall.stock import generate
from salticus.store import open_store
from salticus.store.base import Store
from salticus.store.nouns import Query
from salticus.types.state import unpack

STORES = sorted(Path(__file__).parents[1].joinpath("data", "stores").glob("*.sql"))
SHOPS = [f"127.0.0.1:{40_000 + number}" for number in range(3)]
Rows = list[dict[str, Any]]


def build(sql: Path, path: Path, hosts: Sequence[str] = SHOPS) -> None:
    """Make the file, with the shops at these hosts."""
    text = sql.read_text("utf-8")
    for shop, host in zip(SHOPS, hosts, strict=True):
        text = text.replace(shop, host)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(text)


def rows(path: Path, query: str) -> Rows:
    """What the file says, without any code of ours."""
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(query)]


@pytest.fixture(params=STORES, ids=lambda path: path.stem, name="sql")
def _sql(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def agree(found: Sequence[object], told: Rows, names: str) -> None:
    """These columns say the same, row by row."""
    assert told, "a table of the old store is empty"
    for name in names.split():
        mine = [row[name] if isinstance(row, dict) else getattr(row, name) for row in found]
        assert mine == [row[name] for row in told], name


def test_a_dump_has_rows_in_every_table(sql: Path, tmp_path: Path) -> None:
    build(sql, tmp_path / "a.db")
    names = rows(tmp_path / "a.db", "SELECT name FROM sqlite_schema WHERE type = 'table'")
    for name in (row["name"] for row in names):
        assert rows(tmp_path / "a.db", f'SELECT 1 FROM "{name}" LIMIT 1'), name


def test_what_was_stored_is_there(sql: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    build(sql, path)

    def old(query: str) -> Rows:
        return rows(path, query)

    pages = old("SELECT *, id AS page FROM pages ORDER BY id")
    visits = old("SELECT *, page AS page_id FROM observations ORDER BY at, visit")
    values = old('SELECT page AS page_id, at, kind, visit FROM "values" ORDER BY at, visit')
    changes = old(
        'SELECT seq, found.page, found.at FROM changes JOIN "values" AS found USING (visit)'
        " ORDER BY seq"
    )
    others = {
        "links": old("SELECT source AS source_id, page AS page_id, appeared, vanished FROM links"),
        "signals": old("SELECT page AS page_id, at, kind, value FROM signals ORDER BY at, id"),
        "demand": old(
            "SELECT page AS page_id, at, sum(clicks) AS clicks, sum(impressions) AS impressions"
            " FROM demand GROUP BY at, page ORDER BY at, page"
        ),
        "requests": old("SELECT page AS page_id, at, score, propensity FROM requests"),
    }
    state = old("SELECT state FROM state")[0]["state"]
    kept = {
        name: old(f"SELECT * FROM {table} ORDER BY {order}")
        for name, table, order in (
            ("panel", "panel", "page"),
            ("alerts", "alerts", "since"),
            ("hosts", "hosts", "host"),
            ("marks", "imports", "place"),
            ("ticks", "gauges", "at"),
        )
    }
    last = old("SELECT max(at) AS at FROM gauges")[0]["at"]

    async def look(store: Store) -> None:
        found = sorted(await store.find(Query()), key=lambda page: page.page)
        agree(found, pages, "page url host kind added last_visit last_answer last_change status")
        agree(found, pages, "visits changes failures max_interval demand cost idle canonical")
        assert [page.tags for page in found] == [msgspec.json.decode(p["tags"]) for p in pages]
        table = await store.table()
        assert table.ids.tolist() == [page["id"] for page in pages]
        agree(
            list(store.scan("visits")), visits, "page_id at purpose propensity status code chance"
        )
        agree(list(store.scan("values")), values, "page_id at")
        agree(await store.changes(0), changes, "seq page at")
        for name, told in others.items():
            agree(list(store.scan(name)), told, " ".join(told[0]))
        agree(await store.panel(), kept["panel"], "page stratum weight every since until")
        agree(await store.alerts(past=True), kept["alerts"], "host kind since until fault")
        agree(await store.hosts(), kept["hosts"], "host next_at strikes robots_code robots_until")
        agree(await store.marks(), kept["marks"], "digest place file at")
        ticks, _ = await store.gauged(0, last + 1)
        agree(ticks, kept["ticks"], "at days pages demand stale stale_demand coins visits")
        assert await store.recall() == state
        for page in found:
            if page.value is not None:
                value = await store.value(page.page)
                assert value is not None
                assert page.value == value.text[:200]
        assert [hit.title for hit in await store.search("kettle")] == ["Fjord Kettle 103"]
        assert (await store.health()).wrong is None

    opened(path, look)


def opened(path: Path, look: Any) -> None:
    async def main() -> None:
        store = await open_store(str(path))
        try:
            await look(store)
        finally:
            await store.close()

    asyncio.run(main())


def settings(path: Path, clock: SystemClock) -> Config:
    """Those with which the store was made, on a clock of its own."""
    return parse(
        {
            "store": str(path),
            "budget": "300%",
            "tick": "2h",
            "explore": "20%",
            "seed": 3,
            "fetch": {
                "contact": "mall@example.org",
                "delay": "1ms",
                "timeout": "60s",
                "allow_private": ["127.0.0.1"],
            },
            "clock": {"world_origin": clock.world_origin, "wall_origin": clock.wall_origin},
        }
    )


def test_its_crawl_goes_on(sql: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    seen = "SELECT visit, page, at, status, changed FROM observations ORDER BY visit"

    async def crawl() -> tuple[Rows, int]:
        """One tick, a day after the last visit; what was there before, and the ticks since."""
        build(sql, tmp_path / "times.db")
        last = rows(tmp_path / "times.db", "SELECT max(last_visit) AS at FROM pages")[0]["at"]
        world = datetime.fromtimestamp(last / 1e6, UTC) + timedelta(days=1)
        clock = SystemClock(speed=1.0, world_origin=world, wall_origin=SystemClock().now())
        mall = Mall(generate(shops=3, offers=9, days=30, seed=7), clock)
        await mall.start()
        try:
            build(sql, path, mall.hosts)
            before = rows(path, seen)
            states = unpack(rows(path, "SELECT state FROM state")[0]["state"])
            async with crawler(settings(path, clock), once=True) as loop:
                lost = states.keys() - {"open"} - loop.snapshot.parts.keys()
                assert not lost, "nobody takes up what these parts had learnt"
                await loop.run(once=True)
                return before, loop.parts.ticks.number_ - int(states["ticks.Ticks"]["number"])
        finally:
            await mall.stop()

    before, ticks = asyncio.run(crawl())
    after = rows(path, seen)
    assert ticks == 1
    old = {row["visit"] for row in before}
    assert [row for row in after if row["visit"] in old] == before
    new = [row for row in after if row["visit"] not in old]
    pages = rows(path, "SELECT id, visits, last_visit, status FROM pages")
    answered = {page["id"] for page in pages if page["status"] in ("ok", "not_modified")}
    assert answered & {row["page"] for row in new}
    assert min(row["at"] for row in new) > max(row["at"] for row in before)
    times = {page["id"]: page["last_visit"] for page in pages}
    assert all(row["at"] <= times[row["page"]] for row in new)

    async def look(store: Store) -> None:
        found = await store.outcomes(np.array([row["visit"] for row in after]))
        assert len(found) == len(after)
        assert (await store.summary()).visits > len(before)

    opened(path, look)
