"""The pages and visits of a log as a store takes them: in order of time, a batch at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import lru_cache
from typing import Any

import polars as pl

from salticus.errors import InputError
from salticus.exchange.check import check
from salticus.exchange.folder import Log, reading
from salticus.exchange.rules import Violation
from salticus.types import ANSWERED, PURPOSE, STATUS, Ints, NewPage, Observation, Value

DIGESTS = "digests"
"""`values_are` in log.json: values that only name contents, and equal none that is fetched."""

DEMAND_DAYS = 30  # the last ones, over which clicks are averaged
FIELDS = ("merchant", "brand", "category", "condition", "country", "language", "title")

_BATCH = 10_000  # rows that are Python objects at a time
_SHOWN = 10  # violations that are named
_PRICE = r"^\d+(\.\d+)?( [A-Z]{3})?( [A-Za-z]+)?$"
_DAY = timedelta(days=1)


class ImportedHistory:
    """What a log knows that a store can hold.

    `digest` names a value as visits do. Without `values` (always so if they are digests) the visits
    come without them: whatever a live visit finds is then first sight, not a change.
    """

    def __init__(self, log: Log, digest: Callable[[str], str], *, values: bool = True) -> None:
        self.log = log
        self.digest = lru_cache(maxsize=100_000)(digest)
        self.values = values and log.about.rest.get("values_are") != DIGESTS

    @property
    def most(self) -> int:
        return self.log.rows("visits")

    def check(self) -> None:
        """InputError with all that keeps the log out of a store."""
        found = [each for each in check(self.log.folder) if each.level == "violation"]
        found = found or list(_unfit(self.log))
        if found:
            lines = [str(each) for each in found[:_SHOWN]]
            more = [f"… and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
            head = f"{self.log.folder}: nothing was imported:"
            raise InputError("\n  ".join([head, *lines, *more]))

    def pages(self) -> Iterator[list[NewPage]]:
        """The pages, in the order of the file."""
        wanted = _pages(self.log).select("url", "kind", "tags", "max_interval", "demand")
        for batch in _batches(self.log, "pages", wanted):
            yield [
                NewPage(url, kind=kind, tags=tuple(tags or ()), max_interval=limit, demand=demand)
                for url, kind, tags, limit, demand in batch.iter_rows()
            ]

    def visits(self, ids: Ints) -> Iterator[list[Observation]]:
        """The visits in order of time, given the store's ids of the pages in their order."""
        pages = _pages(self.log).select("page_id", "url", "kind", *FIELDS).collect()
        _check_one_page_a_url(self.log, pages, ids)
        if not self.log.has("visits"):
            return
        for batch in _batches(self.log, "visits", _history(self.log, pages, self.values)):
            told = pages.select(FIELDS)[batch.filter("last")["row"]]
            fields = ({k: v for k, v in row.items() if v} for row in told.iter_rows(named=True))
            yield [self._seen(ids, row, fields) for row in batch.iter_rows()]

    def _seen(
        self, ids: Ints, row: tuple[Any, ...], fields: Iterator[dict[str, str]]
    ) -> Observation:
        place, propensity, held, value, kind, last, *told = row
        at, purpose, status, changed, since, age, code, fault = told
        return Observation(
            visit=0,
            page=int(ids[place]),
            at=at,
            purpose=purpose,
            propensity=math.nan if propensity is None else propensity,
            status=status,
            code=code or 0,
            changed=changed,
            since=since,
            age_s=age,
            digest=None if held is None else self.digest(held),
            value=None if value is None else Value(kind, value, next(fields) if last else {}),
            fault=fault,
        )


def _batches(log: Log, table: str, rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    with reading(log.path(table)):
        yield from rows.collect(engine="streaming").iter_slices(_BATCH)


def _filled(log: Log, table: str, rows: pl.LazyFrame, columns: tuple[str, ...]) -> pl.LazyFrame:
    """The rows with all these columns, empty ones where the log has none."""
    return rows.with_columns(
        pl.lit(None, dtype=pl.List(pl.String) if name == "tags" else None).alias(name)
        for name in columns
        if name not in log.columns(table)
    )


def _pages(log: Log) -> pl.LazyFrame:
    settings = ("max_interval", "demand")
    pages = _filled(log, "pages", log.scan("pages", "url"), ("kind", "tags", *settings, *FIELDS))
    return _with_clicks(log, pages.with_columns(pl.col(settings).cast(pl.Float64, strict=False)))


def _with_clicks(log: Log, pages: pl.LazyFrame) -> pl.LazyFrame:
    """Demand from clicks, where the log has them: the mean of the last days, 0 for a page that had
    none."""
    if not log.rows("demand"):
        return pages
    at, bucket = pl.col("at"), log.about.demand_bucket or timedelta(0)
    clicks = log.scan("demand")
    first, last = clicks.select(first=at.min(), last=at.max()).collect().row(0)
    days = min(DEMAND_DAYS * _DAY, max(last + bucket - first, _DAY))
    recent = clicks.filter(at >= last + bucket - days).group_by("page_id")
    means = recent.agg(clicks=pl.col("clicks").sum() / (days / _DAY))
    joined = pages.join(means, on="page_id", how="left", maintain_order="left")
    return joined.with_columns(demand=pl.col("clicks").fill_null(0.0)).drop("clicks")


def _check_one_page_a_url(log: Log, pages: pl.DataFrame, ids: Ints) -> None:
    twice = pages.filter(pl.Series(ids, dtype=pl.Int64).is_duplicated())
    if len(twice):
        raise InputError(
            f"{log.path('pages')}: column `url`: {len(twice)} pages share one with another, the "
            f"first is {twice['page_id'][0]!r} ({twice['url'][0]}); keep one row a page"
        )


def _history(log: Log, pages: pl.DataFrame, values: bool) -> pl.LazyFrame:
    """The visits in order of time, with what each of them found and what had been held before."""
    known = pages.lazy().with_row_index("row").select("page_id", "row", "kind")
    told = ("purpose", "propensity", "status", "changed", "value", "age_s", "code", "fault")
    visits = _filled(log, "visits", log.scan("visits"), told).select("page_id", "at", *told)
    visits = visits.join(known, on="page_id").sort("at", maintain_order=True)
    status, ok = pl.col("status").fill_null("ok"), pl.col("status").fill_null("ok") == "ok"
    answered = status.is_in([each.label for each in ANSWERED])
    visits = visits.with_columns(
        status=status,
        purpose=pl.col("purpose").fill_null("policy"),
        found=pl.when(ok).then("value").cast(pl.String),
        answer=pl.when(answered).then("at"),
    ).with_columns(
        held=pl.col("found").forward_fill().shift(1).over("row"),
        answered=pl.col("answer").forward_fill().shift(1).over("row"),
    )
    return _judged(visits, derive="changed" not in log.columns("visits"), values=values)


def _judged(visits: pl.LazyFrame, *, derive: bool, values: bool) -> pl.LazyFrame:
    """What is stored of each visit. A page of which a change is known, but not to what, keeps no
    values: the last one known is not what it holds."""
    found, held, answer = pl.col("found"), pl.col("held"), pl.col("answer")
    new = found.is_not_null() & found.ne_missing(held)
    judged = pl.when(answer.is_not_null() & held.is_not_null()).then(new)
    visits = visits.with_columns(
        new=new, changed=judged if derive else pl.col("changed").cast(pl.Boolean)
    )
    blind = pl.col("changed") & (pl.col("status") == "ok") & found.is_null()
    kept = pl.lit(values) & ~blind.fill_null(value=False).any().over("row")
    stored = pl.col("new") & pl.col("kept")
    place = pl.when(stored).then("n")
    compared = held.is_not_null() | pl.col("changed").is_not_null()
    last = (place == place.max().over("row")).fill_null(value=False)
    seen = pl.when(answer.is_not_null() & pl.col("kept")).then(pl.coalesce(found, held))
    return (
        visits.with_row_index("n")
        .with_columns(kept=kept)
        .select(
            "row",
            pl.col("propensity").cast(pl.Float64),
            seen.alias("seen"),
            pl.when(stored).then(found).alias("value"),
            pl.coalesce("kind", _kind(found)).alias("kind"),
            last.alias("last"),
            pl.col("at").dt.epoch("us"),
            "purpose",
            "status",
            "changed",
            pl.when(compared).then("answered").dt.epoch("us").alias("since"),
            pl.col("age_s").cast(pl.Float64),
            pl.col("code").cast(pl.Int64, strict=False),  # columns of ours: others may mean
            pl.col("fault").cast(pl.String, strict=False),  # something else by these names
        )
    )


def _kind(value: pl.Expr) -> pl.Expr:
    """What sort of page has such a value, where the log does not say."""
    return pl.when(value.str.contains(_PRICE)).then(pl.lit("offer")).otherwise(pl.lit("page"))


def _unfit(log: Log) -> Iterator[Violation]:
    """What a sound log may have and a store may not."""
    if "url" not in log.columns("pages"):
        yield Violation("pages.parquet", "url", "missing", "a page is visited by its URL")
        return
    url, limit = pl.col("url"), pl.col("max_interval")
    yield from _where(log, "pages", "url", url.is_null(), "empty; a page is visited by its URL")
    if "max_interval" in log.columns("pages"):
        wrong = ~(limit.cast(pl.Float64, strict=False) > 0).fill_null(value=False)
        odd = wrong & limit.is_not_null()
        yield from _where(log, "pages", "max_interval", odd, "not a number of days; correct it")
    if not log.has("visits"):
        return
    for column, labels in (("status", STATUS), ("purpose", PURPOSE)):
        if column in log.columns("visits"):
            odd = pl.col(column).is_not_null() & ~pl.col(column).is_in(list(labels))
            what = f"not one of {', '.join(labels)}; mend it"
            yield from _where(log, "visits", column, odd, what)
    again = ~pl.struct("page_id", "at").is_first_distinct()
    yield from _where(log, "visits", "at", again, "the page has a visit then; keep one of them")


def _where(log: Log, table: str, column: str, wrong: pl.Expr, what: str) -> Iterator[Violation]:
    rows = log.scan(table).with_row_index("_row", offset=1).filter(wrong)
    count, first = rows.select(pl.len(), pl.col("_row").min()).collect(engine="streaming").row(0)
    problem, _, remedy = what.partition("; ")
    if count:
        yield Violation(f"{table}.parquet", column, problem, remedy, row=first, count=count)
