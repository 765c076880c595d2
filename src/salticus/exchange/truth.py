"""The truth of a log: what every page held, from when on; as columns, or its tables whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import KINDS, Log, reading
from salticus.types import DAY, Bools, Floats, Instant, Ints, Times, instant
from salticus.types.coins import coins
from salticus.types.frames import pl

GONE = -1
"""The code of the null value: the page is gone."""

_FACTS = ("failure", "host", "merchant", "category")  # of each page
_GRACE = 2 * DAY  # a crawl that starts with the window sees the pages it starts with by then


@dataclass(frozen=True, slots=True)
class Truth:
    """Change points ordered by time, over pages numbered by birth.

    `ids` are numbers that a page keeps in every sample of its log, ascending; `born` is ascending
    too, so that the pages alive at any time are the first rows. `page` is the row of each change
    point and `value` a code: equal codes mean equal values, GONE that the page is gone. `failure`
    is the probability that a visit of the page fails. `names` are the log's own page ids. `host`
    (by its merchant if it is unknown, else 0), `merchant` and `category` (-1 = unknown) are
    numbered in the order of their names.
    """

    names: pl.Series
    ids: Ints
    born: Times
    failure: Floats
    host: Ints
    merchant: Ints
    category: Ints
    page: Ints
    at: Times
    value: Ints
    imputed: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def end(self) -> Instant:
        """The last moment of which anything is known."""
        last: Instant = self.at[-1]
        return last

    def before(self, when: Instant) -> int:
        return int(np.searchsorted(self.at, when))

    def rows(self) -> pl.LazyFrame:
        """The row of every page by the log's own id: `page_id`, `row`."""
        numbers = pl.Series("row", np.arange(len(self)))
        return pl.LazyFrame({"page_id": self.names, "row": numbers})

    def take(self, rows: Bools) -> Truth:
        """The pages of the given mask alone."""
        new = np.cumsum(rows) - 1
        kept = rows[self.page]
        return Truth(
            names=self.names.filter(rows),
            ids=self.ids[rows],
            born=self.born[rows],
            **{name: getattr(self, name)[rows] for name in _FACTS},
            page=new[self.page[kept]],
            at=self.at[kept],
            value=self.value[kept],
            imputed=self.imputed,
        )


def read_truth(log: Log, *, seed: int = 0) -> Truth:
    """The truth of a log: its values, else its texts, else what its visits leave open, imputed.

    A log of visits tells of a change only that it lies between two visits: it is put there at
    random, by a hash of (seed, visit), so that each seed is one imputation.
    """
    with reading(log.folder):
        if log.has("values"):
            return _columns(log, log.scan("values").select("page_id", "at", "value"))
        if log.has("texts"):
            return _columns(log, log.scan("texts").select("page_id", "at", value="text"))
        if log.has("visits"):
            return _columns(log, _imputed(log, seed), imputed=True)
    raise InputError(
        f"{log.folder}: no truth to replay: values.parquet, texts.parquet and visits.parquet "
        "are all absent"
    )


def sample(truth: Truth, pages: int, start: datetime, *, seed: int) -> Truth:
    """A random `pages` of those that exist at `start` (or two days later)."""
    early = truth.born < instant(start) + _GRACE
    chance = np.where(early, coins(seed, truth.ids, 0), np.inf)
    if pages >= np.count_nonzero(early):
        return truth.take(early)
    return truth.take(chance <= np.partition(chance, pages - 1)[pages - 1])


def _columns(log: Log, points: pl.LazyFrame, *, imputed: bool = False) -> Truth:
    failure = pl.col("failure") if "failure" in log.columns("pages") else pl.lit(0.0)
    pages = log.scan("pages").select(
        "page_id", failure=failure.cast(pl.Float64).fill_null(0.0), **_groups(log)
    )
    born = points.group_by("page_id").agg(born=pl.col("at").min())
    known = pages.join(born, on="page_id").sort("born", "page_id").with_row_index("row").collect()
    code = pl.col("value").cast(pl.String).rank("dense").cast(pl.Int64).fill_null(GONE)
    rows = known.lazy().select("page_id", "row")
    changes = (
        points.with_columns(value=code)
        .join(rows, on="page_id")
        .select(pl.col("row").cast(pl.Int64), "at", "value")
        .sort("at", "row", maintain_order=True)
        .collect()
    )
    if not len(known):
        raise InputError(f"{log.folder}: no page of pages.parquet has a history")
    return Truth(
        names=known["page_id"],
        ids=np.arange(len(known), dtype=np.int64),
        born=times_of(known["born"]),
        **{name: known[name].to_numpy() for name in _FACTS},
        page=changes["row"].to_numpy(),
        at=times_of(changes["at"]),
        value=changes["value"].to_numpy(),
        imputed=imputed,
    )


def _groups(log: Log) -> dict[str, pl.Expr]:
    """Numbers of the host, merchant and category of each page."""

    def name(column: str) -> pl.Expr:
        known = column in log.columns("pages")
        return pl.col(column).cast(pl.String) if known else pl.lit(None, dtype=pl.String)

    def number(names: pl.Expr, unknown: int) -> pl.Expr:
        return (names.rank("dense").cast(pl.Int64) - 1).fill_null(unknown)

    return {
        "host": number(pl.coalesce(name("host"), name("merchant")), 0),
        "merchant": number(name("merchant"), -1),
        "category": number(name("category"), -1),
    }


def _imputed(log: Log, seed: int) -> pl.LazyFrame:
    """Change points that the visits allow: the first value at the first answer, every later one at
    a random moment after the last visit that did not show it."""
    answered = log.scan("visits", "changed")
    if "status" in log.columns("visits"):
        answered = answered.filter(pl.col("status").is_in(["ok", "not_modified"]))
    visits = answered.sort("page_id", "at").with_columns(
        before=pl.col("at").shift(1).over("page_id"),
        first=pl.col("page_id").is_first_distinct(),
    )
    seen = visits.filter(pl.col("first") | pl.col("changed").fill_null(False)).collect()
    chance = pl.Series(coins(seed, np.arange(len(seen), dtype=np.int64), 0))
    gap = (pl.col("at") - pl.col("before")).dt.total_microseconds().fill_null(0)
    back = (gap * chance).cast(pl.Int64).cast(pl.Duration("us"))
    number = pl.int_range(pl.len()).cast(pl.String)  # unlike any other, where no value was kept
    value = pl.coalesce("value", number) if "value" in seen.columns else number
    return seen.lazy().select("page_id", at=pl.col("at") - back, value=value)


def times_of(column: pl.Series) -> Times:
    """A column of UTC times as an array; NaT where there is none."""
    return column.dt.replace_time_zone(None).to_numpy().astype("datetime64[us]")


def read_pages(folder: Path) -> pl.DataFrame:
    """The pages of a log as they stand, ids as text, each once."""
    log = Log(folder)
    pages = _whole(log, "pages", log.scan("pages"))
    twice = pages.filter(pl.col("page_id").is_duplicated())
    if len(twice):
        first = twice["page_id"][0]
        raise InputError(f"{log.path('pages')}: column `page_id` has {first!r} more than once")
    return pages


def read_values(folder: Path) -> pl.DataFrame:
    """The truth of a log: `page_id`, `at` (µs, UTC) and `value` (text), by page and time.

    A value that is a number is taken as its text.
    """
    log = Log(folder)
    kept = log.scan("values", loose=("value",)).select("page_id", "at", "value")
    kind = log.schema("values")["value"]
    if kind.is_nested():
        raise InputError(f"{log.path('values')}: column `value` is {kind}, not {KINDS['text']}")
    values = _whole(log, "values", kept.with_columns(pl.col("value").cast(pl.String)))
    return values.sort("page_id", "at", maintain_order=True)


def _whole(log: Log, table: str, rows: pl.LazyFrame) -> pl.DataFrame:
    """All rows in memory, ids as text; ids and times must be in every one of them."""
    with reading(log.path(table)):
        frame = rows.with_columns(pl.col("page_id").cast(pl.String)).collect()
    for column in ("page_id", "at"):
        if column in frame.columns and frame[column].null_count():
            raise InputError(f"{log.path(table)}: column `{column}` has empty rows")
    return frame
