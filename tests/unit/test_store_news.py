"""What a visit says of other pages, in the SQLite store, beyond the laws of `Store`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.config import Scope
from salticus.errors import StoreError
from salticus.store.nouns import Edit, Query
from salticus.store.sqlite.store import SqliteStore
from salticus.types import Alert, Entry, NewPage, Observation, Record, Told, Value

from .test_store_sqlite import PAGES, seen, with_store

NEW = "http://new.example/"


def news(number: int, page: int, **said: Any) -> Record:
    return Record(seen(number, page), **said)


def test_news_are_kept_with_their_batch_or_not_at_all(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        alerts = (Alert("shop0.example", "blocked", 1),)
        good = news(1, 1, entries=(Entry(NEW),), moved=NEW, alerts=alerts)
        with pytest.raises(StoreError, match="not in the store"):
            await store.record([good, news(2, 999)])
        assert (await store.summary()).pages == 100
        assert (await store.alerts(), list(store.scan("links"))) == ([], [])
        await store.record([good])
        assert (await store.summary()).pages == 101

    with_store(tmp_path / "a.db", work)


def test_news_of_a_visit_that_is_stored_already_are_ignored(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        await store.record([Record(seen(1, 1))])
        again = news(1, 1, entries=(Entry(NEW),), moved=NEW)
        await store.record([again, news(2, 2), news(2, 3, moved=NEW)])
        assert (await store.summary()).pages == 100

    with_store(tmp_path / "a.db", work)


def test_hostile_entries_do_no_harm(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        odd = ("", "javascript:x", "http://[", "\ud800", "http://a\0b/", PAGES[0].url)
        entries = [Entry(url, kind="\ud800", at=10**30) for url in odd]
        entries += [Entry(NEW, at=-(10**30)), Entry("http://old.example/", at=-(10**16))]
        await store.record([news(1, 1, entries=tuple(entries), complete=True)])
        assert [row["page_id"] for row in store.scan("links")] == [101, 102]
        (signal,) = store.scan("signals")
        assert signal["value"] == "1653-02-10T06:13:20+00:00"

    with_store(tmp_path / "a.db", work)


def test_the_links_of_a_source_that_moves_go_along(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        named = tuple(Entry(f"http://shop.example/{n}") for n in range(3))
        await store.record([news(1, 1, entries=named, complete=True, moved=NEW)])
        source = (await store.page(NEW)).page
        assert {row["source_id"] for row in store.scan("links")} == {source}
        await store.record([news(2, source, entries=named[1:], complete=True)])
        assert [p.url for p in await store.find(Query(state="unlisted"))] == [named[0].url]

    with_store(tmp_path / "a.db", work)


def test_forgetting_a_source_leaves_the_pages_that_it_named(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        for n, entries in enumerate([(Entry(NEW),), ()]):
            await store.record([news(n, 1, entries=entries, complete=True)])
        assert (await store.page(NEW)).state == "unlisted"
        before = (await store.table()).revision
        assert await store.forget(Query(url=PAGES[0].url)) == 1
        assert (await store.table(before)).rests.tolist() == [True, False]
        assert (await store.page(NEW)).state == "new"

    with_store(tmp_path / "a.db", work)


def test_an_import_does_not_touch_what_is_newer(tmp_path: Path) -> None:
    told = Told(PAGES[0].url, 9 * 10**15, "acme", Value("offer", "1 EUR"))

    async def work(store: SqliteStore) -> None:
        await store.told([told])
        await store.record([Record(seen(n, 2, status="gone")) for n in (1, 2)])
        old = [Observation(0, page, 5, "policy", 1.0, "ok") for page in (1, 2)]
        old[0].value = Value("offer", "2 EUR")
        loaded = await store.load([PAGES[:2]], lambda ids: [old], at=1, most=2)
        assert loaded.visits == 2
        first, second = await store.page(PAGES[0].url), await store.page(PAGES[1].url)
        assert (first.told, first.value) == (told, "2 EUR")
        assert (second.status, second.idle) == ("gone", 2)
        assert await store.changes(0) == [], "what was found elsewhere is no change here"

    with_store(tmp_path / "a.db", work)


def test_a_full_disk_leaves_every_kind_of_write_undone(tmp_path: Path) -> None:
    text = "".join(map(chr, range(256, 20_000)))
    named = tuple(Entry(f"http://shop.example/{n}{'x' * 500}") for n in range(500))
    told = [Told(NEW + str(n), 1, "acme", Value("offer", text)) for n in range(20)]

    async def work(store: SqliteStore) -> None:
        async def pages_of_file(most: int) -> None:
            limit = f"PRAGMA max_page_count = {most}"
            await store._writes.run(lambda: store._writes.db.execute(limit).fetchall())

        writes = [
            lambda: store.record([news(1, 1, entries=named)]),
            lambda: store.add([NewPage(entry.url) for entry in named], at=1),
            lambda: store.told(told),
            lambda: store.remember([bytes(10**6)]),
            lambda: store.edit(Query(), Edit(add_tags=(text,))),
        ]
        await pages_of_file(1)  # as large as it is now
        for write in writes:
            with pytest.raises(StoreError, match=r"a\.db: the disk is full: free some space"):
                await write()
        assert len((await store.table()).ids) == 100
        assert (await store.outcomes(np.array([1]))).visit.tolist() == []
        assert await store.forget(Query(url="*/7")) == 1, "room can be made"
        await pages_of_file(10**6)
        for write in writes:
            await write()
        assert (await store.summary()).pages == 99 + 500 + 20

    with_store(tmp_path / "a.db", work)


def test_costs_are_only_looked_up_for_what_is_new(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        costs = [(Scope("*/1*"), 2.0)]
        await store.charge(costs)
        await store.edit(Query(url="*/11"), Edit(cost=5.0))
        await store.add([NewPage("http://new.example/1")], at=1)
        await store.charge(costs)
        pages = {p.url: p.cost for p in await store.find(Query(url="*/1?"))}
        assert sorted(pages.values()) == [2.0] * 9 + [5.0]
        assert (await store.page("http://new.example/1")).cost == 2.0
        await store.edit(Query(), Edit(cost=float("inf")))
        await store.charge(costs)
        assert sum((await store.table()).cost) == 101 + 12

    with_store(tmp_path / "a.db", work)
