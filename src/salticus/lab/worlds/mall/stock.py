"""The truth of a mall: which page has which value when; made from a seed, or read from a log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unicodedata import normalize
from zlib import crc32

import msgspec
import numpy as np

from salticus.exchange.truth import read_pages, read_values, times_of
from salticus.types import DAY, Instant, Ints, Times, instant, moment
from salticus.types.frames import pl

_MEAN_RATE = 0.5  # changes an offer and day
_SPREAD = 1.5  # of the logarithm of the rates: half of the offers change once a week or less
_SHOP_SPREAD = 0.5
_SHIFTS = 0.1  # share of changes that alter the availability, not the price
_GONE = 0.005  # share of offers that end as gone
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)

_LOCALES = (("de", "EUR"), ("en", "GBP"), ("fr", "EUR"), ("pl", "PLN"), ("sv", "SEK"))
_BRANDS = ("Arvo", "Belmond", "Cirro", "Dunmore", "Estrel", "Fjord", "Galene", "Hask", "Ilmen")
_CATEGORIES = (
    "Electronics > Audio > Headphones",
    "Electronics > Audio > Speakers",
    "Electronics > Computers > Laptops",
    "Home > Kitchen > Kettles",
    "Home > Kitchen > Pans",
    "Home > Lighting > Lamps",
    "Sports > Cycling > Helmets",
    "Sports > Outdoor > Tents",
    "Toys > Games > Puzzles",
)

_MOST_SHOPS = 64  # ports; a log may have ten thousand hosts
_OFFER = re.compile(r"(\d+(?:\.\d+)?)(?: ([A-Za-z]{3}))?(?: ([A-Za-z]+))?")


class MallPage(msgspec.Struct, frozen=True):
    """What a mall knows of a page besides its value. `shop` numbers the port that serves it."""

    page_id: str
    shop: int
    path: str
    title: str
    brand: str | None = None
    category: str | None = None
    currency: str = "EUR"
    language: str = "en"
    condition: str = "new"
    kind: str = "offer"
    markup: str = "jsonld"
    published: str | None = None  # when, if its page says so


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """Pages and their change points.

    The change points of page `row` are ``offsets[row]`` to ``offsets[row + 1]`` of `times` and
    `values`, sorted by time. A value holds from its time until the next one; None = gone. Before
    its first change point a page does not exist.
    """

    pages: Sequence[MallPage]
    offsets: Ints
    times: Times
    values: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.pages)

    @property
    def shops(self) -> int:
        return 1 + max((page.shop for page in self.pages), default=-1)

    def point(self, row: int, when: Instant) -> int:
        """Index of the change point in force; -1 before the first."""
        low, high = int(self.offsets[row]), int(self.offsets[row + 1])
        passed = int(np.searchsorted(self.times[low:high], when, side="right"))
        return low + passed - 1 if passed else -1

    def value(self, row: int, when: datetime) -> str | None:
        """The value of one page; None if it is gone or not born yet."""
        point = self.point(row, instant(when))
        return None if point < 0 else self.values[point]

    def values_at(self, when: datetime) -> Ints:
        """For all pages, the index into `values` of the value in force; -1 before the first."""
        passed = np.concatenate([[0], np.cumsum(self.times <= instant(when))])
        counts = passed[self.offsets[1:]] - passed[self.offsets[:-1]]
        return np.where(counts > 0, self.offsets[:-1] + counts - 1, -1).astype(np.int64)

    def history(self, row: int) -> list[tuple[datetime, str | None]]:
        """The change points of one page, oldest first."""
        span = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        return [(moment(t), v) for t, v in zip(self.times[span], self.values[span], strict=True)]


def offer_text(price: str | Decimal, currency: str, availability: str) -> str:
    """The canonical value of an offer.

    >>> offer_text("19.90", "eur", "InStock"), offer_text("2E+1", "EUR", "OutOfStock")
    ('19.9 EUR InStock', '20 EUR OutOfStock')
    """
    return f"{Decimal(price).normalize():f} {currency.upper()} {availability}"


def offsets_of(rows: Ints, pages: int) -> Ints:
    """Where the change points of each page begin, given the page of each in order.

    >>> offsets_of(np.array([0, 0, 2]), 3)
    array([0, 2, 2, 3])
    """
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=pages))]).astype(np.int64)


# ------------------------------------------------------------------------------- made from a seed


def generate(
    shops: int = 20,
    offers: int = 2000,
    days: float = 30,
    seed: int = 0,
    start: datetime = _FIRST,
) -> Stock:
    """A stock of offers that all exist from `start` and change for `days`.

    Change rates are lognormal (mean 0.5 a day, most far below) times a factor of the shop; the
    changes of an offer are a Poisson process. The same arguments give the same stock.

    >>> stock = generate(shops=2, offers=10, days=5)
    >>> len(stock), stock.shops, stock.value(0, _FIRST)
    (10, 2, '48.99 EUR InStock')
    """
    rng = np.random.default_rng(seed)
    shop = np.arange(offers, dtype=np.int64) % shops
    rates = rng.lognormal(np.log(_MEAN_RATE) - _SPREAD**2 / 2, _SPREAD, offers)
    rates *= rng.lognormal(-(_SHOP_SPREAD**2) / 2, _SHOP_SPREAD, shops)[shop]
    counts = rng.poisson(rates * days)
    rows = np.repeat(np.arange(offers, dtype=np.int64), counts + 1)
    pages = [_made_page(rng, row, int(shop[row])) for row in range(offers)]
    first = np.diff(rows, prepend=-1) > 0  # a page's birth
    spans = np.where(first, 0.0, rng.uniform(0, days, len(rows)))
    spans = spans[np.lexsort((spans, rows))] * DAY.astype(np.int64)
    times = instant(start) + spans.astype("m8[us]")
    values = [text for page, n in zip(pages, counts, strict=True) for text in _walk(rng, page, n)]
    return Stock(pages, offsets_of(rows, offers), times, values)


def _made_page(rng: np.random.Generator, row: int, shop: int) -> MallPage:
    language, currency = _LOCALES[shop % len(_LOCALES)]
    brand = _BRANDS[rng.integers(len(_BRANDS))]
    category = _CATEGORIES[rng.integers(len(_CATEGORIES))]
    return MallPage(
        page_id=f"{shop}-{row}",
        shop=shop,
        path=f"/o/{row}",
        title=f"{brand} {category.rpartition(' > ')[2].removesuffix('s')} {100 + row}",
        brand=brand,
        category=category,
        currency=currency,
        language=language,
        condition="new" if rng.random() < 0.9 else "used",
    )


def _walk(rng: np.random.Generator, page: MallPage, changes: int) -> Iterator[str | None]:
    """The values of an offer: each differs from the one before."""
    whole, stocked = 8 + int(rng.lognormal(4.0, 0.8)), True
    yield offer_text(f"{whole}.99", page.currency, "InStock")
    shifts = rng.random(changes) < _SHIFTS
    moves = rng.normal(0.0, 0.04, changes)
    ends = changes > 0 and rng.random() < _GONE
    for shift, move in zip(shifts[: changes - ends], moves, strict=False):
        if shift or not stocked:
            stocked = not stocked
        else:
            whole = _moved(whole, float(move))
        availability = "InStock" if stocked else "OutOfStock"
        yield offer_text(f"{whole}.99", page.currency, availability)
    if ends:
        yield None


def _moved(whole: int, move: float) -> int:
    """A price some per cent away, by one unit at least, and never below two."""
    step = max(1, round(abs(move) * whole))
    return whole - step if move < 0 and whole - step >= 2 else whole + step


# ------------------------------------------------------------------------------- read from a log


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
        pages=[_logged_page(known, currency) for known in pages.iter_rows(named=True)],
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
    many = len(set(names)) > shops
    keys = [crc32(name.encode()) % shops for name in names] if many else names
    return np.unique(keys, return_inverse=True)[1]  # a bucket may be empty, a port may not


def _complete(pages: pl.DataFrame, shops: int) -> pl.DataFrame:
    """Add the columns that the log lacks, as nulls, and the shop."""
    optional = ("kind", "merchant", "brand", "category", "condition", "language", "title", "host")
    absent = [pl.lit(None, pl.String).alias(name) for name in optional if name not in pages.columns]
    pages = pages.with_columns(absent)
    names = pages.select(pl.coalesce("host", "merchant", pl.lit("shop")).cast(pl.String))
    return pages.with_columns(pl.Series("shop", fold(names.to_series().to_list(), shops)))


def _points(pages: pl.DataFrame, values: pl.DataFrame, currency: str) -> pl.DataFrame:
    """Change points as `row`, `at`, `text`, `offer`, by row and time; repeated values dropped."""
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
    points = points.with_columns(offer=(priced & claims).all().over("row"))
    text = pl.when("offer").then("price").otherwise("words")
    points = points.select("row", "at", "offer", text=text)
    state = pl.col("row", "text")
    return points.filter(pl.any_horizontal(state.ne_missing(state.shift())))


def _logged_page(known: dict[str, Any], currency: str) -> MallPage:
    offer, claimed = known["offer"], known["kind"] or "page"
    return MallPage(
        page_id=str(known["page_id"]),
        shop=known["shop"],
        path=f"/o/{known['row']}" if offer else f"/a/{known['row']}",
        title=str(known["title"] or known["page_id"]),
        brand=known["brand"],
        category=known["category"],
        currency=currency,
        language=known["language"] or "en",
        condition=known["condition"] or "new",
        kind="offer" if offer else claimed if claimed != "offer" else "page",
    )
