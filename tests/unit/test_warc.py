"""Kept content goes into a WARC file, whole and with its time."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from salticus.errors import InputError
from salticus.store.base import Store
from salticus.store.nouns import Query
from salticus.store.sqlite.store import SqliteStore
from salticus.types import NewPage, Observation, Record, Value
from salticus.views.export import export_warc

START = 1_767_225_600_000_000  # 2026-01-01
URLS = [f"https://shop.example/{n}" for n in range(4)]
BODIES = [b"<p>first", b"caf\xe9 \x00\r\n\r\nWARC/1.1\r\n", b""]
TYPES = ["text/html; charset=utf-8", "text/html;\r\nX: y", ""]


async def stock(store: Store) -> None:
    """Three pages with content, the first of them changed since, and one never visited."""
    await store.add([NewPage(url) for url in URLS], at=0)
    old = visit(1, 1, b"an older body", "text/plain", "old")
    new = [visit(n + 2, n + 1, BODIES[n], TYPES[n], "new") for n in range(3)]
    await store.record([old, *new])
    same = Observation(9, 1, START + 9_000_000, "policy", 1.0, "ok", changed=False)
    await store.record([Record(same)])


def visit(number: int, page: int, body: bytes, content_type: str, text: str) -> Record:
    at = START + number * 1_000_000 + 500_000
    seen = Observation(
        number, page, at, "policy", 1.0, "ok", digest=text, value=Value("page", text)
    )
    return Record(seen, content=body, content_type=content_type)


def exported(folder: Path, name: str, query: Query | None = None) -> int:
    async def main() -> int:
        store = await SqliteStore.open(folder / f"{name}.db")
        try:
            await stock(store)
            return await export_warc(store, folder / name, query=query)
        finally:
            await store.close()

    return asyncio.run(main())


def digest(body: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()


def records(path: Path) -> Iterator[tuple[dict[str, str], bytes]]:
    with path.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            yield dict(record.rec_headers.headers), record.content_stream().read()


@pytest.mark.parametrize("name", ["all.warc", "all.warc.gz"])
def test_all_kept_content_is_there(tmp_path: Path, name: str) -> None:
    assert exported(tmp_path, name) == 3
    (about, text), *found = records(tmp_path / name)
    assert (about["WARC-Type"], about["WARC-Filename"]) == ("warcinfo", name)
    assert b"software: salticus/" in text
    assert [headers["WARC-Target-URI"] for headers, _ in found] == URLS[:3]
    assert [body for _, body in found] == BODIES
    assert [headers["WARC-Payload-Digest"] for headers, _ in found] == list(map(digest, BODIES))
    times = [headers["WARC-Date"] for headers, _ in found]
    assert times == [f"2026-01-01T00:00:0{n}.500000Z" for n in (2, 3, 4)]
    types = [headers["Content-Type"] for headers, _ in found]
    assert types == [TYPES[0], "text/html; X: y", "application/octet-stream"]
    assert {headers["WARC-Type"] for headers, _ in found} == {"resource"}
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") is name.endswith(".gz")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a class that fastwarc itself defines
@pytest.mark.parametrize("name", ["all.warc", "all.warc.gz"])
def test_other_readers_agree(tmp_path: Path, name: str) -> None:
    from fastwarc.warc import ArchiveIterator as FastIterator

    exported(tmp_path, name)
    with (tmp_path / name).open("rb") as file:
        found = [
            (r.headers["WARC-Type"], r.verify_block_digest(), r.reader.read())
            for r in FastIterator(file, parse_http=False)
        ]
    assert [body for kind, _, body in found if kind == "resource"] == BODIES
    assert all(right for _, right, _ in found)


def test_only_pages_that_fit(tmp_path: Path) -> None:
    assert exported(tmp_path, "one.warc", Query(url="*/2")) == 1
    assert [headers.get("WARC-Target-URI") for headers, _ in records(tmp_path / "one.warc")] == [
        None,
        URLS[2],
    ]


def test_the_same_content_has_the_same_ids(tmp_path: Path) -> None:
    for name in ("a.warc", "b.warc"):
        exported(tmp_path, name)
    ids = [
        [headers["WARC-Record-ID"] for headers, _ in records(tmp_path / name)][1:]
        for name in ("a.warc", "b.warc")
    ]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 3


def test_nothing_is_written_over_or_left_half_done(tmp_path: Path) -> None:
    path = tmp_path / "there.warc"
    path.write_bytes(b"precious")
    with pytest.raises(InputError, match="already there"):
        exported(tmp_path, "there.warc")
    assert path.read_bytes() == b"precious"
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="cannot be written"):
        asyncio.run(export_into_a_file(tmp_path))
    assert {each.suffix for each in tmp_path.iterdir()} <= {".warc", ".db", "", ".lock"}


async def export_into_a_file(folder: Path) -> None:
    store = await SqliteStore.open(folder / "x.db")
    try:
        await export_warc(store, folder / "file" / "x.warc")
    finally:
        await store.close()
