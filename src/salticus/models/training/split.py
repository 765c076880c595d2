"""How examples are divided: by time into train, validation and test; by page into seen and not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from salticus.errors import InputError
from salticus.features.metadata import Hashes
from salticus.models.training.recipe import Recipe, TimeSplit
from salticus.types import Bools, Floats, instant
from salticus.types.coins import coins
from salticus.types.dates import DAY_US

if TYPE_CHECKING:
    import polars as pl

PARTS = ("train", "validation", "test")

_HELD_OUT = 1  # the tick of the coins that hold pages out


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A part's stretch of time, or a piece of it within one UTC day: [start, stop) in µs.

    What comes after `limit` belongs to the next part: no label may reach beyond.
    """

    part: str
    start: int
    stop: int
    limit: int

    @property
    def day(self) -> str:
        """The UTC day on which it starts, as 2018-05-01."""
        return str(np.datetime64(self.start, "us").astype("M8[D]"))

    def pieces(self) -> Iterator[TimeSpan]:
        """The same time, a UTC day at a time."""
        start = self.start
        while start < self.stop:
            stop = min(self.stop, (start // DAY_US + 1) * DAY_US)
            yield TimeSpan(self.part, start, stop, self.limit)
            start = stop


def spans_of(split: TimeSplit, first: int, end: int) -> tuple[TimeSpan, ...]:
    """The three spans of a log whose time is [first, end), in µs; InputError if one has no time.

    The last one ends with the log if that is shorter than the split.
    """
    day = -(-first // DAY_US) * DAY_US
    start = day if split.start is None else int(instant(split.start).astype(np.int64))
    if start < first // DAY_US * DAY_US:
        raise InputError(f"the split starts at {split.start}, before the log does")
    spans = []
    for part in PARTS:
        stop = min(end, start + getattr(split, part) // timedelta(microseconds=1))
        if stop <= start:
            raise InputError(f"the log ends before the span `{part}` begins; give a shorter split")
        spans.append(TimeSpan(part, start, stop, stop))
        start = stop
    return tuple(spans)


def shrunk(split: TimeSplit, first: int, end: int) -> TimeSplit:
    """The split in whole days, at least one each, if the log [first, end) in µs has fewer.

    >>> days = [n * timedelta(days=1) for n in (31, 2, 8)]
    >>> shrunk(TimeSplit(), 0, 41 * DAY_US) == TimeSplit(*days)
    True
    """
    start = first if split.start is None else int(instant(split.start).astype(np.int64))
    days = (end - start) // DAY_US
    whole = (split.train + split.validation + split.test) // timedelta(days=1)
    if days >= whole or days < len(PARTS):
        return split
    ratio = days / whole
    validation = max(1, round(split.validation / timedelta(days=1) * ratio))
    test = max(1, int(split.test / timedelta(days=1) * ratio))
    day = timedelta(days=1)
    train = days - validation - test
    return replace(split, train=train * day, validation=validation * day, test=test * day)


def seen_pages(keys: Hashes, recipe: Recipe) -> Bools:
    """Which pages training may use: by a coin of the page's hash, all but a share of `unseen`."""
    return coins(recipe.seed, keys.view(np.int64), _HELD_OUT) >= recipe.unseen


def uniform_pages(pages: pl.DataFrame) -> Bools:
    """The pages of the uniform stratum; all pages, if the log tells no stratum."""
    if "stratum" not in pages.columns or pages["stratum"].null_count() == len(pages):
        return np.ones(len(pages), dtype=np.bool_)
    return np.asarray((pages["stratum"] == "uniform").fill_null(False).to_numpy())


def click_weights(clicks: Floats, days: Floats, seen: Bools, uniform: Bools) -> Floats:
    """Over pages: what makes the training pages, taken together, weigh as the uniform ones alone.

    Pages that are not of the uniform stratum were drawn in proportion to their clicks. For each n_u
    pages of the uniform stratum with c clicks a day there are then n_u + n_c · c/m in training,
    where n_u and n_c are the sizes of the strata and m is the mean of c in the uniform one. The
    weight is n_u + n_c over that (the balance heuristic of Veach and Guibas 1995, 3.3). `clicks`
    are those of the training span and `days` how long the page lived in it; one day with the mean
    is added. If no uniform page was clicked, nothing can be told and all weights are 1.
    """
    even, other = uniform & seen, ~uniform & seen
    lived = float(days[even].sum())
    mean = float(clicks[even].sum()) / lived if lived > 0 else 0.0
    if not mean > 0:
        return np.ones(len(clicks))
    often = (clicks + mean) / (days + 1.0) / mean
    n_u, n_c = np.count_nonzero(even), np.count_nonzero(other)
    return np.asarray((n_u + n_c) / (n_u + n_c * often), dtype=np.float64)
