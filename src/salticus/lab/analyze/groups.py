"""Probability of change by country, category, merchant, stratum, kind (Han et al. 2019, 3.3-4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from salticus.charts import kit
from salticus.charts.sheet import Sheet
from salticus.lab.analyze.pages import GROUPS, AnalyzedPages
from salticus.lab.analyze.record import Downloads
from salticus.lab.analyze.shares import ChangeShare, percent, share_bars, share_tips, shares_of

ENOUGH = 1000
"""Downloads that a group needs to be named among the highest and lowest."""

_SHOWN = {"merchant": 30}
_MOST = 300  # groups of any other sort
_EXTREMES = 10
_BARS = 30
_PLURALS = {
    "country": "countries",
    "category": "top-level categories",
    "merchant": "merchants",
    "stratum": "strata",
    "kind": "kinds",
}


@dataclass(frozen=True, slots=True)
class GroupShares:
    """Shares of the groups by one column, most downloads first; UNKNOWN stands apart.

    `groups` is how many there are in all, `rows` the largest of them, `highest` and `lowest` those
    of highest and lowest probability among the groups with at least ENOUGH downloads.
    """

    by: str
    groups: int
    rows: list[ChangeShare]
    highest: list[ChangeShare]
    lowest: list[ChangeShare]
    unknown: ChangeShare | None
    notes: list[str]


def groups_of(record: Downloads, known: AnalyzedPages) -> dict[str, GroupShares]:
    """The shares by every column that pages may be grouped by."""
    return {by: _grouped(record, known, by) for by in GROUPS}


def _grouped(record: Downloads, known: AnalyzedPages, by: str) -> GroupShares:
    if not known.has(by):
        return GroupShares(by, 0, [], [], [], None, [f"pages.parquet has no column `{by}`"])
    joined = record.pages.join(known.frame.select("row", name=by), on="row")
    total = joined.group_by("name").agg(
        pl.col("downloads").sum(), pl.col("changes").sum(), pages=pl.len()
    )
    named = total.drop_nulls("name").sort(["downloads", "name"], descending=[True, False])
    nobody = total.filter(pl.col("name").is_null()).with_columns(name=pl.lit("unknown"))
    shown = _SHOWN.get(by, _MOST)
    large = named.filter(pl.col("downloads") >= ENOUGH).with_columns(
        p=pl.col("changes") / pl.col("downloads")
    )
    return GroupShares(
        by=by,
        groups=len(named),
        rows=shares_of(named.head(shown)),
        highest=shares_of(large.sort(["p", "name"], descending=[True, False]).head(_EXTREMES)),
        lowest=shares_of(large.sort(["p", "name"]).head(_EXTREMES)),
        unknown=next(iter(shares_of(nobody)), None),
        notes=_notes(by, named, nobody, shown),
    )


def _notes(by: str, named: pl.DataFrame, nobody: pl.DataFrame, shown: int) -> list[str]:
    notes = []
    if named.is_empty():
        notes.append(f"column `{by}` of pages.parquet is empty")
    elif len(nobody):
        share = nobody["pages"][0] / (named["pages"].sum() + nobody["pages"][0])
        notes.append(
            f"column `{by}` of pages.parquet is empty for {percent(share)} of the pages seen"
        )
    if len(named) > shown:
        notes.append(f"of {len(named):,} groups the {shown} with most downloads are listed")
    return notes


# ----------------------------------------------------------------------------------------- the page


def draw_groups(sheet: Sheet, groups: GroupShares) -> None:
    """The section on the groups by one column."""
    sheet.heading(f"By {groups.by}")
    if groups.groups == 1:
        only = groups.rows[0]
        sheet.words(f"There is one {groups.by} only: {only.name}, {only.told()}.")
    elif groups.rows:
        shown = groups.rows[:_BARS]
        most = f"the {_BARS} with most downloads of " if groups.groups > _BARS else ""
        caption = f"{most}{groups.groups:,} {_PLURALS[groups.by]}".capitalize()
        sheet.chart(_bars(shown, groups.by), caption)
    if groups.groups > _BARS:
        _extremes(sheet, groups)
    if groups.unknown is not None and groups.rows:
        sheet.words(f"Pages without a known {groups.by}: {groups.unknown.told()}.")
    sheet.remarks(groups.notes)


def _extremes(sheet: Sheet, groups: GroupShares) -> None:
    if not groups.highest:
        sheet.words(f"No {groups.by} has {ENOUGH:,} downloads, so none is named highest or lowest.")
        return
    header = (groups.by, "probability", "95 % from", "to", "changes", "downloads", "pages")
    for word, rows in (("Highest", groups.highest), ("Lowest", groups.lowest)):
        sheet.heading(f"{word}, of those with at least {ENOUGH:,} downloads", rank=3)
        cells = [
            (s.name, *map(percent, (s.probability, s.low, s.high)), s.changes, s.downloads, s.pages)
            for s in rows
        ]
        sheet.table(header, cells)


def _bars(shares: Sequence[ChangeShare], name: str) -> Any:
    """Horizontal bars, highest first."""
    ranked = sorted(shares, key=lambda s: (-(s.probability or 0.0), s.name))
    y = kit.by("name:N", sort=[s.name for s in ranked], title=None)
    base = kit.plot(ranked, y=y, tooltip=[*share_tips(name), kit.tip("pages", ",")])
    return share_bars(base, "x", 7).properties(width=kit.WIDTH - 100, height={"step": 20})
