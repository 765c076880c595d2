"""Which beast of the zoo lives where: every other page of a zoo shop has its own, for good."""

from __future__ import annotations

from collections.abc import Iterator

from salticus.lab.worlds.mall.faults import Fault
from salticus.lab.worlds.mall.stock import Stock
from salticus.lab.worlds.mall.zoo import INSTEAD, PATHS, RAW, SPOILT

_PAGES = (
    *(Fault(kind) for kind in sorted({*SPOILT, *INSTEAD, *RAW} - {*PATHS})),  # type: ignore[arg-type]
    *(Fault("redirect", to=to) for to in ("loop", "private", "inside", "metadata", "home")),
    *(Fault("moved", to=to) for to in ("offer", "shop", "home")),
    Fault("slow", seconds=1.0),
    Fault("hang"),
    Fault("reset"),
    Fault("truncated"),
    Fault("huge"),
    Fault("bomb"),
    Fault("brotli-bomb"),
    Fault("401"),
    Fault("403"),
    Fault("404"),
    Fault("410"),
    Fault("500"),
)
_SHOPS = ("huge-robots", "huge-sitemap", "sitemap-cycle", "xml-bomb", "calendar")


def cages(stock: Stock, shops: int) -> list[Fault]:
    """The faults of a mall whose last `shops` shops are zoos: one beast every other page, and one
    that is the shop's."""
    first = stock.shops - shops
    return [*_of_pages(stock, first), *_of_shops(range(first, stock.shops))]


def _of_pages(stock: Stock, first: int) -> Iterator[Fault]:
    caged = [page for page in stock.pages if page.shop >= first]
    for number, page in enumerate(sorted(caged, key=lambda page: (page.shop, page.path))[::2]):
        beast = _PAGES[number % len(_PAGES)]
        yield Fault(
            beast.kind,
            share=1.0,
            hosts=str(page.shop),
            paths=page.path,
            seconds=beast.seconds,
            to=beast.to,
        )


def _of_shops(numbers: range) -> Iterator[Fault]:
    for number in numbers:
        kind = _SHOPS[number % len(_SHOPS)]
        yield Fault(kind, share=1.0, hosts=str(number))  # type: ignore[arg-type]
