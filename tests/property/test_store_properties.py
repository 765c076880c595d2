"""Whatever is written, the SQLite store and the plain one in memory hold the same."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import tempfile
from collections.abc import Awaitable
from contextlib import closing
from dataclasses import fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.config import Caps, Scope
from salticus.errors import InputError, StoreError
from salticus.store.base import Store
from salticus.store.nouns import SORTS, STATES, Edit, Query, plain
from salticus.store.sqlite.packing import glob, pack, raw, rows, text, unpack
from salticus.store.sqlite.store import SqliteStore
from salticus.testing import MemoryStore
from salticus.types import (
    PURPOSE,
    STATUS,
    Alert,
    Entry,
    HostState,
    NewPage,
    Observation,
    Record,
    Signal,
    Told,
    Value,
)
from salticus.urls import canonical

TABLES = ("pages", "visits", "values", "signals", "links")
URLS = [f"http://shop{n % 2}.example/{n}" for n in range(5)]
PAGES = st.integers(1, len(URLS))
TIMES = st.integers(-(2**53), 2**53)
FLOATS = st.floats(0, 1e12, allow_subnormal=False)
PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
ANY = st.text(st.characters(), max_size=20) | st.text("ab", min_size=1020, max_size=1030)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


FIELDS = st.dictionaries(st.sampled_from(["title", "brand", "price"]) | PLAIN, PLAIN, max_size=3)
VALUES = st.builds(Value, PLAIN, ANY, FIELDS)
OBSERVATIONS = st.builds(
    Observation,
    visit=st.integers(0, 40),
    page=PAGES,
    at=TIMES,
    purpose=st.sampled_from(sorted(PURPOSE)),
    propensity=FLOATS,
    status=st.sampled_from(sorted(STATUS)) | st.just("ok") | st.just("not_modified"),
    code=st.integers(0, 599),
    changed=maybe(st.booleans()),
    since=maybe(TIMES),
    age_s=maybe(FLOATS),
    digest=maybe(PLAIN),
    value=maybe(VALUES),
    etag=maybe(PLAIN),
    last_modified=maybe(PLAIN),
    fault=maybe(PLAIN),
    size=st.integers(0, 2**40),
    elapsed_s=FLOATS,
)
HOSTS = st.builds(
    HostState,
    host=st.sampled_from(["a.example", "b.example:8080"]),
    next_at=FLOATS,
    strikes=st.integers(0, 99),
    robots=maybe(ANY),
    robots_code=maybe(st.integers(0, 599)),
    robots_until=FLOATS,
)
PLACES = st.sampled_from([*URLS, "http://new.example/", "HTTP://SHOP1.example/9#a", "mailto:me"])
ENTRIES = st.builds(
    Entry,
    PLACES,
    kind=maybe(st.just("source")),
    at=maybe(TIMES | st.integers(0, 3)),
    word=st.sampled_from(["lastmod", "feed"]),
)
ALERTS = st.builds(
    Alert,
    host=st.sampled_from(["a.example", "b.example"]),
    kind=st.sampled_from(["blocked", "layout"]),
    at=TIMES,
    fault=PLAIN,
    over=st.booleans(),
)
PLAIN_RECORDS = st.builds(
    Record,
    OBSERVATIONS,
    hosts=st.lists(HOSTS, max_size=2).map(tuple),
    content=maybe(st.binary()),
    content_type=PLAIN,
)
NEWS = st.builds(
    Record,
    OBSERVATIONS,
    moved=maybe(PLACES),
    canonical=maybe(PLACES),
    entries=maybe(st.lists(ENTRIES, max_size=5).map(tuple)),
    complete=st.booleans(),
    alerts=st.lists(ALERTS, max_size=2).map(tuple),
)
EDITS = st.builds(
    NewPage,
    PLACES.filter(lambda place: place != "mailto:me"),
    kind=maybe(st.sampled_from(["offer", "page"])),
    tags=st.lists(PLAIN, max_size=3).map(tuple),
    max_interval=maybe(FLOATS),
    demand=maybe(FLOATS),
    found=st.booleans(),
)
QUERIES = st.builds(
    Query,
    url=maybe(st.sampled_from(["*", "http://shop0*", "*/?", "*[1-3]", "", "HTTP*"])),
    host=maybe(st.sampled_from(["shop1.*", "*w.example"])),
    tag=maybe(st.sampled_from(["a", "b"])),
    kind=maybe(st.sampled_from(["offer", "source"])),
    status=maybe(st.sampled_from(["ok", "gone"])),
    state=maybe(st.sampled_from(STATES)),
    sort=st.sampled_from(SORTS),
    descending=st.booleans(),
    limit=maybe(st.integers(0, 4)),
)
TAGS = st.lists(st.sampled_from(["a", "b", "\N{HOT BEVERAGE}"]), max_size=2).map(tuple)
CHANGES = st.builds(
    Edit,
    add_tags=TAGS,
    remove_tags=TAGS,
    kind=maybe(st.sampled_from(["offer", "source"])),
    max_interval=maybe(FLOATS | st.just(math.inf)),
    demand=maybe(FLOATS),
    cost=maybe(FLOATS | st.just(math.inf)),
    paused=maybe(st.booleans()),
)
PATTERNS = st.sampled_from(["*", "*[1-3]", "*[!1-3]", "http://shop0*", "*/?", "[", "*[^/]"])
TOLD = st.builds(
    Told,
    PLACES.filter(lambda p: p != "mailto:me"),
    TIMES,
    PLAIN,
    st.builds(Value, PLAIN, PLAIN, FIELDS),
)
SIGNALS = st.builds(Signal, PAGES, TIMES, kind=PLAIN, value=maybe(PLAIN))
SCOPES = st.builds(Scope, match=PATTERNS, host=maybe(PATTERNS), tag=maybe(PLAIN))
COSTS = st.lists(st.tuples(SCOPES, FLOATS), max_size=3)
STEPS = st.one_of(
    st.tuples(st.just("record"), st.lists(PLAIN_RECORDS, max_size=12)),
    st.tuples(st.just("record"), st.lists(NEWS, max_size=6)),
    st.tuples(st.just("add"), st.lists(EDITS, max_size=4)),
    st.tuples(st.just("notice"), st.lists(SIGNALS, max_size=3)),
    st.tuples(st.just("told"), st.lists(TOLD, max_size=3)),
    st.tuples(st.just("edit"), QUERIES, CHANGES),
    st.tuples(st.just("forget"), QUERIES.filter(lambda query: query.url not in (None, "*"))),
    st.tuples(st.just("charge"), COSTS),
    st.tuples(st.just("done"), PLAIN, st.integers(0, 9)),
)
CAPS = st.builds(Caps, *(st.integers(1, 6) for _ in range(4))) | st.just(Caps())


async def take(store: Store, steps: list[tuple[Any, ...]]) -> list[Any]:
    """Write all of it; what the writing told, and which pages were edited by it."""
    told: list[Any] = [await store.add([NewPage(url) for url in URLS], at=0)]
    for name, *what in steps:
        before = (await store.table()).revision
        at = {"at": 1} if name == "add" else {}
        told.append(await answer(getattr(store, name)(*what, **at)))
        told.append((name, (await store.table(before)).ids.tolist()))
    return told


async def answer(asked: Awaitable[Any]) -> Any:
    """What came of it, a refusal included."""
    try:
        return await asked
    except StoreError:
        return "refused"


async def all_of(store: Store) -> dict[str, Any]:
    """All that a store can be asked."""
    summary = await store.summary()
    return {
        "found": await store.find(Query()),
        "targets": await store.targets(np.arange(1, 20)),
        "content": [await store.content(n) for n in range(20)],
        "value": [await store.value(n) for n in range(20)],
        "alerts": [await store.alerts(), await store.alerts(past=True)],
        "changes": [await store.changes(0), await store.changes(2, limit=3)],
        "last change": await store.last_change(),
        "hosts": await store.hosts(),
        "summary": msgspec.structs.replace(summary, bytes=0),
        **{name: list(store.scan(name)) for name in TABLES},
        **{f"{name} {n}": list(store.scan(name, page=n)) for n in (1, 2) for name in TABLES},
    }


async def columns_of(store: Store) -> dict[str, Any]:
    table, outcomes = await store.table(), await store.outcomes(np.arange(50))
    return {f.name: getattr(of, f.name) for of in (table, outcomes) for f in fields(of)}


async def agree(store: Store, plain: Store) -> None:
    assert await all_of(store) == await all_of(plain)
    found, expected = await columns_of(store), await columns_of(plain)
    for name in found.keys() - {"revision"}:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=6), TIMES, QUERIES, CAPS)
def test_sqlite_and_memory_agree(
    steps: list[tuple[Any, ...]], before: int, query: Query, caps: Caps
) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            plain, store = MemoryStore(), await SqliteStore.open(Path(folder, "a.db"))
            plain.caps = store.caps = caps
            try:
                assert await take(store, steps) == await take(plain, steps)
                await agree(store, plain)
                assert await store.find(query) == await plain.find(query)
                assert await store.prune(before) == await plain.prune(before)
                await agree(store, plain)
            finally:
                await store.close()

    asyncio.run(main())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(PLAIN_RECORDS, max_size=8), max_size=4))
def test_every_new_value_is_a_change_with_the_next_number(batches: list[list[Record]]) -> None:
    stored: dict[int, Observation] = {}
    for record in (record for batch in batches for record in batch):
        stored.setdefault(record.observation.visit, record.observation)
    new = [seen for seen in stored.values() if seen.value is not None]

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = await SqliteStore.open(Path(folder, "a.db"))
            try:
                await take(store, [("record", batch) for batch in batches])
                found = await store.changes(0)
            finally:
                await store.close()
        assert [change.seq for change in found] == list(range(1, len(new) + 1))
        assert [(c.at, c.page, c.after.text) for c in found] == [
            (seen.at, seen.page, seen.value and seen.value.text) for seen in new
        ]

    asyncio.run(main())


@given(st.text("ab/[]!^-*?.", max_size=8), st.text("ab/[]!^-.", max_size=6))
def test_patterns_fit_in_sqlite_as_they_do_in_python(pattern: str, name: str) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        ours = db.execute("SELECT ? GLOB ?, ? GLOB ?", (name, glob(pattern), name, plain(pattern)))
        assert [*map(bool, ours.fetchone())] == [
            fnmatchcase(name, pattern),
            fnmatchcase(name, pattern.replace("[", "[[]")),
        ]


@given(st.lists(st.none() | st.binary()))
def test_what_is_packed_is_found_where_it_is_said_to_be(bodies: list[bytes | None]) -> None:
    blob, spans = pack(zstandard.ZstdCompressor(level=1), bodies)
    for body, (start, size) in zip(bodies, spans, strict=True):
        if body is None or start is None or size is None:
            assert (body, start, size) == (None, None, None)
        else:
            assert unpack(blob[start - 1 : start - 1 + size]) == body


@given(ANY)
def test_any_text_comes_back(given_: str) -> None:
    blob, _ = pack(zstandard.ZstdCompressor(level=1), [raw(given_)])
    assert text(blob) == given_


@given(st.recursive(st.none() | st.text(st.characters()), lambda c: st.lists(c) | st.tuples(c)))
def test_rows_are_json_that_sqlite_reads_to_the_end(table: Any) -> None:
    encoded = rows([table])
    msgspec.json.decode(encoded)
    assert b"\\u0000" not in encoded.replace(b"\\\\", b"")


@given(st.text() | st.from_regex(r"https?://[a-z]{1,5}(:[0-9]{1,4})?/[\w%./#?]*", fullmatch=True))
def test_the_canonical_form_is_its_own(url: str) -> None:
    try:
        once, host = canonical(url)
    except InputError:
        return
    assert canonical(once) == (once, host)
    assert "#" not in once
