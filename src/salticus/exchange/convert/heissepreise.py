"""`heissepreise`: the canonical JSON of heisse-preise.io and its kin.

An array of items ``{store, id, name, priceHistory: [{date, price}, …], unit, quantity, …}``, newest
price first. Every store is crawled daily and a price is added when it is another, so this is the
truth to the day.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from salticus.errors import InputError
from salticus.exchange.convert.base import ConvertOptions, File, Problem, SourceRows, the_only
from salticus.exchange.convert.scan import MARK

# stores abroad are named by their country; all others are Austrian
ABROAD = {"De": ("DE", "Europe/Berlin", "de"), "Si": ("SI", "Europe/Ljubljana", "sl")}
HOME = ("AT", "Europe/Vienna", "de")
PAGE = ("merchant", "title", "category", "country", "timezone", "language", "unit", "quantity",
        "bio", "unavailable", "path")  # fmt: skip

Row = tuple[Any, ...]


class DatedPrice(msgspec.Struct, frozen=True):
    """A price from a day on."""

    date: date
    price: float


class Item(msgspec.Struct, rename="camel", frozen=True):
    """A product of a store; what is not named here is not kept."""

    store: str
    id: str | int
    name: str
    price_history: list[DatedPrice]
    unit: str | None = None
    quantity: float | str | None = None
    bio: bool | None = None
    unavailable: bool | None = None
    url: str | None = None
    category: str | None = None


def read(sources: Sequence[Path], options: ConvertOptions) -> SourceRows:
    """One array, as JSON or under gzip."""
    path = the_only(sources, "canonical JSON file")
    rows = [row for number, raw in enumerate(_items(path), 1) for row in _rows(number, raw)]
    schema = {
        "page_id": pl.String, "url": pl.String,
        **{MARK + name: pl.String for name in PAGE},
        "line": pl.UInt32, "at": pl.Date, "value": pl.String, "problem": pl.Int8,
        "shown": pl.String,
    }  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema, orient="row").lazy()
    at = pl.col("at").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return SourceRows(
        files=[File(path, {"time": "date", "value": "price"}, "item")],
        rows=frame.with_columns(at=at, file=pl.lit(0)),
        kind="offer",
        resolution=timedelta(days=1),
        truth=True,
        caveats="days are at 00:00 UTC; a missed crawl shows its changes a day late; offers that "
        "were delisted keep their last price",
    )


def _items(path: Path) -> list[msgspec.Raw]:
    try:
        body = path.read_bytes()
        body = gzip.decompress(body) if path.suffix == ".gz" else body
        return msgspec.json.decode(body, type=list[msgspec.Raw])
    except (OSError, EOFError, zlib.error, msgspec.MsgspecError, RecursionError) as error:
        raise InputError(
            f"{path}: not the canonical JSON, an array of items ({error}); "
            "the compressed form of the site is not read"
        ) from error


def _rows(number: int, raw: msgspec.Raw) -> Iterator[Row]:
    """One row a price, or one that says what is wrong with the item."""
    blank = (None,) * len(PAGE)
    try:
        item = msgspec.json.decode(raw, type=Item, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        yield None, None, *blank, number, None, None, Problem.BAD_ITEM.value, str(error)
        return
    page = _page(item)
    dated = {price.date: price.price for price in reversed(item.price_history)}
    for day, price in sorted(dated.items()):
        yield *page, number, day, f"{price:.10f}".rstrip("0").rstrip("."), None, None


def _page(item: Item) -> Row:
    """Its id, its URL, and what `PAGE` names; what is no whole URL is a path."""
    url, path = item.url, None
    if not (url or "").startswith(("http://", "https://")):
        url, path = None, item.url
    name, place = item.name.strip(), ABROAD.get(item.store[-2:], HOME)
    quantity = None if item.quantity is None else str(item.quantity)
    flags = (None if flag is None else str(flag).lower() for flag in (item.bio, item.unavailable))
    about = (item.store, name, item.category, *place, item.unit, quantity, *flags, path)
    return f"{item.store}:{item.id}", url, *about
