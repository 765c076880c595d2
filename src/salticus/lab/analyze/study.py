"""The whole study of a log: what it could do and, for each section, what it could not and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.tables import iso, spelt
from salticus.lab.analyze.demand import DemandSummary, demand_of
from salticus.lab.analyze.groups import GroupShares, groups_of
from salticus.lab.analyze.intervals import Intervals, intervals_of
from salticus.lab.analyze.pages import AnalyzedPages, known_pages
from salticus.lab.analyze.rates import Rates, rates_of
from salticus.lab.analyze.record import Downloads
from salticus.lab.analyze.shares import ChangeShare, shares_of
from salticus.lab.analyze.truth import texts_record, values_record
from salticus.lab.analyze.visited import visits_record
from salticus.lab.analyze.week import WeekShares, week_of
from salticus.types import moment

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that `salticus analyze` says, as plain numbers.

    `source` is the table that told what changed (`values`, `visits` or `texts`), `download` what
    counts as one. Without a source the sections on change are None, and `notes` say why.
    """

    log: dict[str, Any]
    pages: int
    source: str | None
    download: str | None
    step: str | None
    span: tuple[str, str] | None
    overall: ChangeShare | None
    week: WeekShares | None
    intervals: Intervals | None
    groups: dict[str, GroupShares] | None
    rates: Rates | None
    demand: DemandSummary
    notes: list[str]


def study(log: Log, tell: Tell = lambda doing: None) -> Analysis:
    """Study a log; `tell` hears what is being done."""
    import polars as pl

    try:
        return _study(log, tell)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{log.folder}: {error}; see `salticus log check`") from error


def _study(log: Log, tell: Tell) -> Analysis:
    tell("reading pages")
    known = known_pages(log)
    tell("following changes")
    record, reason = record_of(log, known)
    tell("counting")
    told = record is not None and len(record.pages) > 0
    if record is not None and not told:
        reason = [f"{record.source}.parquet shows no page of pages.parquet"]
    sections = _sections(record, known) if record is not None and told else _NOTHING
    tell("weighing demand")
    return Analysis(
        log=_about(log),
        pages=len(known),
        **sections,
        demand=demand_of(log, known, record if told else None),
        notes=(record.notes if record else []) + reason,
    )


_NOTHING: dict[str, Any] = dict.fromkeys(
    ("source", "download", "step", "span", "overall", "week", "intervals", "groups", "rates")
)


def record_of(log: Log, known: AnalyzedPages) -> tuple[Downloads | None, list[str]]:
    """What was downloaded and had changed, from the best table there is; or why there is none."""
    if log.has("values"):
        return values_record(log, known), []
    if log.has("visits"):
        return visits_record(log, known), []
    if not log.has("texts"):
        return None, [
            "nothing tells of changes: no values.parquet, visits.parquet or texts.parquet"
        ]
    if not log.has("crawls"):
        return None, [
            "texts.parquet without crawls.parquet does not tell when pages were downloaded"
        ]
    if not known.has("host"):
        return None, ["texts.parquet needs column `host` of pages.parquet to find a page's crawls"]
    return texts_record(log, known), []


def _sections(record: Downloads, known: AnalyzedPages) -> dict[str, Any]:
    return {
        "source": record.source,
        "download": record.means,
        "step": spelt(record.step),
        "span": _span(record),
        "overall": _overall(record),
        "week": week_of(record, known),
        "intervals": intervals_of(record),
        "groups": groups_of(record, known),
        "rates": rates_of(record),
    }


def _span(record: Downloads) -> tuple[str, str]:
    """First and last download."""
    first, last = record.pages["first"].min(), record.pages["last"].max()
    return tuple(iso(moment(np.datetime64(int(t), "us"))) for t in (first, last))  # type: ignore


def _overall(record: Downloads) -> ChangeShare:
    import polars as pl

    sums = pl.col("downloads", "changes").sum()
    return shares_of(record.pages.select(sums, name=pl.lit("all"), pages=pl.len()))[0]


def _about(log: Log) -> dict[str, Any]:
    return {**log.about.rest, "name": log.about.name}
