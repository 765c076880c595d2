"""What was visited and learnt, or the content, written for others."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Literal

from salticus.crawl.opening import Crawl
from salticus.errors import InputError
from salticus.exchange.place import in_place
from salticus.exchange.write import export_log, export_rows
from salticus.store.base import Store
from salticus.store.nouns import Query
from salticus.version import VERSION
from salticus.views.times import iso

Format = Literal["log", "csv", "jsonl", "warc"]


async def export(
    crawl: Crawl, out: Path, format_: Format, query: Query | None = None
) -> dict[str, int]:
    """Write a log, a table of visits (csv, jsonl) or WARC of the pages that fit; returns counts."""
    if format_ != "warc" and query not in (None, Query()):
        raise InputError("only content can be exported in part: --format warc")
    if format_ == "log":
        return export_log(crawl.store.scan, out, name=Path(crawl.config.store).stem)
    if format_ != "warc":
        return {"visits": export_rows(crawl.store.scan("visits"), out, format_)}
    return {"records": await export_warc(crawl.store, out, query=query)}


FORMAT = "WARC file version 1.1"
UNKNOWN_TYPE = "application/octet-stream"


async def export_warc(store: Store, out: Path, *, query: Query | None = None) -> int:
    """Write the content that is kept of all pages, or of those that fit; returns how many.

    Each is a `resource` record: the body as it is kept, under the time of the visit that brought
    it, without the headers that it once came with. Compressed if the name ends in ``.gz``. The
    file appears when it is complete; one that is there already is left alone.
    """
    from warcio.warcwriter import WARCWriter

    count = 0
    with _new_file(out) as file:
        writer = WARCWriter(file, gzip=out.name.endswith(".gz"), warc_version="1.1")
        about = {"software": f"salticus/{VERSION}", "format": FORMAT}
        writer.write_record(writer.create_warcinfo_record(out.name, about))
        chosen = None if query is None else {page.page for page in await store.find(query)}
        # content is kept when a value is new, so the latest value's time is its own
        times = {row["page_id"]: row["at"] for row in store.scan("values")}
        for page in store.scan("pages"):
            number = page["page_id"]
            wanted = number in times and (chosen is None or number in chosen)
            content = await store.content(number) if wanted else None
            if content is not None:
                writer.write_record(_record(writer, page["url"], times[number], *content))
                count += 1
    return count


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    if path.exists():
        raise InputError(f"{path}: already there; name another file")
    with in_place(path) as part, part.open("wb") as file:
        yield file


def _record(writer: Any, url: str, at: int, body: bytes, content_type: str) -> Any:
    """One page's content, as of µs `at`. Its id follows from page and time."""
    date = str(iso(at))
    headers = {
        "WARC-Record-ID": f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{url} {date}')}>",
        "WARC-Date": date,
    }
    return writer.create_warc_record(
        url,
        "resource",
        payload=BytesIO(body),
        length=len(body),
        warc_content_type=_plain(content_type) or UNKNOWN_TYPE,
        warc_headers_dict=headers,
    )


def _plain(content_type: str) -> str:
    r"""A content type that fits into a header line, whatever a server sent.

    >>> _plain(" text/html;\r\n charset=\x00utf-8é")
    'text/html; charset=utf-8'
    """
    words = "".join(c for c in content_type if c.isascii() and (c.isprintable() or c.isspace()))
    return " ".join(words.split())
