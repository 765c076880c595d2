"""The index of words is what a new one would be, whatever was done to the pages."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from salticus.store.nouns import Query
from salticus.store.sqlite.store import SqliteStore
from salticus.types import NewPage, Observation, Record, Told, Value

URLS = [f"http://shop.example/{n}" for n in range(3)]
PLACES = st.integers(0, len(URLS) - 1)
VALUES = st.builds(
    lambda title, price: Value("offer", price, {"title": title, "price": price}),
    st.sampled_from(["tea", "milk"]),
    st.sampled_from(["1", "2"]),
)
STATUSES = st.sampled_from(["ok", "ok", "not_modified", "gone"])
TIMES = st.integers(0, 9)
VISITS = st.tuples(PLACES, TIMES, STATUSES, st.none() | VALUES)
STEPS = st.one_of(
    st.tuples(st.just("visit"), VISITS, st.none() | PLACES),
    st.tuples(st.just("tell"), PLACES, TIMES, VALUES),
    st.tuples(st.just("forget"), PLACES),
    st.tuples(st.just("load"), st.lists(VISITS, max_size=3)),
)


async def page_of(store: SqliteStore, place: int) -> int:
    await store.add([NewPage(URLS[place])], at=0)
    return (await store.page(URLS[place])).page


async def seen(store: SqliteStore, number: int, visit: Any) -> Observation:
    place, at, status, value = visit
    page = await page_of(store, place)
    return Observation(number, page, at, "policy", 1.0, status, digest=str(value), value=value)


async def take(store: SqliteStore, numbers: count[int], name: str, *what: Any) -> None:
    if name == "visit":
        visit, moved = what
        record = Record(await seen(store, next(numbers), visit))
        record.moved = None if moved is None else URLS[moved]
        await store.record([record])
    elif name == "tell":
        place, at, value = what
        await store.told([Told(URLS[place], at, "acme", value)])
    elif name == "forget":
        await store.forget(Query(url=URLS[what[0]]))
    else:
        visits = [await seen(store, 0, visit) for visit in what[0]]
        visits.sort(key=lambda each: each.at)
        await store.load([], lambda _: [visits], at=0, most=len(visits))


def difference(path: Path) -> set[Any]:
    """Rows that the index has and a new one would not have, and the other way round."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO search (search) VALUES ('integrity-check')")
        kept = set(db.execute("SELECT rowid, title, about, url FROM search"))
        return kept ^ set(db.execute("SELECT page, title, about, url FROM words"))


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=8))
@example([("tell", 0, 1, Value("offer", "1")), ("visit", (0, 2, "ok", None), None)])
def test_the_index_is_what_a_new_one_would_be(steps: list[tuple[Any, ...]]) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = await SqliteStore.open(Path(folder, "a.db"))
            numbers = count(1)
            try:
                for step in steps:
                    await take(store, numbers, *step)
                    assert difference(store.path) == set(), step
            finally:
                await store.close()

    asyncio.run(main())
