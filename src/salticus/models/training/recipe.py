"""What a model is to be trained for: the task, what may be known, and how examples are divided.

By time they are divided into train, validation and test, by page into seen and unseen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import blake2b

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.write import span_of, spelt
from salticus.features.metadata import Hashes
from salticus.features.names import EDGES
from salticus.types import Bools, Floats, instant
from salticus.types.coins import coins
from salticus.types.dates import DAY_US
from salticus.types.frames import pl

PARTS = ("train", "validation", "test")

_HELD_OUT = 1  # the tick of the coins that hold pages out
_DAY = timedelta(days=1)

HAZARD = EDGES
"""The edges of a model whose probabilities are a curve over fourteen days."""

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

    def begins(self, otherwise: int) -> int:
        """The start in µs since 1970, or what it is otherwise."""
        return otherwise if self.start is None else int(instant(self.start).astype(np.int64))


SPLITS = {"han2019": TimeSplit(), "han2020": TimeSplit(153 * _DAY, 9 * _DAY, 91 * _DAY)}


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


def log_span(log: Log) -> tuple[int, int]:
    """The time of which a log tells, [first, end) in µs: as `log.json` says, else by its tables."""
    try:
        ends = log.about.ends()
    except ValueError as error:
        raise InputError(f"{log.folder / 'log.json'}: `span`: {error}") from None
    if ends is None:
        found = span_of(log.raw(table) for table in ("values", "visits") if log.has(table))
        if found is None:
            raise InputError(f"{log.folder}: there are neither values nor visits to learn from")
        ends = datetime.fromisoformat(found[0]), datetime.fromisoformat(found[1])
    first, last = (int(instant(end).astype(np.int64)) for end in ends)
    return first, last + 1


def provenance(log: Log) -> str:
    """A hash of what a log says of where it comes from: the same when it has grown."""
    said = {k: v for k, v in log.about.rest.items() if k not in ("span", "rows")}
    told = json.dumps([log.about.name, said], sort_keys=True, default=str)
    return blake2b(told.encode(), digest_size=16).hexdigest()


def usual_every(log: Log) -> timedelta:
    """How often predictions are made if nobody says: hourly, or as finely as times are known."""
    return max(log.about.resolution or timedelta(0), timedelta(hours=1))


def fitting_split(log: Log, split: TimeSplit, *, exactly: bool) -> TimeSplit:
    """The split, cut down in proportion if the log is too short for it; `exactly`: refused then."""
    first, end = log_span(log)
    end = -(-end // DAY_US) * DAY_US  # the last day may lack a moment
    start = split.begins(-(-first // DAY_US) * DAY_US)
    whole = split.train + split.validation + split.test
    if start + whole // timedelta(microseconds=1) <= end:
        return split
    less = shrunk(split, start, end)
    if less == split or exactly:
        days = max(0, (end - start) // DAY_US)
        fits = "/".join(spelt(getattr(less, part)) for part in PARTS)
        hint = f"; `--split {fits}` would fit" if less != split else ""
        raise InputError(
            f"{log.folder}: the split takes {whole / _DAY:g} days, but from "
            f"{np.datetime64(start, 'us').astype('M8[D]')} on the log has {days}{hint}"
        )
    return less


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
        for day in range(self.start // DAY_US * DAY_US, self.stop, DAY_US):
            start, stop = max(self.start, day), min(self.stop, day + DAY_US)
            yield TimeSpan(self.part, start, stop, self.limit)


def spans_of(split: TimeSplit, first: int, end: int) -> tuple[TimeSpan, ...]:
    """The three spans of a log whose time is [first, end), in µs; InputError if one has no time.

    The last one ends with the log if that is shorter than the split.
    """
    start = split.begins(-(-first // DAY_US) * DAY_US)
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
    days = (end - split.begins(first)) // DAY_US
    whole = (split.train + split.validation + split.test) // _DAY
    if days >= whole or days < len(PARTS):
        return split
    ratio = days / whole
    validation = max(1, round(split.validation / _DAY * ratio))
    test = max(1, int(split.test / _DAY * ratio))
    train = days - validation - test
    return replace(split, train=train * _DAY, validation=validation * _DAY, test=test * _DAY)


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
