"""Counters of groups when pages come, or turn out to belong to others than was known."""

from __future__ import annotations

import numpy as np

from salticus.features.groups import Groups
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
from salticus.types import Ints32

_MOVABLE = (BRAND, SHELF, CATEGORY)


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
