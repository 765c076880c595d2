"""A stock from any log that has the truth: `pages.parquet` and `values.parquet`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize
from zlib import crc32

import numpy as np

from salticus.exchange.read import read_pages, read_values
from salticus.exchange.truth import times_of
from salticus.lab.worlds.mall.stock import MallPage, Stock, offer_text, offsets_of
from salticus.types import Ints

if TYPE_CHECKING:
    import polars as pl

_MOST_SHOPS = 64  # ports; a log may have ten thousand hosts
_OFFER = re.compile(r"(\d+(?:\.\d+)?)(?: ([A-Za-z]{3}))?(?: ([A-Za-z]+))?")


def stock_from_log(folder: Path, shops: int | None = None, *, currency: str = "EUR") -> Stock:
    """The pages of a log that have values, spread over `shops` ports by host or else merchant.

    A page is an offer if the log does not say otherwise and all its values are prices (``3.99``,
    then in `currency` and in stock, or ``19.99 EUR InStock``); else its value is its text. Hosts
    beyond `shops` (64 by default) are folded by a hash of their name.
    """
    pages, values = read_pages(folder), read_values(folder)
    pages = pages.join(values, on="page_id", how="semi").sort("page_id").with_row_index("row")
    pages = _complete(pages, shops or _MOST_SHOPS)
    points = _points(pages, values, currency)
    offers = points.select("row", "offer").unique("row")
    pages = pages.join(offers, on="row").sort("row")
    rows = points["row"].to_numpy().astype(np.int64)
    return Stock(
        pages=[_page(known, currency) for known in pages.iter_rows(named=True)],
        offsets=offsets_of(rows, len(pages)),
        times=times_of(points["at"]),
        values=points["text"].to_list(),
    )


def canonical(value: str, currency: str) -> str | None:
    """The canonical text of an offer's value in a log; None if it is not one.

    >>> canonical("3.90", "EUR"), canonical("19.99 GBP OutOfStock", "EUR"), canonical("soon", "EUR")
    ('3.9 EUR InStock', '19.99 GBP OutOfStock', None)
    """
    match = _OFFER.fullmatch(value.strip())
    if match is None:
        return None
    return offer_text(match[1], match[2] or currency, match[3] or "InStock")


def fold(names: list[str], shops: int) -> Ints:
    """The shop of each host: one each while there are enough, else by a hash of the name.

    >>> fold(["b", "a", "b"], 2)
    array([1, 0, 1])
    """
    distinct = sorted(set(names))
    if len(distinct) > shops:
        buckets = {name: crc32(name.encode()) % shops for name in distinct}
        distinct_buckets = sorted(set(buckets.values()))  # a bucket may be empty, a port may not
        number = {name: distinct_buckets.index(bucket) for name, bucket in buckets.items()}
    else:
        number = {name: index for index, name in enumerate(distinct)}
    return np.array([number[name] for name in names], dtype=np.int64)


def _complete(pages: pl.DataFrame, shops: int) -> pl.DataFrame:
    """Add the columns that the log lacks, as nulls, and the shop."""
    import polars as pl

    optional = ("kind", "merchant", "brand", "category", "condition", "language", "title", "host")
    absent = [pl.lit(None, pl.String).alias(name) for name in optional if name not in pages.columns]
    pages = pages.with_columns(absent)
    names = pages.select(pl.coalesce("host", "merchant", pl.lit("shop")).cast(pl.String))
    return pages.with_columns(pl.Series("shop", fold(names.to_series().to_list(), shops)))


def _points(pages: pl.DataFrame, values: pl.DataFrame, currency: str) -> pl.DataFrame:
    """Change points as `row`, `at`, `text`, `offer`, by row and time; repeated values dropped."""
    import polars as pl

    distinct = values["value"].drop_nulls().unique().to_list()
    known = pl.DataFrame(
        {
            "value": distinct,
            "price": [canonical(value, currency) for value in distinct],
            "words": [normalize("NFC", " ".join(value.split())) for value in distinct],
        },
        schema=dict.fromkeys(("value", "price", "words"), pl.String),
    )
    points = values.join(pages.select("page_id", "row", "kind"), on="page_id")
    points = points.join(known, on="value", how="left").sort("row", "at", maintain_order=True)
    priced = pl.col("price").is_not_null() | pl.col("value").is_null()
    claims = pl.col("kind").is_null() | (pl.col("kind") == "offer")
    points = points.with_columns(offer=(priced & claims).all().over("row")).select(
        "row", "at", "offer", text=pl.when("offer").then("price").otherwise("words")
    )
    repeated = pl.col("text").eq_missing(pl.col("text").shift()) & (
        pl.col("row") == pl.col("row").shift()
    )
    return points.filter(~repeated.fill_null(value=False))


def _page(known: dict[str, object], currency: str) -> MallPage:
    offer = bool(known["offer"])
    claimed = str(known["kind"] or "page")
    return MallPage(
        page_id=str(known["page_id"]),
        shop=int(str(known["shop"])),
        path=f"/o/{known['row']}" if offer else f"/a/{known['row']}",
        title=str(known["title"] or known["page_id"]),
        brand=_text(known["brand"]),
        category=_text(known["category"]),
        currency=currency,
        language=str(known["language"] or "en"),
        condition=str(known["condition"] or "new"),
        kind="offer" if offer else claimed if claimed != "offer" else "page",
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
