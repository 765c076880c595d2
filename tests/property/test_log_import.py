"""A store that is exported, imported into an empty one and exported again is the same log."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.config import parse
from salticus.crawl.importing import import_log
from salticus.exchange.check import examine
from salticus.exchange.write import export_log
from salticus.observe import observe
from salticus.store.sqlite.store import SqliteStore
from salticus.types import Fetched, NewPage, Observation, Reading, Record, Status, Value

pytestmark = pytest.mark.usefixtures("read_here")
URLS = [f"http://shop{n % 2}.example/{n}" for n in range(3)]
NOON = 1_767_268_800_123_457

TEXTS = st.sampled_from(["1 EUR", "2 EUR", "long " * 300, "odd \0 text", ""])
FIELDS = st.dictionaries(st.sampled_from(["title", "brand", "condition"]), st.just("x"), max_size=2)
VALUES = st.builds(Value, st.sampled_from(["offer", "page"]), TEXTS, FIELDS)
NEW = st.builds(
    NewPage,
    st.just(""),
    kind=st.none() | st.just("offer"),
    tags=st.lists(st.sampled_from("ab"), max_size=2).map(tuple),
    max_interval=st.none() | st.floats(0.01, 100),
    demand=st.none() | st.floats(0, 100),
)
# page, seconds since the visit before, how it ended, what it found
VISITS = st.tuples(
    st.integers(0, 2),
    st.integers(1, 10**6),
    st.sampled_from([Status.OK, Status.OK, Status.NOT_MODIFIED, Status.GONE, Status.TIMEOUT]),
    st.none() | VALUES,
)


async def live(store: SqliteStore, pages: list[NewPage], visits: list[Any]) -> None:
    """Visit pages as a crawler would."""
    named = zip(URLS, pages, strict=True)
    await store.add(
        [NewPage(url, p.kind, p.tags, p.max_interval, p.demand) for url, p in named], at=0
    )
    at = NOON
    for number, (page, pause, status, value) in enumerate(visits, 1):
        at += pause * 1_000_000 + 1
        (target,) = await store.targets(np.array([page + 1]))
        fetched = Fetched(target.url, status, at, last_modified="Thu, 01 Jan 2026 00:00:00 GMT")
        seen: Observation = observe(
            target, fetched, Reading(value) if status is Status.OK else Reading()
        )
        seen.visit, seen.purpose = number, "limit" if number % 2 else "policy"
        await store.record([Record(seen)])


async def exported(path: Path, out: Path) -> dict[str, pl.DataFrame]:
    store = await SqliteStore.open(path)
    try:
        export_log(store.scan, out, name="x")
    finally:
        await store.close()
    assert examine(out) == []
    return {name: pl.read_parquet(out / f"{name}.parquet") for name in ("pages", "visits")}


@settings(max_examples=12, deadline=None)
@given(st.lists(NEW, min_size=3, max_size=3), st.lists(VISITS, max_size=15))
def test_a_store_survives_the_round_trip(pages: list[NewPage], visits: list[Any]) -> None:
    async def main(folder: Path) -> None:
        store = await SqliteStore.open(folder / "one.db")
        try:
            await live(store, pages, visits)
            targets = await store.targets(np.arange(1, 4))
        finally:
            await store.close()
        first = await exported(folder / "one.db", folder / "one")
        config = parse({"store": str(folder / "two.db")})
        told = await import_log(config, folder / "one")
        assert told == {"pages": 3, "visits": len(visits)}
        second = await exported(folder / "two.db", folder / "two")
        for name, table in first.items():
            assert table.equals(second[name]), name
        assert await import_log(config, folder / "one") == {"pages": 0, "visits": 0}
        other = await SqliteStore.open(folder / "two.db")
        try:
            again = await other.targets(np.arange(1, 4))
        finally:
            await other.close()
        held = [(target.digest, target.seen) for target in targets]
        assert [(target.digest, target.seen) for target in again] == held

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
