"""The rows of a merchant's feed, of whatever format, under one set of names."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

from salticus.errors import InputError
from salticus.signals.opened import Opened

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
        number, header = _header(lines)
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
        absent = [name for name in ("link", "price") if name not in columns]
        if "canonical_link" in columns:
            absent = [name for name in absent if name != "link"]
        if absent:
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


def _header(lines: Iterator[str]) -> tuple[int, str]:
    """The first line that is not blank, and its number."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            return number, line.rstrip("\r\n")
    return 0, ""


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
