"""Laws of counting: no line is lost, none counts twice, and nobody can shout."""

from __future__ import annotations

import asyncio
import functools
import gzip
import json
import random
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from salticus.errors import InputError
from salticus.signals.counting import (
    ClickFile,
    ClickFileOptions,
    ClickStore,
    Frequent,
    LineTally,
    take_in,
)
from salticus.signals.opened import MAX_LINE
from salticus.store.nouns import MOST_CLICKS, MOST_IMPRESSIONS
from salticus.store.sqlite.store import SqliteStore
from salticus.types import Count, Counted, Mark, NewPage
from salticus.types.dates import HOUR_US

NOW = 1_800_000_000_000_000
KNOWN = [f"http://shop.example/{n}" for n in range(3)]
URLS = st.sampled_from(
    [*KNOWN, "HTTP://SHOP.example/1#a", "http://stranger.example/", "mailto:me", "", "/2"]
)
TIMES = st.sampled_from(
    [NOW // 10**6, "2027-01-15T07:59:59Z", 1_799_999_999_000, "1969-12-31", -5, NOW // 10**6 + 3601]
) | st.sampled_from(["soon", "", None, "nan", 1e300])
COUNTS = st.sampled_from([None, 0, 1, 3, 9_000, 10**9, 10**9 + 1, -1, 0.5, "NaN", "7", "", 1e300])
ROWS = st.fixed_dictionaries({"url": URLS, "at": TIMES, "clicks": COUNTS, "impressions": COUNTS})
GOOD = st.fixed_dictionaries(
    {
        "url": st.sampled_from(KNOWN),
        "at": st.sampled_from([NOW // 10**6, NOW // 10**6 - 3600]),
        "clicks": st.integers(0, 6_000),
    }
)
LONG = b"long"  # stands for a line of more than any limit
LINES = st.lists(
    ROWS.map(lambda row: json.dumps(row).encode())
    | st.sampled_from([b"", b" ", b"{", b"\xff\x00", b"[" * 5000, LONG]),
    max_size=12,
)

Packing = Callable[[bytes], bytes]


def terms(**known: Any) -> ClickFileOptions:
    usual = {"format": "jsonl", "chunk": 3, "base": "http://shop.example"}
    return ClickFileOptions(NOW, **usual | known)


class Broken(Exception):
    """The machine went down."""


class Fragile:
    """A store whose process dies after so many chunks."""

    def __init__(self, store: SqliteStore, chunks: int) -> None:
        self.store = store
        self.left = chunks

    async def take(self, rows: Sequence[Count], mark: Mark | None = None) -> Counted:
        if not self.left:
            raise Broken
        self.left -= 1
        return await self.store.take(rows, mark)

    async def marks(self) -> list[Mark]:
        return await self.store.marks()


async def counted(store: ClickStore, path: Path, **known: Any) -> LineTally:
    return await take_in(store, ClickFile(str(path)), terms(**known), lambda done: None)


def on_a_store(work: Callable[[SqliteStore, Path], Any]) -> Any:
    """What `work` makes of a store with the known pages, and of a file beside it."""

    async def main() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            put(Path(folder, "a.db"), body)
            store = await SqliteStore.open(Path(folder, "a.db"))
            try:
                return await work(store, Path(folder, "clicks"))
            finally:
                await store.close()

    body = store_of_known()
    return asyncio.run(main())


@functools.cache
def store_of_known() -> bytes:
    """A store with the known pages; made once, because that takes longer than a law."""

    async def main() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            store = await SqliteStore.open(Path(folder, "a.db"))
            await store.add([NewPage(url) for url in KNOWN], at=0)
            await store.close()
            return store.path.read_bytes()

    return asyncio.run(main())


def put(path: Path, body: bytes) -> None:
    path.write_bytes(body)


def demand(store: SqliteStore) -> list[dict[str, Any]]:
    return list(store.scan("demand"))


@settings(max_examples=25, deadline=None)
@given(LINES, st.booleans(), st.integers(0, 99))
def test_no_line_is_lost_and_their_order_does_not_matter(
    lines: list[bytes], ends: bool, seed: int
) -> None:
    async def work(store: SqliteStore, path: Path) -> Any:
        body = b"\n".join(lines) + b"\n" * ends
        put(path, body.replace(LONG, b"x" * (MAX_LINE + 9)))
        try:
            tally = await counted(store, path)
        except InputError:
            assert not demand(store)
            return "refused"
        rows = demand(store)
        left = sum(number for number, _ in tally.left.values())
        assert tally.lines == tally.counted + tally.unknown + left
        assert sum(row["clicks"] for row in rows) == tally.clicks
        assert sum(row["impressions"] for row in rows) == tally.impressions
        for row in rows:
            assert 0 <= row["clicks"] <= MOST_CLICKS
            assert 0 <= row["impressions"] <= MOST_IMPRESSIONS
            assert row["at"] % HOUR_US == 0
        capped = tally.capped_clicks, tally.capped_impressions
        reasons = {reason: number for reason, (number, _) in tally.left.items()}
        reasons.pop("blank", None)
        return rows, tally.clicks, capped, tally.unknown, reasons

    first = on_a_store(work)
    lines = [line for line in lines if line.strip()]
    random.Random(seed).shuffle(lines)
    assert on_a_store(work) == first


@settings(max_examples=25, deadline=None)
@given(
    st.lists(GOOD.map(json.dumps), min_size=1, max_size=12),
    st.integers(0, 4),
    st.integers(0, 900),
    st.sampled_from([bytes, gzip.compress, zstandard.compress]),
)
@example(['{"url": "http://shop.example/1", "at": 1, "clicks": 1}'], 1, 900, bytes)
def test_whatever_happens_every_line_counts_once(
    lines: list[str], chunks: int, cut: int, pack: Packing
) -> None:
    """Killed in the middle, cut in a line, grown since, packed, read again: the same sums."""
    whole = "".join(f"{line}\n" for line in lines).encode()

    async def at_once(store: SqliteStore, path: Path) -> Any:
        put(path, whole)
        await counted(store, path)
        return demand(store)

    async def in_pieces(store: SqliteStore, path: Path) -> Any:
        put(path, whole[:cut])
        for after in (chunks, 10**9):
            try:
                await counted(Fragile(store, after), path)
            except (Broken, InputError):
                continue
        put(path, pack(whole))
        await counted(store, path)
        assert (await counted(store, path)).clicks == 0
        return demand(store)

    assert on_a_store(in_pieces) == on_a_store(at_once)


def test_a_file_counts_again_only_if_asked() -> None:
    async def work(store: SqliteStore, path: Path) -> None:
        put(path, f"url,at\n{KNOWN[0]},2026-01-01\n{KNOWN[0]},2026-01-01".encode())
        kinds = {"format": None, "base": None}
        assert (await counted(store, path, **kinds)).clicks == 2
        again = await counted(store, path, **kinds)
        assert (again.lines, again.before, again.earlier and again.earlier.file) == (
            0,
            2,
            str(path),
        )
        assert (await counted(store, path, **kinds, again=True)).clicks == 2
        put(path, b"url,at\nhttp://new.example/,2026-01-01\n")
        assert (await counted(store, path, **kinds)).unknown == 1
        await store.add([NewPage("http://new.example/")], at=0)
        tally = await counted(store, path, **kinds)
        assert tally.clicks == 1, "what added nothing may be read again"

    on_a_store(work)


def test_memory_does_not_grow_with_the_file() -> None:
    rows = (f'{{"url": "http://s.example/{n * 7919}", "at": {n}}}\n' for n in range(4_000))
    good = f'{{"url": "{KNOWN[0]}", "at": 5, "clicks": 1000}}\n'
    body = ("".join(rows) + good + "x" * 500_000 + "\n").encode()

    def peak(times: int) -> int:
        async def work(store: SqliteStore, path: Path) -> int:
            put(path, body * times)
            tracemalloc.start()
            try:
                tally = await counted(store, path, chunk=2_000)
                assert tally.lines == 4_002 * times
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        return int(on_a_store(work))

    small, large = peak(1), peak(5)
    assert large < 1.1 * small + 500_000
    assert large < 20_000_000


@given(
    st.lists(st.dictionaries(st.text("abcdef", max_size=1), st.integers(1, 9))), st.integers(1, 4)
)
def test_the_frequent_are_found(batches: list[dict[str, int]], size: int) -> None:
    seen, truth = Frequent(size), Counter[str]()
    for batch in batches:
        seen.add(batch)
        truth.update(batch)
    slack = truth.total() / (size + 1)
    assert len(seen.counts) <= size
    for name, count in truth.items():
        assert count - slack <= seen.counts.get(name, 0) <= count
    if seen.distinct is not None:
        assert seen.counts == truth


@pytest.mark.parametrize(
    "body", [b"", b"\n\n", b"\x1f\x8b\x08nonsense", b"\x28\xb5\x2f\xfdx", b"?"]
)
def test_what_cannot_be_read_is_named(body: bytes) -> None:
    async def work(store: SqliteStore, path: Path) -> None:
        put(path, body)
        with pytest.raises(InputError, match=str(path)):
            await counted(store, path, format=None)

    on_a_store(work)
