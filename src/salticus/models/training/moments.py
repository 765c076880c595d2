"""When predictions are made: on a grid and at the log's own visits (Han et al. 2019, 4.1.1).

Two predictions for a page are at least 15 minutes apart: a time that comes sooner after the last
one is skipped (Figure 6). Which of them become examples is decided by coins, each a hash of (seed,
page, time), so that the sample is the same however the log is streamed, and a smaller one is part
of a larger one. Times are µs since 1970, UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.features.metadata import Hashes
from salticus.models.training.labels import ChangePoints, Moments
from salticus.models.training.recipe import PARTS, Recipe, TimeSpan
from salticus.types import ANSWERED, Bools, Ints
from salticus.types.compiled import compiled
from salticus.types.dates import DAY_US, HOUR_US
from salticus.types.frames import pl

SPACING_US = 15 * 60 * 1_000_000
BINS = 2**20
"""Rates are whole multiples of 1/BINS, so that what each would keep can be counted beforehand."""

_BATCH = 2**20  # rows of visits in memory at a time
_PAGE = 2**38  # a visit on disk is page × _PAGE + 2 × µs of its day + whether it was answered
_PAGES = 2**63 // _PAGE
_NEVER = -(2**62)


class VisitsByDay:
    """The visits of a log by UTC day, on disk: the log has them by page, too many for memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.days: set[int] = set()

    def spill(self, log: Log, pages: pl.DataFrame) -> Self:
        if len(pages) > _PAGES:
            raise InputError(f"{log.folder}: more than {_PAGES:,} pages; take a sample of them")
        ids = pages.lazy().select("page_id").with_row_index("row")
        told = "status" in log.columns("visits")
        good = [status.label for status in ANSWERED]
        answer = pl.col("status").is_in(good).fill_null(True) if told else pl.lit(True)
        visits = log.scan("visits").select("page_id", "at", answer=answer)
        for start in range(0, log.rows("visits"), _BATCH):
            some = visits.slice(start, _BATCH).join(ids, on="page_id").collect()
            page, answered = (some[name].to_numpy().astype(np.int64) for name in ("row", "answer"))
            day, within = np.divmod(some["at"].dt.epoch("us").to_numpy(), DAY_US)
            self._append(day, page * _PAGE + 2 * within + answered)
        return self

    def _append(self, day: Ints, code: Ints) -> None:
        order = np.argsort(day, kind="stable")
        code, day = code[order], day[order]
        starts = np.flatnonzero(np.diff(day, prepend=-1))
        for some, each in zip(np.split(code, starts[1:]), day[starts].tolist(), strict=True):
            with (self.folder / f"{each}.visits").open("ab") as file:
                file.write(some.tobytes())
            self.days.add(each)

    def on(self, day: int) -> tuple[Ints, Ints, Bools]:
        """Page, time and whether it was answered of a day's visits, by page and time."""
        raw = (self.folder / f"{day}.visits").read_bytes() if day in self.days else b""
        code = np.sort(np.frombuffer(raw, dtype=np.int64))
        page, rest = np.divmod(code, _PAGE)
        return page, day * DAY_US + rest // 2, (rest % 2).astype(np.bool_)


class MomentContext(NamedTuple):
    """What makes a moment: pages by the hash of their id, the truth, and how far labels reach."""

    key: Hashes
    points: ChangePoints
    use: Ints  # rows of pages
    start: int  # from which the grid counts
    every: int
    reach: int  # of the first label; -1: to the end of the UTC day ahead
    seed: np.uint64


class _Kept(NamedTuple):
    """What is carried from day to day."""

    last: Ints  # over pages: the last moment
    cursor: Ints  # over pages: the next change point
    bins: Ints  # counts moments by their coins
    found: Ints  # where moments are written


class Sampler:
    """Moments, a piece of time after the other; `uses` tells for each part which pages it takes."""

    def __init__(
        self, recipe: Recipe, key: Hashes, points: ChangePoints, uses: dict[str, Bools]
    ) -> None:
        self.recipe, self.key, self.points, self.uses = recipe, key, points, uses

    def rates(
        self, spans: tuple[TimeSpan, ...], visits: VisitsByDay | None
    ) -> dict[str, tuple[int, int]]:
        """For each part, how many of BINS coins keep `recipe.examples` moments at most, and all."""
        bins = {part: np.zeros(BINS, dtype=np.int64) for part in PARTS}
        for _ in self.moments(spans, visits, dict.fromkeys(PARTS, 0), bins):
            pass
        sums = {part: np.cumsum(counts) for part, counts in bins.items()}
        most = self.recipe.examples
        return {
            part: (int(np.searchsorted(total, most, side="right")), int(total[-1]))
            for part, total in sums.items()
        }

    def moments(
        self,
        spans: tuple[TimeSpan, ...],
        visits: VisitsByDay | None,
        rates: dict[str, int],
        bins: dict[str, Ints] | None = None,
    ) -> Iterator[tuple[TimeSpan, Moments]]:
        """The sampled moments of every UTC day of every part, by time and page."""
        pages = len(self.key)
        last, cursor = np.full(pages, _NEVER), self.points.first[:-1].copy()
        nothing, nowhere = np.zeros(BINS, dtype=np.int64), np.zeros((0, 3), dtype=np.int64)
        for piece in (piece for span in spans for piece in span.pieces()):
            page, at = _times(visits if self.recipe.visits else None, piece)
            first = np.searchsorted(page, np.arange(pages + 1))
            kept = _Kept(last, cursor, nothing if bins is None else bins[piece.part], nowhere)
            stretch = (piece.start, piece.stop, piece.limit, rates[piece.part])
            asked = self._asked(spans[0].start, piece.part)
            found = _moments(asked, kept, (first, at), stretch)
            order = np.lexsort((found[:, 0], found[:, 1]))
            yield piece, Moments(*found[order].T.copy())

    def _asked(self, start: int, part: str) -> MomentContext:
        recipe = self.recipe
        reach = {"change": recipe.edges[0] * HOUR_US, "stale": 0}.get(recipe.task, -1)
        return MomentContext(
            self.key,
            self.points,
            np.flatnonzero(self.uses[part]),
            start,
            recipe.every // timedelta(microseconds=1),
            reach,
            np.uint64(recipe.seed % 2**64),
        )


def _times(visits: VisitsByDay | None, piece: TimeSpan) -> tuple[Ints, Ints]:
    if visits is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    page, at, _ = visits.on(piece.start // DAY_US)
    within = (at >= piece.start) & (at < piece.stop)
    return page[within], at[within]


@compiled
def _mix(x: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64, as in `coins`."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def coin(seed: np.uint64, key: np.uint64, at: int) -> np.uint64:
    """The coin of a moment: uniform among 0 … BINS - 1."""
    salt = _mix(seed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(at) + np.uint64(1))
    return _mix(_mix(key + salt) ^ salt) >> np.uint64(44)


@compiled
def _reached(when: int, reach: int) -> int:
    """Until when the first label of a moment reaches; a reach of -1 is the UTC day ahead."""
    return when + reach if reach >= 0 else (-(-when // DAY_US) + 1) * DAY_US


@compiled
def _merged(times: Ints, visits: Ints, grid: tuple[int, int], stop: int) -> int:
    """Fill `times` with those of the grid (first, step) and of the visits; how many there are."""
    when, every = grid
    n = visit = 0
    while True:
        if visit < len(visits) and visits[visit] < when:
            times[n] = visits[visit]
            visit += 1
        elif when < stop:
            times[n] = when
            when += every
        else:
            return n
        n += 1


@compiled
def _add(
    asked: MomentContext, kept: _Kept, page: Any, times: Ints, stretch: tuple[int, int]
) -> int:
    """The moments of a page at some of these times, and how many; ends of labels are known."""
    points, (limit, rate) = asked.points, stretch
    at, live, gone, high = points.at, points.live, points.gone, points.first[page + 1]
    found, bins, reach = kept.found, kept.bins, asked.reach
    seed, key, end = asked.seed, asked.key[page], min(limit, points.end[page])
    low, cursor, last, n = points.first[page], kept.cursor[page], kept.last[page], 0
    for when in times:
        while cursor < high and at[cursor] < when:
            cursor += 1
        following, there = cursor, cursor > low and live[cursor - 1]
        if not there and cursor < high and at[cursor] == when:  # born, or back, at this moment
            following, there = cursor + 1, live[cursor]
        if not there or when - last < SPACING_US:
            continue
        last, until = when, end
        if following < high:
            until = min(end, gone[following])
        if _reached(when, reach) > until:
            continue
        tossed = np.int64(coin(seed, key, when))
        bins[tossed] += 1
        if tossed < rate:
            found[n, 0], found[n, 1], found[n, 2] = page, when, following
            n += 1
    kept.cursor[page], kept.last[page] = cursor, last
    return n


@compiled
def _moments(
    asked: MomentContext, kept: _Kept, visits: tuple[Ints, Ints], stretch: tuple[int, int, int, int]
) -> Ints:
    """The moments of a stretch of time by page, rows × (page, time, next change point).

    Every moment whose label is known is counted in the bins by its coin, and found if the coin is
    below the rate.
    """
    (first, at), (start, stop, limit, rate) = visits, stretch
    early = asked.start + -(-(start - asked.start) // asked.every) * asked.every
    grid, n = 1 + (stop - start) // asked.every, 0
    times = np.empty(grid + len(at), dtype=np.int64)  # all visits may be of one page
    found = np.empty((1024 + len(times), 3), dtype=np.int64)
    for page in asked.use:
        those = at[first[page] : first[page + 1]]
        if n + grid + len(those) > len(found):
            more = np.empty((2 * len(found), 3), dtype=np.int64)
            more[:n] = found[:n]
            found = more
        many = _merged(times, those, (early, asked.every), stop)
        into = _Kept(kept.last, kept.cursor, kept.bins, found[n:])
        n += _add(asked, into, page, times[:many], (limit, rate))
    return found[:n]
