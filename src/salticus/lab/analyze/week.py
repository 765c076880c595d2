"""Probability of change by weekday and hour of the day, in local time (Han et al. 2019, Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from salticus.charts import kit
from salticus.charts.sheet import Sheet
from salticus.exchange.write import spelt
from salticus.lab.analyze.pages import AnalyzedPages
from salticus.lab.analyze.record import DAY, HOUR, Downloads
from salticus.lab.analyze.shares import PERCENT, ChangeShare, share_bars, share_tips, shares
from salticus.types import Ints

WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
HOURS = [f"{hour:02d}" for hour in range(24)]


@dataclass(frozen=True, slots=True)
class WeekShares:
    """Shares by weekday, by hour, and by both (Monday 00 to Sunday 23); empty where not known.

    `unzoned` is the share of pages whose local time is taken to be UTC.
    """

    weekdays: list[ChangeShare]
    hours: list[ChangeShare]
    cells: list[ChangeShare]
    unzoned: float
    notes: list[str]


def week_of(record: Downloads, known: AnalyzedPages) -> WeekShares:
    """Count the looks of every zone by its own clock."""
    if record.step > DAY:
        note = f"weekday and hour: times are known to {spelt(record.step)} only"
        return WeekShares([], [], [], known.unzoned, [note])
    local = record.step < DAY
    downloads, changes = _counts(record.looks, local=local)
    days = shares(WEEKDAYS, downloads.sum(axis=1), changes.sum(axis=1))
    if not local:
        notes = [
            "hours of the day are unknown, since times are known to the day only",
            "weekdays are those of the UTC date and `timezone` is not applied, because a time of "
            "which only the day is known is written as 00:00 UTC, whatever the page's clock said",
        ]
        return WeekShares(days, [], [], known.unzoned, notes)
    names, notes = [f"{day} {hour}" for day in WEEKDAYS for hour in HOURS], [*known.notes]
    if record.source == "visits":
        notes.append("the hour is that of the visit that found the change, which happened earlier")
    elif record.step > HOUR:
        by = f"up to {spelt(record.step)} from the change (`resolution`)"
        notes.append(f"the hour is that of the download, {by}")
    return WeekShares(
        weekdays=days,
        hours=shares(HOURS, downloads.sum(axis=0), changes.sum(axis=0)),
        cells=shares(names, downloads.ravel(), changes.ravel()),
        unzoned=known.unzoned,
        notes=notes,
    )


def _counts(looks: pl.DataFrame, *, local: bool) -> tuple[Ints, Ints]:
    """Downloads and changes, 7 weekdays × 24 hours."""
    downloads, changes = np.zeros((2, 7, 24), dtype=np.int64)
    for (zone,), part in looks.partition_by("zone", as_dict=True).items():
        utc = part["at"].cast(pl.Datetime("us", "UTC")).dt
        clock = utc.convert_time_zone(str(zone) if local else "UTC").dt
        cell = (clock.weekday().to_numpy() - 1, clock.hour().to_numpy())
        np.add.at(downloads, cell, part["downloads"].to_numpy())
        np.add.at(changes, cell, part["changes"].to_numpy())
    return downloads, changes


# ----------------------------------------------------------------------------------------- the page


def draw_week(sheet: Sheet, week: WeekShares) -> None:
    """The section on weekdays and hours."""
    sheet.heading("Days of the week and hours of the day")
    if week.weekdays:
        clock = "local time" if week.hours else "UTC date"
        sheet.chart(_bars(week.weekdays, f"day of the week ({clock})", 420))
    if week.hours:
        sheet.chart(_bars(week.hours, "hour of the day (local time)", kit.WIDTH))
        sheet.chart(_map(week))
    sheet.remarks(week.notes)


def _bars(shares: Sequence[ChangeShare], name: str, width: int) -> Any:
    """Bars in the order given."""
    names = [share.name for share in shares]
    x = kit.by("name:O", scale={"domain": names}, title=name, axis={"labelAngle": 0})
    base = kit.plot([s for s in shares if s.downloads], x=x, tooltip=share_tips(name))
    return share_bars(base, "y", 6).properties(width=width, height=240)


def _map(week: WeekShares) -> Any:
    """Weekday × hour, as a heat map; hours without downloads are left blank."""
    cells = [
        {**asdict(share), "weekday": share.name[:3], "hour": share.name[4:]}
        for share in week.cells
        if share.downloads
    ]
    hour, scale = "hour of the day (local time)", {"scheme": "viridis", "nice": True}
    legend = {"format": PERCENT, "gradientLength": 180, "tickCount": 5}
    chart = kit.plot(
        cells,
        x=kit.by("hour:O", title=hour, scale={"domain": HOURS}, axis={"labelAngle": 0}),
        y=kit.by("weekday:O", title=None, scale={"domain": WEEKDAYS}),
        color=kit.by("probability:Q", title="probability of change", scale=scale, legend=legend),
        tooltip=share_tips("when"),
    )
    return chart.mark_rect().properties(width=kit.WIDTH - 60, height=196)
