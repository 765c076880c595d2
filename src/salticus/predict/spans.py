"""What visits say of changes: spans between two answers of a page, and what the second found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from salticus.types import (
    CHANGED,
    UNKNOWN,
    Bools,
    Columns,
    Floats,
    Ints,
    Outcomes,
    Times,
    days_between,
)
from salticus.types.state import rank_within


@dataclass(frozen=True, slots=True)
class Spans(Columns):
    """Spans ordered by page and time, each from one answer to the next."""

    page: Ints
    start: Times
    end: Times
    changed: Bools

    @property
    def days(self) -> Floats:
        return days_between(self.start, self.end)

    def rounds(self) -> Iterator[Spans]:
        """Rounds in which no page occurs twice, earlier spans first; one round as a rule."""
        yield from (self.take(rows) for rows in rounds(self.page))


def rounds(page: Ints) -> Iterator[Ints]:
    """Rows in rounds in which no page occurs twice; one round as a rule."""
    rank = rank_within(page)
    if len(page):
        yield from np.split(np.argsort(rank, kind="stable"), np.cumsum(np.bincount(rank))[:-1])


def answered(outcomes: Outcomes) -> Spans:
    """The spans that a batch of visits ends; failed, dropped and first visits say nothing."""
    days = days_between(outcomes.since, outcomes.at)
    known = np.flatnonzero(outcomes.made & (outcomes.changed != UNKNOWN) & (days > 0))
    seen = outcomes.take(known[np.lexsort((outcomes.at[known], outcomes.page[known]))])
    return Spans(seen.page, seen.since, seen.at, seen.changed == CHANGED)
