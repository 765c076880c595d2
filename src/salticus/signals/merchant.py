"""Merchant feeds: what shops state of their offers, without a visit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from salticus.errors import InputError
from salticus.signals.opened import Opened
from salticus.signals.rows import FeedRow, FeedRows
from salticus.types import Told, Value
from salticus.types.dates import written

SHOWN = 10  # bad rows that are named

_TRACKING = re.compile(
    r"(?:utm_\w*|gclid|gclsrc|gbraid|wbraid|dclid|fbclid|msclkid|yclid|srsltid|mc_[ce]id)=[^&]*",
    re.I,
)
_CODE = re.compile(r"^[a-z]{3}(?=[\s\d])|(?<=[\s\d])[a-z]{3}$", re.I)
_LABELS = ("title", "brand", "category", "condition", "id", "gtin", "group")
_MAX_LABEL = 500
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # what no store and no screen can take


class Amount(Protocol):
    """An amount and the currency beside it, both canonical."""

    @property
    def amount(self) -> str: ...

    @property
    def currency(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Spelling:
    """How visits spell what they find: a feed must say the same thing in the same words.

    `url` raises InputError for what cannot be visited; the others give None or an empty text for
    what they do not know.
    """

    url: Callable[[str], tuple[str, str]]
    price: Callable[[str], Amount | None]
    currency: Callable[[str], str]
    availability: Callable[[str], str]
    condition: Callable[[str], str]


@dataclass(slots=True)
class FeedTally:
    """What a feed holds: good rows, bad ones, further rows of pages that had one already."""

    rows: int = 0
    good: int = 0
    bad: int = 0
    repeated: int = 0
    complaints: list[str] = field(default_factory=list)
    fault: str | None = None


class _Bad(Exception):
    """A row that says nothing, and why."""


class MerchantFeed:
    """A file from a merchant, as statements about pages at the time `at` (µs).

    Google-Merchant-style TSV and XML, and CSV; read as a stream. Of several rows of one page, such
    as the variants of a product, the first counts. A sale price counts while it is in force.
    Parameters that only track (``utm_source``) are taken out of links unless `keep_tracking`, as
    the pages that are visited do not have them.
    """

    def __init__(
        self,
        file: Opened,
        spelling: Spelling,
        *,
        origin: str,
        at: int,
        keep_tracking: bool = False,
    ) -> None:
        self.file = file
        self.spelling = spelling
        self.origin = origin
        self.at = at
        self.keep_tracking = keep_tracking

    def check(self) -> FeedTally:
        """Read all of it; InputError if more than half of it, or all, is bad."""
        tally = FeedTally()
        rows = FeedRows(self.file)
        seen: set[int] = set()
        for row in rows:
            tally.rows += 1
            self._count(row, tally, seen)
        tally.fault = rows.fault
        if 2 * tally.bad > tally.rows or not tally.good:
            named = "".join(f"\n  {complaint}" for complaint in tally.complaints)
            raise InputError(
                f"{self.file.name}: {tally.bad} of {tally.rows} rows are bad; nothing was imported"
                + named
            )
        return tally

    def _count(self, row: FeedRow, tally: FeedTally, seen: set[int]) -> None:
        try:
            told = self._told(row)
        except _Bad as error:
            tally.bad += 1
            if len(tally.complaints) < SHOWN:
                tally.complaints.append(str(error))
            return
        tally.good += _is_new(told.url, seen)
        tally.repeated = tally.rows - tally.good - tally.bad

    def told(self) -> Iterator[Told]:
        """The statements, one a page, bad rows left out."""
        seen: set[int] = set()
        for row in FeedRows(self.file):
            try:
                told = self._told(row)
            except _Bad:
                continue
            if _is_new(told.url, seen):
                yield told

    def _told(self, row: FeedRow) -> Told:
        if row.fault:
            raise _Bad(f"{row.place}: {row.fault}")
        return Told(self._url(row), self.at, self.origin, self._value(row))

    def _url(self, row: FeedRow) -> str:
        column = "link" if row.cells.get("link") else "canonical_link"
        raw = row.cells.get(column, "").replace("&amp;", "&")
        if not raw:
            raise _Bad(f"{row.where('link')}: link is empty; every row needs its page's address")
        try:
            return self.spelling.url(raw if self.keep_tracking else without_tracking(raw))[0]
        except InputError as error:
            raise _Bad(f"{row.where(column)}: {error}; write https://…") from None

    def _value(self, row: FeedRow) -> Value:
        cells = row.cells
        column = "sale_price" if self._on_sale(cells) else "price"
        found = self._price(row, column)
        known = {"price": found.amount}
        if code := found.currency or self.spelling.currency(cells.get("currency", "")):
            known["currency"] = code
        if stock := self.spelling.availability(_stock(cells.get("availability", ""))):
            known["availability"] = stock
        text = " ".join(known.values())
        labels = cells | {"condition": self.spelling.condition(cells.get("condition", ""))}
        labels.setdefault("category", cells.get("google_category", ""))
        named = ((name, _label(labels.get(name, ""))) for name in _LABELS)
        return Value("offer", text, known | {name: label for name, label in named if label})

    def _price(self, row: FeedRow, column: str) -> Amount:
        raw = row.cells.get(column, "")
        found = self.spelling.price(_CODE.sub(lambda code: code[0].upper(), raw.strip()))
        if found is None:
            said = f"{raw[:60]!r} is not one price" if raw else "is empty"
            raise _Bad(f"{row.where(column)}: {column} {said}; write 19.99 EUR")
        return found

    def _on_sale(self, cells: dict[str, str]) -> bool:
        if not cells.get("sale_price"):
            return False
        start, mark, end = cells.get("sale_dates", "").partition("/")
        first, last = written(start), written(end)
        begun = not mark or first is None or first <= self.at
        return begun and (not mark or last is None or self.at < last)


def _label(raw: str) -> str:
    """A text that can be stored and shown, not too long.

    >>> _label(" Acme\\x00\\tand  Sons ")
    'Acme and Sons'
    """
    return " ".join(_UNSEEN.sub(" ", raw).split())[:_MAX_LABEL].rstrip()


def _stock(raw: str) -> str:
    """A word for what may be yes or no, or a number of pieces.

    >>> _stock("12"), _stock("0"), _stock("No"), _stock("in_stock")
    ('in stock', 'out of stock', 'out of stock', 'in_stock')
    """
    word = raw.strip().lower()
    if word in ("true", "yes", "y") or (word.isdecimal() and word.strip("0")):
        return "in stock"
    return "out of stock" if word in ("false", "no", "n") or word.isdecimal() else raw


def _is_new(url: str, seen: set[int]) -> bool:
    """Whether a URL was not seen; numbers stand for URLs, as a feed may have millions."""
    known = len(seen)
    seen.add(hash(url))
    return len(seen) > known


def without_tracking(url: str) -> str:
    """The URL without the parameters that only say where a visitor came from.

    >>> without_tracking("https://shop.example/p?id=1&utm_source=feed&gclid=x#top")
    'https://shop.example/p?id=1#top'
    """
    address, mark, fragment = url.partition("#")
    path, _, query = address.partition("?")
    kept = "&".join(part for part in query.split("&") if not _TRACKING.fullmatch(part))
    return f"{path}{'?' if kept else ''}{kept}{mark}{fragment}"
