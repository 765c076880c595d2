"""What a model is to be trained for: the task, what may be known, and how time is divided."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from salticus.features.names import EDGES

_DAY = timedelta(days=1)

TASKS = ("change", "stale", "click", "impression")
"""change: the value changes in each stretch ahead. stale: it has changed since the last answer.
click, impression: there is one on the UTC day that begins next."""


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Three spans of time, one after the other, half-open; each with its days from `start` on.

    Rows of a span whose labels reach into the next one are left out.
    """

    train: timedelta = 92 * _DAY
    validation: timedelta = 5 * _DAY
    test: timedelta = 26 * _DAY
    start: datetime | None = None  # None: the log's first midnight


SPLITS = {
    "han2019": TimeSplit(),
    "han2020": TimeSplit(153 * _DAY, 9 * _DAY, 91 * _DAY),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How examples are made of a log.

    `edges` are the ends of the stretches ahead, in hours: a model for one horizon has one.
    `observe`: "full" (every change is known in its hour), "partial" (what the log's visits saw), or
    visits per page and day, by coins ("0.2"; "0.05-2": each page its own, between the two).
    Predictions are made `every` so often and, if `visits`, at the log's own visits too, at least 15
    minutes apart for a page. At most `examples` rows are kept of each of the three spans, by coins.
    `unseen` is the share of the pages that training never touches. With `clip` the pages of a
    merchant end with its last change; None: if the log's `merchants_end` says so.
    """

    task: str = "change"
    edges: tuple[int, ...] = (6,)
    observe: str = "full"
    split: TimeSplit = SPLITS["han2019"]
    every: timedelta = timedelta(hours=1)
    visits: bool = True
    examples: int = 5_000_000
    unseen: float = 0.25
    clip: bool | None = None
    depth: int = 0
    seed: int = 0


HAZARD = EDGES
"""The edges of a model whose probabilities are a curve over fourteen days."""
