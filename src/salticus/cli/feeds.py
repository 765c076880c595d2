"""Commands about merchants' feeds: take one in, and say how far they can be trusted."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, day, settings
from salticus.cli.output import print_facts, print_json, print_table
from salticus.config import Config
from salticus.errors import InputError

if TYPE_CHECKING:
    from salticus.signals.merchant import MerchantFeed
    from salticus.signals.opened import Opened
    from salticus.store.base import Store

_BATCH = 5_000
_UNITS = (("days", 86_400), ("h", 3_600), ("min", 60))


def feed_import(
    file: Annotated[str, typer.Argument(help="A TSV, CSV or XML file; `-` reads from stdin.")],
    merchant: Annotated[
        str | None, typer.Option(help="Whose feed it is; the file's name if not given.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="When it was made, e.g. 2026-11-16T06:00Z; now if not given.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A label; may be repeated.")] = None,
    known_only: Annotated[
        bool, typer.Option("--known-only", help="Leave out pages that are not in the store.")
    ] = False,
    keep_tracking: Annotated[
        bool, typer.Option("--keep-tracking", help="Leave utm_source and the like in links.")
    ] = False,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Take in a merchant's feed: values without a visit. Nothing if more than half of it is bad."""
    from salticus.crawl.opening import clock_of
    from salticus.signals.merchant import MerchantFeed

    chosen = settings(config)
    when = day("at", at) or clock_of(chosen).now()
    with _opened(file) as opened:
        feed = MerchantFeed(
            opened,
            _spelling(),
            origin=_origin(merchant, file),
            at=int(when.timestamp() * 1e6),
            keep_tracking=keep_tracking,
        )
        done = asyncio.run(_import(chosen, feed, tuple(tag or ()), known_only))
    if json:
        print_json(done)
        return
    complaints = done.pop("complaints")
    print_facts(f"imported {done.pop('file')}", {k.replace("_", " "): v for k, v in done.items()})
    for complaint in complaints:
        typer.echo(complaint)


async def _import(
    config: Config, feed: MerchantFeed, tags: tuple[str, ...], known_only: bool
) -> dict[str, Any]:
    from salticus.crawl.opening import stored

    tally = feed.check()
    async with stored(config) as store:
        before = (await store.summary()).pages
        told, stated = await _tell(store, feed, tags, known_only)
        new = (await store.summary()).pages - before
    return {
        "file": feed.file.name,
        "merchant": feed.origin,
        "rows": tally.rows,
        "new_pages": new,
        "updated": max(told - new, 0),
        "unchanged": stated - told,
        "unknown_pages": tally.good - stated,
        "repeated": tally.repeated,
        "bad": tally.bad,
        "fault": tally.fault,
        "complaints": tally.complaints,
    }


async def _tell(
    store: Store, feed: MerchantFeed, tags: tuple[str, ...], known_only: bool
) -> tuple[int, int]:
    """Store the statements; how many left something, and how many there were."""
    from salticus.types import NewPage

    known = {hash(row["url"]) for row in store.scan("pages")} if known_only else None
    rows = (row for row in feed.told() if known is None or hash(row.url) in known)
    left = stated = 0
    while batch := list(islice(rows, _BATCH)):
        left += await store.told(batch)
        stated += len(batch)
        if tags:
            await store.add([NewPage(row.url, tags=tags) for row in batch], at=feed.at)
    return left, stated


def feed_report(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """How accurate merchants' feeds are, and by how much they lag, as visits found them."""
    from salticus.views.merchants import merchants

    found = asyncio.run(merchants(settings(config)))
    if json:
        print_json(found)
        return
    if not found:
        raise InputError("no merchant's feed was imported yet; see `salticus feed import --help`")
    header = ("merchant", "rows", "pages", "visits", "accuracy", "price", "changes", "lag", "90 %")
    print_table("merchants' feeds", header, map(_row, found))
    unchecked = sum(each["unchecked_pages"] for each in found)
    if unchecked:
        typer.echo(f"{unchecked:,} pages are not yet checkable: no visit came after they were told")


def _row(known: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *(known[name] for name in ("merchant", "rows", "pages", "visits")),
        *(known[name] for name in ("accuracy", "price_accuracy", "changes")),
        _span(known["lag_median_s"]),
        _span(known["lag_p90_s"]),
    )


def _span(bounds: list[float | None] | None) -> str | None:
    """Bounds of a lag for people.

    >>> _span([-3600.0, 5400.0]), _span([60.0, None]), _span(None)
    ('-60 min to 90 min', '1 min to never', None)
    """
    return None if bounds is None else " to ".join(map(_length, bounds))


def _length(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    unit, size = next(((u, s) for u, s in _UNITS if abs(seconds) >= 2 * s), ("min", 60))
    return f"{seconds / size:.0f} {unit}"


def _origin(merchant: str | None, file: str) -> str:
    name = merchant if merchant is not None else "" if file == "-" else Path(file).name
    if merchant is None:
        name = name.partition(".")[0]
    name = " ".join(name.split())[:100]
    if not name or not name.isprintable():
        raise InputError("whose feed is it? name the merchant with --merchant")
    return name


def _spelling() -> Any:
    from salticus.extract.price import availability, condition, currency, price
    from salticus.signals.merchant import Spelling
    from salticus.urls import canonical

    return Spelling(canonical, price, currency, availability, condition)


@contextmanager
def _opened(file: str) -> Iterator[Opened]:
    """The file; standard input is copied first, since feeds are read twice."""
    from salticus.signals.opened import Opened

    if file.startswith(("http://", "https://")):
        raise InputError(f"{file}: feeds are read from files; download it first: curl -LO '{file}'")
    if file != "-":
        yield Opened(Path(file))
        return
    with tempfile.NamedTemporaryFile(prefix="salticus-feed-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Opened(Path(copy.name), "standard input")
