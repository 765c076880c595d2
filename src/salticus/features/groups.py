"""To which groups each page belongs, as numbers, and their counters when that changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from salticus.features.kernels import (
    BORN_AT,
    BRAND,
    CATEGORY,
    CHANGES,
    COUNTED,
    GONE_AT,
    GROUPED,
    LAGS,
    LAST_SUM,
    NEVER_H,
    SHELF,
    SINCE,
    Tables,
)
from salticus.types import Columns, Ints, Ints32

_MOVABLE = (BRAND, SHELF, CATEGORY)

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl


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
    known = (groups.merchant >= 0) & (groups.category >= 0)
    found = np.full(len(groups), -1, dtype=np.int64)
    pair = (groups.merchant * span + groups.category)[known]
    found[known] = np.unique(pair, return_inverse=True)[1]
    return found


def _numbers(pages: pl.DataFrame, column: str) -> Ints:
    if column not in pages.columns:
        return np.full(len(pages), -1, dtype=np.int64)
    import polars as pl

    rank = pages[column].cast(pl.String).rank("dense").cast(pl.Int64)
    return (rank - 1).fill_null(-1).to_numpy().astype(np.int64)


def _names(pages: pl.DataFrame, column: str) -> tuple[str, ...]:
    if column not in pages.columns:
        return ()
    import polars as pl

    return tuple(pages[column].cast(pl.String).drop_nulls().unique().sort().to_list())


def regrouped(old: Tables, new: Tables, before: Groups, after: Groups) -> Tables:
    """What was counted by `before` as it would have been counted by `after`.

    `new` are empty tables of `after`, which has the pages of `before` and then more. Merchants and
    hosts have weeks and batches, which cannot be taken apart again, so that a page stays with its
    own, and these keep their numbers; of brands, categories and shelves all is a sum over pages.
    ValueError if a page moves to another merchant or host, or one has gone.
    """
    n = len(before)
    for name in ("merchant", "host"):
        if (getattr(before, name) != getattr(after, name)[:n]).any():
            raise ValueError(f"a page cannot move to another {name}")
    if (old.own[:, GONE_AT] != NEVER_H).any():
        raise ValueError("a page that has gone cannot be counted anew")
    kept = {name: getattr(old, name) for name in ("hour", "page", "kind", "first", "second")}
    tables = new._replace(**kept, third=old.third, marks=old.marks, facts=old.facts)
    for name in ("own", "held", "ring", "cells", "turn"):
        column = getattr(old, name)
        getattr(tables, name)[: len(column)] = column
    merchants, hosts = (int(codes.max(initial=-1)) + 1 for codes in (before.merchant, before.host))
    first = 2 + int(after.merchant.max(initial=-1))  # row of the first host
    tables.group[: 1 + merchants] = old.group[: 1 + merchants]
    tables.group[first : first + hosts] = old.group[1 + merchants : 1 + merchants + hosts]
    for family in _MOVABLE:
        _count(tables, family)
    return tables


def _count(s: Tables, family: int) -> None:
    """Count a family of groups from the counters of its pages."""
    row, born = s.rows[:, family], s.own[:, BORN_AT]
    in_one = (row >= 0) & (born >= 0)
    for lag in range(COUNTED):
        if GROUPED[lag]:
            there = in_one & (born < s.facts[2] - LAGS[lag])
            _add(s, 3 * lag, row[in_one], s.own[in_one, CHANGES + lag])
            _add(s, 3 * lag + 1, row[there], np.ones(np.count_nonzero(there), dtype=np.int32))
            _add(s, 3 * lag + 2, row[there], born[there])
    if family == CATEGORY:
        _add(s, LAST_SUM, row[in_one], s.own[in_one, SINCE])


def _add(s: Tables, column: int, row: Ints32, many: Ints32) -> None:
    """Sums of whole numbers far below 2⁵³, so that floats hold them exactly."""
    sums = np.bincount(row, weights=many, minlength=len(s.group))
    s.group[:, column] += sums.astype(np.int64)
