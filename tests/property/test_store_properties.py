"""Whatever is written, the SQLite store and the plain one in memory hold the same."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.errors import InputError
from salticus.store.base import Store
from salticus.store.packing import pack, raw, rows, text, unpack
from salticus.store.sqlite import SqliteStore
from salticus.store.urls import canonical
from salticus.testing import MemoryStore
from salticus.types import (
    PURPOSE,
    STATUS,
    HostState,
    NewPage,
    Observation,
    Record,
    Signal,
    Value,
)

URLS = [f"http://shop{n % 2}.example/{n}" for n in range(5)]
PAGES = st.integers(1, len(URLS))
TIMES = st.integers(-(2**53), 2**53)
FLOATS = st.floats(0, 1e12, allow_subnormal=False)
PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
ANY = st.text(st.characters(), max_size=20) | st.text("ab", min_size=1020, max_size=1030)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


VALUES = st.builds(Value, PLAIN, ANY, st.dictionaries(PLAIN, PLAIN, max_size=3))
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
RECORDS = st.builds(
    Record,
    OBSERVATIONS,
    hosts=st.lists(HOSTS, max_size=2).map(tuple),
    content=maybe(st.binary()),
    content_type=PLAIN,
)
EDITS = st.builds(
    NewPage,
    st.sampled_from(URLS),
    kind=maybe(st.sampled_from(["offer", "page"])),
    tags=st.lists(PLAIN, max_size=3).map(tuple),
    max_interval=maybe(FLOATS),
    demand=maybe(FLOATS),
)
SIGNALS = st.builds(Signal, PAGES, TIMES, kind=PLAIN, value=maybe(PLAIN))
STEPS = st.one_of(
    st.tuples(st.just("record"), st.lists(RECORDS, max_size=12)),
    st.tuples(st.just("add"), st.lists(EDITS, max_size=4)),
    st.tuples(st.just("notice"), st.lists(SIGNALS, max_size=3)),
)


async def take(store: Store, steps: list[tuple[str, Any]]) -> list[Any]:
    """Write all of it; what the writing told."""
    told: list[Any] = [await store.add([NewPage(url) for url in URLS], at=0)]
    for name, what in steps:
        at = {"at": 1} if name == "add" else {}
        told.append(await getattr(store, name)(what, **at))
    return told


async def all_of(store: Store) -> dict[str, Any]:
    """All that a store can be asked."""
    summary = await store.summary()
    return {
        "pages": [await store.page(url) for url in URLS],
        "targets": await store.targets(np.arange(1, len(URLS) + 1)),
        "content": [await store.content(n + 1) for n in range(len(URLS))],
        "hosts": await store.hosts(),
        "summary": msgspec.structs.replace(summary, bytes=0),
        **{name: list(store.scan(name)) for name in ("pages", "visits", "values", "signals")},
        **{f"visits {n}": list(store.scan("visits", page=n)) for n in (1, 2)},
    }


async def columns_of(store: Store) -> dict[str, Any]:
    table, outcomes = await store.table(), await store.outcomes(np.arange(50))
    return {f.name: getattr(of, f.name) for of in (table, outcomes) for f in fields(of)}


async def agree(store: Store, plain: Store) -> None:
    assert await all_of(store) == await all_of(plain)
    found, expected = await columns_of(store), await columns_of(plain)
    for name in found.keys() - {"revision"}:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@settings(max_examples=80, deadline=None)
@given(st.lists(STEPS, max_size=6), TIMES)
def test_sqlite_and_memory_agree(steps: list[tuple[str, Any]], before: int) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            plain, store = MemoryStore(), await SqliteStore.open(Path(folder, "a.db"))
            try:
                assert await take(store, steps) == await take(plain, steps)
                await agree(store, plain)
                assert await store.prune(before) == await plain.prune(before)
                await agree(store, plain)
            finally:
                await store.close()

    asyncio.run(main())


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
