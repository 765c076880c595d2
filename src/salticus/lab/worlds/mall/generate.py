"""A small market made from a seed, for demonstrations and tests without a log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from salticus.lab.worlds.mall.stock import MallPage, Stock, offer_text, offsets_of
from salticus.types import DAY, Floats, Ints, instant

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
    counts = rng.poisson(_rates(rng, shop, shops) * days)
    rows = np.repeat(np.arange(offers, dtype=np.int64), counts + 1)
    pages = [_page(rng, row, int(shop[row])) for row in range(offers)]
    times = instant(start) + _spans(rng, rows, days)
    values = [text for page, n in zip(pages, counts, strict=True) for text in _walk(rng, page, n)]
    return Stock(pages, offsets_of(rows, offers), times, values)


def _rates(rng: np.random.Generator, shop: Ints, shops: int) -> Floats:
    own = rng.lognormal(np.log(_MEAN_RATE) - _SPREAD**2 / 2, _SPREAD, len(shop))
    factor = rng.lognormal(-(_SHOP_SPREAD**2) / 2, _SHOP_SPREAD, shops)
    return own * factor[shop]


def _spans(rng: np.random.Generator, rows: Ints, days: float) -> NDArray[np.timedelta64]:
    """Spans from the start, sorted within each page; the first of a page is its birth."""
    first = np.diff(rows, prepend=-1) > 0
    spans = np.where(first, 0.0, rng.uniform(0, days, len(rows)))
    spans = spans[np.lexsort((spans, rows))]
    return (spans * DAY.astype(np.int64)).astype("timedelta64[us]")


def _page(rng: np.random.Generator, row: int, shop: int) -> MallPage:
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
