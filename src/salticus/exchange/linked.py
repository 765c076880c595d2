"""The links of a log, and how often people looked at the pages they lead to, in steps of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.types import Floats, Ints, instant, usual_days
from salticus.types.dates import HOUR_US
from salticus.types.frames import pl


class Attention(Protocol):
    """How often pages were clicked, step by step."""

    def rewind(self) -> None:
        """Begin with the first step again."""

    def during(self, step: int, pages: Ints) -> Floats:
        """Clicks on each of these pages in a step; steps are asked for in their order."""

    def after(self, pages: Ints, steps: Ints) -> Floats:
        """Clicks on each of these pages from that step on."""


@dataclass(frozen=True, slots=True)
class LinkTruth:
    """Links by source and then by when they appeared: `first[k]` to `first[k + 1]` are those of
    source k. Each leads to a `page` and stands in the steps from `appeared` to `vanished`; `born`
    is when the first link to a page appeared. `names` are the log's own of the sources. A `step` is
    as long as a tick; there are `steps` of them from `start` on. `formats` are those of the
    sources (as `html`, `rss` or `sitemap`), where the log says so."""

    names: list[str]
    pages: int
    first: Ints
    page: Ints
    appeared: Ints
    vanished: Ints
    born: Ints
    start: datetime
    step: timedelta
    steps: int
    attention: Attention
    formats: Sequence[str | None] = ()

    @property
    def usual(self) -> Floats:
        """Days after which each source is revisited by custom."""
        return np.array([usual_days(each) for each in self.formats or [None] * self.sources])

    @property
    def sources(self) -> int:
        return len(self.names)

    @property
    def links_a_day(self) -> float:
        """Links that appear after the first step."""
        many = np.count_nonzero((self.appeared > 0) & (self.appeared < self.steps))
        return float(many / (self.steps * self.step / timedelta(days=1)))


def read_linked(log: Log, step: timedelta) -> LinkTruth:
    """The links of a log; InputError if there are none."""
    links = log.scan("links").drop_nulls(["source_id", "page_id", "appeared"])
    gone = pl.col("vanished") if "vanished" in log.columns("links") else pl.lit(None)
    last = _end(log)
    table = links.select(
        pl.col("source_id").cast(pl.String),
        pl.col("page_id").cast(pl.String),
        appeared=pl.col("appeared").cast(pl.Int64),
        vanished=gone.cast(pl.Int64).fill_null(last),
    ).collect()
    if table.is_empty():
        raise InputError(f"{log.path('links')}: there are no links")
    start = int(table["appeared"].min()) // HOUR_US * HOUR_US  # type: ignore[arg-type]
    size = round(step.total_seconds() * 1e6)
    steps = max((min(last, int(table["appeared"].max())) - start) // size + 1, 1)  # type: ignore[arg-type]
    names, source = _numbered(table["source_id"])
    pages, page = _numbered(table["page_id"])
    appeared = (table["appeared"].to_numpy() - start) // size
    vanished = np.minimum((table["vanished"].to_numpy() - start) // size, steps - 1)
    order = np.lexsort((page, appeared, source))
    source, page, appeared, vanished = (c[order] for c in (source, page, appeared, vanished))
    born = np.full(len(pages), steps)
    np.minimum.at(born, page, appeared)
    begin = datetime.fromtimestamp(start / 1e6, UTC)
    first = np.searchsorted(source, np.arange(len(names) + 1))
    attention: Attention = Shown(page, appeared, vanished, len(pages))
    if log.has("demand"):
        attention = _clicked(log, pages, start, size)
    return LinkTruth(
        names.to_list(), len(pages), first, page, appeared, vanished, born, begin, step, steps,
        attention, _formats(log, names),
    )  # fmt: skip


def _formats(log: Log, sources: pl.Series) -> list[str | None]:
    """The formats of the sources, if the log's pages have such a column."""
    if "format" not in log.columns("pages"):
        return []
    table = log.scan("pages").select(pl.col("page_id").cast(pl.String), "format")
    known = table.filter(pl.col("page_id").is_in(sources.implode())).collect()
    formats: dict[str, str] = dict(known.iter_rows())
    return [formats.get(name) for name in sources]


class Clicked:
    """Clicks as the log counted them."""

    def __init__(self, page: Ints, step: Ints, clicks: Floats, pages: int) -> None:
        order = np.lexsort((step, page))
        self._many = int(step.max(initial=0)) + 2
        self._key = page[order] * self._many + step[order]
        self._sum = np.concatenate([[0.0], np.cumsum(clicks[order])])
        self._column = np.zeros(pages)
        by_step = np.argsort(step, kind="stable")
        self._page, self._clicks = page[by_step], clicks[by_step]
        self._first = np.searchsorted(step[by_step], np.arange(self._many + 1))

    def counts(self) -> tuple[Ints, Ints, Ints]:
        """Every page and step in which it was clicked, and how often."""
        key, first = np.unique(self._key, return_index=True)
        clicks = np.diff(self._sum[np.append(first, len(self._key))])
        return key // self._many, key % self._many, clicks.astype(np.int64)

    def rewind(self) -> None:
        """Every step can be asked for at any time."""

    def during(self, step: int, pages: Ints) -> Floats:
        now = slice(*self._first[[min(step, self._many - 1), min(step + 1, self._many)]])
        np.add.at(self._column, self._page[now], self._clicks[now])
        clicks = self._column[pages]
        self._column[self._page[now]] = 0.0
        return clicks

    def after(self, pages: Ints, steps: Ints) -> Floats:
        low = np.searchsorted(self._key, pages * self._many + np.minimum(steps, self._many - 1))
        high = np.searchsorted(self._key, (pages + 1) * self._many)
        return np.asarray(self._sum[high] - self._sum[np.minimum(low, high)])


class Shown:
    """Where nobody counted clicks: a page is looked at once in each step by every link to it."""

    def __init__(self, page: Ints, appeared: Ints, vanished: Ints, pages: int) -> None:
        self._standing = np.zeros(pages)
        self._done = -1  # the last step that has come
        self._came, self._went = _by_step(page, appeared), _by_step(page, vanished + 1)
        order = np.argsort(page, kind="stable")
        self._appeared, self._vanished = appeared[order], vanished[order]
        self._first = np.searchsorted(page[order], np.arange(pages + 1))

    def rewind(self) -> None:
        self._standing[:], self._done = 0.0, -1

    def during(self, step: int, pages: Ints) -> Floats:
        for turn in range(self._done + 1, step + 1):
            for (page, first), sign in ((self._came, 1.0), (self._went, -1.0)):
                if turn + 1 < len(first):
                    np.add.at(self._standing, page[first[turn] : first[turn + 1]], sign)
        self._done = max(self._done, step)
        return self._standing[pages]

    def after(self, pages: Ints, steps: Ints) -> Floats:
        first, many = self._first[pages], np.diff(self._first)[pages]
        place = np.repeat(np.arange(len(pages)), many)
        link = np.arange(many.sum()) + np.repeat(first - (np.cumsum(many) - many), many)
        stood = self._vanished[link] - np.maximum(self._appeared[link], steps[place]) + 1
        weights = np.maximum(stood, 0)
        return np.asarray(np.bincount(place, weights, len(pages)), dtype=np.float64)


def _by_step(page: Ints, step: Ints) -> tuple[Ints, Ints]:
    """Pages in the order of their steps, and where each step begins."""
    order = np.argsort(step, kind="stable")
    return page[order], np.searchsorted(step[order], np.arange(int(step.max(initial=0)) + 2))


def _clicked(log: Log, pages: pl.Series, start: int, size: int) -> Clicked:
    rows = pl.LazyFrame({"page_id": pages, "row": np.arange(len(pages))})
    counts = (
        log.scan("demand")
        .select(pl.col("page_id").cast(pl.String), pl.col("at").cast(pl.Int64), "clicks")
        .join(rows, on="page_id")
        .filter(pl.col("at") >= start)
        .collect()
    )
    step = (counts["at"].to_numpy() - start) // size
    clicks = counts["clicks"].fill_null(0).to_numpy().astype(np.float64)
    return Clicked(counts["row"].to_numpy(), step, clicks, len(pages))


def _numbered(ids: pl.Series) -> tuple[pl.Series, Ints]:
    """The different ids in order, and the number of each row's."""
    names = ids.unique().sort()
    return names, names.search_sorted(ids).to_numpy().astype(np.int64)


def _end(log: Log) -> int:
    """When the log ends, µs; far away if it does not say."""
    ends = log.about.ends()
    return 2**62 if ends is None else int(instant(ends[1]).astype(np.int64))
