"""To which groups each page belongs, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from salticus.features.metadata import texts_of
from salticus.types import Bools, Columns, Ints
from salticus.types.frames import pl


@dataclass(frozen=True, slots=True)
class Groups(Columns):
    """Over pages: numbers of groups, in the order of their names; -1 = unknown.

    `zone` and `country` are places in `zones` (IANA names) and `countries` (ISO 3166 codes).
    """

    category: Ints
    merchant: Ints
    host: Ints
    brand: Ints
    zone: Ints
    country: Ints
    zones: tuple[str, ...]
    countries: tuple[str, ...]


def groups_of(pages: pl.DataFrame) -> Groups:
    """The groups of pages, row by row; a column that is absent is unknown. A page without a host
    has its merchant as one.

    >>> import polars as pl
    >>> groups = groups_of(pl.DataFrame({"merchant": ["b", None, "a"], "country": ["FR"] * 3}))
    >>> groups.merchant, groups.brand, groups.countries
    (array([ 1, -1,  0]), array([-1, -1, -1]), ('FR',))
    """
    numbers = {name: _numbers(pages, name) for name in ("category", "merchant", "host", "brand")}
    if "host" not in pages.columns:
        numbers["host"] = numbers["merchant"]
    return Groups(
        **numbers,
        zone=_numbers(pages, "timezone"),
        country=_numbers(pages, "country"),
        zones=_names(pages, "timezone"),
        countries=_names(pages, "country"),
    )


def shelves(groups: Groups) -> Ints:
    """The number of each page's category at its merchant; -1 if either is unknown."""
    span = int(groups.category.max(initial=-1)) + 1
    pair = groups.merchant * span + groups.category
    return numbered(pair, (groups.merchant >= 0) & (groups.category >= 0))


def numbered(values: NDArray[Any], known: Bools) -> Ints:
    """Numbers of the different values among those that are known; -1 for the others."""
    found = np.full(len(values), -1, dtype=np.int64)
    found[known] = np.unique(values[known], return_inverse=True)[1]
    return found


def _numbers(pages: pl.DataFrame, column: str) -> Ints:
    rank = texts_of(pages, column).rank("dense").fill_null(0)
    return rank.to_numpy().astype(np.int64) - 1


def _names(pages: pl.DataFrame, column: str) -> tuple[str, ...]:
    return tuple(texts_of(pages, column).drop_nulls().unique().sort().to_list())
