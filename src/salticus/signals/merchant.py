"""Merchant feeds: what shops state of their offers, without a visit, in whatever format."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

from salticus.errors import InputError
from salticus.signals.opened import Opened
from salticus.types import Told, Value
from salticus.types.dates import written
from salticus.urls import canonical, without_tracking

if TYPE_CHECKING:
    from salticus.markup import Element

DELIMITERS = "\t,;|"

_NAMES = {
    "id": "id sku product_id productid item_id offer_id merchant_product_id article_number",
    "link": "link url product_url producturl product_link deeplink deep_link landing_page"
    " aw_deep_link merchant_deep_link link_to_product page_url",
    "canonical_link": "canonical_link canonical canonical_url",
    "title": "title name product_name product_title item_title",
    "price": "price current_price product_price search_price price_incl_vat retail_price",
    "sale_price": "sale_price special_price discounted_price",
    "sale_dates": "sale_price_effective_date sale_price_date sale_effective_date",
    "currency": "currency currency_code price_currency currency_id",
    "availability": "availability stock stock_status in_stock availability_status",
    "brand": "brand brand_name manufacturer vendor",
    "category": "product_type category category_path merchant_category",
    "google_category": "google_product_category",
    "condition": "condition item_condition",
    "gtin": "gtin ean upc isbn gtin13 barcode",
    "group": "item_group_id parent_id group_id",
}
COLUMNS = {spelling: name for name, spellings in _NAMES.items() for spelling in spellings.split()}
_GOOGLE = "http://base.google.com/"
_GAPS = re.compile(r"[^a-z0-9]+")
_FAR = 65_535  # lines that an element can be said to be on
SHOWN = 10  # bad rows that are named

_CODE = re.compile(r"^[a-z]{3}(?=[\s\d])|(?<=[\s\d])[a-z]{3}$", re.I)
_LABELS = ("title", "brand", "category", "condition", "id", "gtin", "group")
_MAX_LABEL = 500
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # what no store and no screen can take


@dataclass(frozen=True, slots=True)
class Spelling:
    """How visits spell what they find: a feed must say the same thing in the same words.

    `price` gives an amount and the currency beside it. What is not known is None or an empty text.
    """

    price: Callable[[str], tuple[str, str] | None]
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


@dataclass(frozen=True, slots=True)
class MerchantFeed:
    """A file from a merchant, as statements about pages at the time `at` (µs).

    Google-Merchant-style TSV and XML, and CSV; read as a stream. Of several rows of one page, such
    as the variants of a product, the first counts. A sale price counts while it is in force.
    Parameters that only track (``utm_source``) are taken out of links unless `keep_tracking`, as
    the pages that are visited do not have them.
    """

    file: Opened
    spelling: Spelling
    origin: str
    at: int
    keep_tracking: bool = False

    def check(self) -> FeedTally:
        """Read all of it; InputError if more than half of it, or all, is bad."""
        tally, rows = FeedTally(), FeedRows(self.file)
        seen: set[int] = set()
        for told in self._statements(rows):
            tally.rows += 1
            if isinstance(told, str):
                tally.bad += 1
                tally.complaints += [told] if tally.bad <= SHOWN else []
            else:
                tally.good += _is_new(told.url, seen)
        tally.repeated = tally.rows - tally.good - tally.bad
        tally.fault = rows.fault
        if 2 * tally.bad > tally.rows or not tally.good:
            named = "".join(f"\n  {complaint}" for complaint in tally.complaints)
            raise InputError(
                f"{self.file.name}: {tally.bad} of {tally.rows} rows are bad; nothing was imported"
                + named
            )
        return tally

    def told(self) -> Iterator[Told]:
        """The statements, one a page, bad rows left out."""
        seen: set[int] = set()
        for told in self._statements(FeedRows(self.file)):
            if isinstance(told, Told) and _is_new(told.url, seen):
                yield told

    def _statements(self, rows: Iterable[FeedRow]) -> Iterator[Told | str]:
        """What each row states, or what is wrong with it."""
        for row in rows:
            try:
                if row.fault:
                    raise _Bad(f"{row.place}: {row.fault}")
                yield Told(self._url(row), self.at, self.origin, self._value(row))
            except _Bad as error:
                yield str(error)

    def _url(self, row: FeedRow) -> str:
        column = "link" if row.cells.get("link") else "canonical_link"
        raw = row.cells.get(column, "").replace("&amp;", "&")
        if not raw:
            raise _Bad(f"{row.where('link')}: link is empty; every row needs its page's address")
        try:
            return canonical(raw if self.keep_tracking else without_tracking(raw))[0]
        except InputError as error:
            raise _Bad(f"{row.where(column)}: {error}; write https://…") from None

    def _value(self, row: FeedRow) -> Value:
        cells = row.cells
        amount, code = self._price(row, "sale_price" if self._on_sale(cells) else "price")
        known = {"price": amount}
        if code := code or self.spelling.currency(cells.get("currency", "")):
            known["currency"] = code
        if stock := self.spelling.availability(_stock(cells.get("availability", ""))):
            known["availability"] = stock
        text = " ".join(known.values())
        labels = cells | {"condition": self.spelling.condition(cells.get("condition", ""))}
        labels.setdefault("category", cells.get("google_category", ""))
        named = ((name, _label(labels.get(name, ""))) for name in _LABELS)
        return Value("offer", text, known | {name: label for name, label in named if label})

    def _price(self, row: FeedRow, column: str) -> tuple[str, str]:
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
        begun, ended = first is None or first <= self.at, last is not None and last <= self.at
        return not mark or (begun and not ended)


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


class FeedRow(NamedTuple):
    """One product: its cells by our names, where it stands, and where each cell does."""

    place: str
    cells: dict[str, str]
    columns: dict[str, int]
    fault: str | None = None

    def where(self, column: str) -> str:
        """The place of a cell, as file:line:column."""
        number = self.columns.get(column)
        return f"{self.place}:{number}" if number else self.place


class FeedRows:
    """The rows of a file, told by its first bytes: a table, or XML with an item a product.

    Once all were taken, `fault` says why the file was not read whole, or is None.
    """

    def __init__(self, file: Opened) -> None:
        self.file = file
        self.fault: str | None = None

    def __iter__(self) -> Iterator[FeedRow]:
        head = self.file.head()
        if head.startswith(b"PK\x03\x04"):
            raise InputError(f"{self.file.name}: a zip archive; unpack it first")
        if not head.strip():
            raise InputError(f"{self.file.name}: empty")
        is_xml = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"<")
        return self._items() if is_xml else self._table()

    def _table(self) -> Iterator[FeedRow]:
        lines = self.file.lines()
        filled = ((n, line.rstrip("\r\n")) for n, line in enumerate(lines, 1) if line.strip())
        number, header = next(filled, (0, ""))
        delimiter = max(DELIMITERS, key=header.count)
        names = [_name(cell) for cell in next(csv.reader([header], delimiter=delimiter))]
        columns = {name: i for i, name in reversed(list(enumerate(names, 1))) if name}
        self._check(columns, header)
        for line, cells, fault in _records(csv.reader(lines, delimiter=delimiter)):
            place = f"{self.file.name}:{number + line}"
            if fault is None and any(cells[len(names) :]):
                fault = f"{len(cells)} cells, but the header has {len(names)}; quote the delimiter"
            found = {n: cells[i - 1].strip() for n, i in columns.items() if i <= len(cells)}
            yield FeedRow(place, found, columns, fault)

    def _check(self, columns: dict[str, int], header: str) -> None:
        known = {*columns, "link"} if "canonical_link" in columns else columns
        if absent := [name for name in ("link", "price") if name not in known]:
            shown = " ".join(header.split())[:200]
            raise InputError(
                f"{self.file.name}:1: no column for {' and '.join(absent)} in {shown!r}; name the "
                "columns as in a Google Merchant feed: id, title, link, price, availability"
            )

    def _items(self) -> Iterator[FeedRow]:
        from salticus.markup import Document

        document = Document(self.file.pieces(), {"item", "entry", "product"})
        number = 0
        for number, item in enumerate(document, 1):
            line = cast(int, item.sourceline or 0)
            place = f"{self.file.name}:{line}" if 0 < line < _FAR else f"item {number}"
            yield FeedRow(place, _cells(item), {})
        self.fault = document.fault
        if not number:
            why = document.fault or f"its root is <{document.root}> and it has no <item> or <entry>"
            raise InputError(f"{self.file.name}: no products: {why}")


def _name(cell: str) -> str:
    """Our name of a column; empty if it does not matter.

    >>> _name("g:Sale Price"), _name("Product URL"), _name("colour")
    ('sale_price', 'link', '')
    """
    text = cell.strip().strip("\ufeff").lower().rpartition(":")[2]
    return COLUMNS.get(_GAPS.sub("_", text).strip("_"), "")


def _records(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str], str | None]]:
    """(first line after the header, cells, what is wrong) of every record that is not blank."""
    line = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line + 1, [], f"{error}; is a quote not closed?"
        else:
            if any(map(str.strip, cells)):
                yield line + 1, cells, None
        line = reader.line_num  # type: ignore[attr-defined]


def _cells(item: Element) -> dict[str, str]:
    """The cells of an item; where a name comes twice, Google's counts."""
    from salticus.markup import local, text_of

    cells: dict[str, str] = {}
    for child in item:
        name = COLUMNS.get(local(child).lower(), "")
        text = child.get("href") or text_of(child)
        if name and text and (name not in cells or str(child.tag).startswith("{" + _GOOGLE)):
            cells[name] = text
    return cells
