"""Figures 2 to 5 of Han et al. (2019): when, after how long, and where prices change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from salticus.exchange.folder import Log
from salticus.lab.analyze.groups import GroupShares, groups_of
from salticus.lab.analyze.intervals import Intervals, intervals_of
from salticus.lab.analyze.pages import known_pages
from salticus.lab.analyze.shares import ChangeShare
from salticus.lab.analyze.sources import record_of
from salticus.lab.analyze.week import WeekShares, week_of
from salticus.lab.studies.calibration.published import published
from salticus.lab.studies.calibration.statistics import patterns
from salticus.lab.studies.calibration.table import rows as calibrated
from salticus.lab.studies.han2019.published import CORRELATION, INFLATION
from salticus.lab.studies.paper import Drawing, Measured, PaperTable, Row, claim, compared
from salticus.types import Floats

_PRINTED = (1, 2, 3, 6, 12, 24, 36, 48, 60, 72, 96, 120, 144, 168)  # hours
_SHARE = (
    "Downloads that showed a change over downloads, every offer being downloaded every hour, with "
    "the interval of Wilson (1927). The paper draws these figures without printing them."
)


def pattern_tables(log: Log) -> tuple[list[PaperTable], list[str]]:
    """The tables of Figures 2 to 5, and what the log is too poor for."""
    known = known_pages(log)
    record, reasons = record_of(log, known)
    if record is None:
        return [], [f"Figures 2 to 5: {reason}" for reason in reasons]
    groups = groups_of(record, known)
    week, gaps = week_of(record, known), intervals_of(record)
    tables = [_figure_2(week), _figure_3(gaps)]
    for key, by in (("fig4", "country"), ("fig5", "category")):
        if groups[by].rows:
            tables.append(_grouped(key, groups[by]))
    if (rates := _rates(groups["country"])) is not None:
        tables.append(_inflation(*rates))
    missing = [note for by in ("country", "category") for note in groups[by].notes]
    return tables, [*week.notes, *gaps.notes, *missing]


def pattern_claims(log: Log) -> list[Row]:
    """What the paper says of these figures in words."""
    if not log.has("values") or not {"country", "category"} <= log.columns("pages"):
        return []
    table = calibrated(published("han2019"), patterns(log))
    return [
        claim(row.statistic, row.source, row.ok, f"{_said(row.ours)}; said: {_said(row.published)}")
        for row in table
    ]


def _said(value: float | tuple[str, ...]) -> str:
    return f"{value:.3g}" if isinstance(value, float) else ", ".join(value)


def _share(about: Row, share: ChangeShare) -> Row:
    return compared(about, Measured(share.probability, share.low, share.high))


def _figure_2(week: WeekShares) -> PaperTable:
    parts = {"weekday": week.weekdays, "hour": week.hours}
    drawn = {by: [_share({"when": each.name}, each) for each in part] for by, part in parts.items()}
    names = {"weekday": "day of the week", "hour": "hour of the day, local time"}
    return PaperTable(
        "fig2",
        "Figure 2: probability of change by day of the week and hour of the day",
        _SHARE,
        ("by", "when"),
        [{"by": by, **row} for by, rows in drawn.items() for row in rows],
        [
            Drawing("bars", "when:O", titles=(names[by], "probability of change"), points=rows)
            for by, rows in drawn.items()
            if rows
        ],
    )


def _figure_3(gaps: Intervals) -> PaperTable:
    points = [{"hours": row.hours, "share": row.share} for row in gaps.rows if row.hours > 0]
    share = {row.hours: row.share for row in gaps.rows}
    rows = [compared({"hours": hours}, share.get(float(hours), 0.0)) for hours in _PRINTED]
    titles = ("hours between two changes", "share of all changes")
    return PaperTable(
        "fig3",
        "Figure 3: time between two price changes",
        "The share of all changes that came so many hours after the one before. Both axes are "
        "logarithmic. The paper draws this figure without printing it.",
        ("hours",),
        rows if points else [],
        [Drawing("lines", "hours:Q", "share:Q", titles=titles, log=True, points=points)]
        if points
        else [],
    )


def _grouped(key: str, groups: GroupShares) -> PaperTable:
    ranked = sorted(groups.rows, key=lambda share: -(share.probability or 0.0))
    what = {"country": "Figure 4: countries", "category": "Figure 5: product categories"}
    titles = (groups.by, "probability of change")
    return PaperTable(
        key,
        f"{what[groups.by]}, by probability of change",
        _SHARE,
        (groups.by,),
        [_share({groups.by: share.name}, share) for share in ranked],
        [Drawing("bars", f"{groups.by}:N", titles=titles)],
    )


def _rates(groups: GroupShares) -> tuple[Floats, Floats] | None:
    """Change rates and inflation of the countries whose inflation is known; None of fewer than
    four, of which no correlation can be told."""
    some = [each for each in groups.rows if each.name in INFLATION and each.probability is not None]
    if len(some) < 4:
        return None
    rates = np.array([each.probability for each in some], dtype=np.float64)
    return rates, np.array([INFLATION[each.name] for each in some])


def _inflation(rates: Floats, inflation: Floats) -> PaperTable:
    found = correlation(rates, inflation)
    why = (
        "The paper's countries are not all known, and the market was given six rates by rank only."
    )
    about = {"figure": f"Pearson's r, {len(rates)} countries"}
    return PaperTable(
        "fig4_inflation",
        "Change rates of countries and their inflation (§3.3)",
        "With the interval of Fisher (1921).",
        ("figure",),
        [compared(about, found, CORRELATION, why=why)],
    )


def correlation(a: Floats, b: Floats) -> Measured:
    """Pearson's r and its 95 % interval by Fisher's z; four pairs or more.

    >>> x = np.arange(10.0)
    >>> [round(v, 2) for v in correlation(x, x + np.tile([2.0, -2.0], 5))]
    [0.79, 0.32, 0.95]
    """
    r = float(np.corrcoef(a, b)[0, 1])
    z, off = np.arctanh(np.clip(r, -0.999999, 0.999999)), 1.959964 / np.sqrt(len(a) - 3)
    return Measured(r, float(np.tanh(z - off)), float(np.tanh(z + off)))


def claims_of_correlation(tables: list[PaperTable]) -> Iterator[Row]:
    """Whether the countries' rates rise with inflation."""
    for row in (row for table in tables if table.key == "fig4_inflation" for row in table.rows):
        inside = row["low"] <= CORRELATION <= row["high"]
        told = f"{row['ours']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
        yield claim("country rates go with inflation, r = .4629", "§3.3", inside, told)
