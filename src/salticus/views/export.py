"""What was visited and learnt, or the content, written for others."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from salticus.crawl.opening import Crawl
from salticus.errors import InputError
from salticus.exchange.write import export_log, export_rows
from salticus.store.nouns import Query
from salticus.views.warc import export_warc

Format = Literal["log", "csv", "jsonl", "warc"]


async def export(
    crawl: Crawl, out: Path, format_: Format, query: Query | None = None
) -> dict[str, int]:
    """Write a log, a table of visits (csv, jsonl) or a WARC file of the pages that fit; how many
    rows of what."""
    if format_ != "warc" and query not in (None, Query()):
        raise InputError("only content can be exported in part: --format warc")
    if format_ == "log":
        return export_log(crawl.store.scan, out, name=Path(crawl.config.store).stem)
    if format_ != "warc":
        return {"visits": export_rows(crawl.store.scan("visits"), out, format_)}
    return {"records": await export_warc(crawl.store, out, query=query)}


async def backup(crawl: Crawl, path: Path) -> None:
    """Copy the store, also while a crawl is running; `path` must not exist yet."""
    await crawl.store.backup(path)
