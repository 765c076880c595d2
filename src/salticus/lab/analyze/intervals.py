"""How long pages stay as they are between two changes (Han et al. 2019, Fig. 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log10
from typing import Any

import numpy as np

from salticus.charts import kit
from salticus.charts.sheet import Sheet
from salticus.lab.analyze.record import DAY, HOUR, MICRO, Downloads
from salticus.lab.analyze.shares import percent
from salticus.types import Ints

_PEAKS = 12
_MARKS = (24.0, 48.0, 168.0)  # hours
_TICKS = {
    "hours": (1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 720, 2160, 8760),
    "days": (1, 2, 3, 7, 14, 30, 60, 120, 240, 365, 730),
}


@dataclass(frozen=True, slots=True)
class Interval:
    """Changes that came so many hours after the one before (or after the first observation)."""

    hours: float
    changes: int
    share: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """All intervals that occur, ascending; their shares sum to 1. `peaks` are local ones.

    Intervals are whole numbers of `unit_hours`, one at least.
    """

    unit_hours: float
    rows: list[Interval]
    peaks: list[Interval]
    within_day: float | None
    median_hours: float | None
    notes: list[str]


def intervals_of(record: Downloads) -> Intervals:
    """Share of all changes by the time since the change before.

    A page's first change counts from its first observation, which is no change itself. The paper's
    example: A changes after 1 h and 3 h, B after 1 h: 1 h has 2/3 of the changes, 2 h 1/3.
    """
    gaps = record.changes["gap"].to_numpy()
    notes = ["intervals still open at the end of the log are not counted, so long ones are rare"]
    if record.source != "values":
        notes.append("intervals are those between downloads that found a change, not the true ones")
    unit = record.unit / HOUR
    if not len(gaps):
        return Intervals(unit, [], [], None, None, [*notes, "there are no changes"])
    counts = np.bincount(np.maximum(1, np.rint(gaps / (record.unit // MICRO)).astype(np.int64)))
    total = len(gaps)
    found = {k: int(counts[k]) for k in np.flatnonzero(counts).tolist()}
    rows = {k: Interval(float(k * unit), c, c / total) for k, c in found.items()}
    tops = peaks(counts, reach=10 if record.unit < DAY else 3)
    middle = int(np.searchsorted(np.cumsum(counts), total / 2))
    day = float(counts[: int(24 / unit) + 1].sum() / total)
    return Intervals(
        unit, list(rows.values()), [rows[k] for k in tops.tolist()], day, middle * unit, notes
    )


def peaks(counts: Ints, *, reach: int) -> Ints:
    """The largest local peaks: the most of all within a sixth (2 to `reach` units) on both sides,
    and more than chance would add to the neighbours' median (25 % and four standard deviations).

    >>> counts = np.array([0, 90, 60, 50, 45, 40, 36, 120, 30, 28, 26, 25, 24, 23])
    >>> peaks(counts, reach=10)
    array([7])
    """
    inner = np.arange(2, len(counts) - 1)
    higher = (counts[inner] > counts[inner - 1]) & (counts[inner] > counts[inner + 1])
    found = np.array([k for k in inner[higher] if _stands_out(counts, k, reach)], dtype=np.int64)
    largest = np.argsort(-counts[found], kind="stable")[:_PEAKS]
    return np.sort(found[largest])


def _stands_out(counts: Ints, k: int, reach: int) -> bool:
    width = min(max(2, k // 6), reach)
    around = np.concatenate([counts[max(1, k - width) : k], counts[k + 1 : k + 1 + width]])
    usual = float(np.median(around))
    return bool(counts[k] > max(around.max(), 1.25 * usual + 4 * np.sqrt(usual + 1)))


def spoken(hours: float) -> str:
    """An interval in the unit that people would use.

    >>> spoken(24.0), spoken(36.0), spoken(96.0), spoken(50.0)
    ('24 h', '36 h', '4 d', '50 h')
    """
    whole_days = hours > 48 and hours % 24 == 0
    return f"{hours / 24:g} d" if whole_days else f"{hours:g} h"


# ----------------------------------------------------------------------------------------- the page


def draw_intervals(sheet: Sheet, intervals: Intervals) -> None:
    """The section on the time between changes."""
    sheet.heading("Time between two changes")
    if intervals.rows:
        half = spoken(intervals.median_hours or 0.0)
        found = ", ".join(f"{spoken(p.hours)} ({percent(p.share)})" for p in intervals.peaks)
        sheet.words(
            f"Half of all changes come within {half} of the one before, "
            f"{percent(intervals.within_day)} within 24 h. Local peaks: {found or 'none'}."
        )
        sheet.chart(
            _plot(intervals),
            "Blue: all intervals that occur. Orange: local peaks. Dashed: a day, two days, a week.",
        )
    sheet.remarks(intervals.notes)


def _plot(intervals: Intervals) -> Any:
    """Share of changes by interval, both axes logarithmic, with its peaks and days marked."""
    unit, per = ("hours", 1.0) if intervals.unit_hours < 24 else ("days", 24.0)
    longest = intervals.rows[-1].hours
    ticks = [t for t in _TICKS[unit] if t * per <= longest * 1.05]
    x = kit.by(
        "x:Q",
        title=f"time since the change before, or since the first observation ({unit}, log scale)",
        scale={**kit.LOG, "domain": _range(intervals, per), "nice": False},
        axis={"values": ticks, "format": "~g"},
    )
    axis = kit.log_axis((-11, 1), form="~%")
    y = kit.by("share:Q", title="share of all changes (log scale)", scale=kit.LOG, axis=axis)
    tips = [kit.by("label:N", title="interval"), kit.tip("share", ".4~%"), kit.tip("changes", ",")]
    dots = kit.plot(_points(intervals.rows, per), x=x, y=y, tooltip=tips)
    tops = kit.plot(_named(intervals, per), x=x, y=y, tooltip=tips)
    layers = kit.layered(
        *_days(per, longest),
        dots.mark_line(color=kit.BLUE, opacity=0.35, strokeWidth=1),
        dots.mark_point(color=kit.BLUE, filled=True, size=22, opacity=0.8),
        tops.mark_point(color=kit.ORANGE, filled=True, size=60, opacity=1),
        tops.mark_text(dy=-11, fontSize=11, color=kit.ORANGE).encode(text="name:N"),
    )
    return layers.properties(width=kit.WIDTH, height=380)


def _range(intervals: Intervals, per: float) -> list[float]:
    """From the shortest interval to the longest, with a little room on both sides."""
    ends = intervals.rows[0].hours / per, intervals.rows[-1].hours / per
    room = (ends[1] / ends[0]) ** 0.02 * 1.05
    return [ends[0] / room, ends[1] * room]


def _points(rows: Sequence[Interval], per: float) -> list[dict[str, Any]]:
    return [{**asdict(row), "x": row.hours / per, "label": spoken(row.hours)} for row in rows]


def _named(intervals: Intervals, per: float) -> list[dict[str, Any]]:
    """The peaks, with names on those that have room for one: the highest first."""
    room = 0.035 * log10(intervals.rows[-1].hours / intervals.rows[0].hours)
    points = _points(intervals.peaks, per)
    named: list[float] = []
    for point in sorted(points, key=lambda p: -p["share"]):
        free = all(abs(log10(point["x"] / x)) > room for x in named)
        point["name"] = point["label"] if free else ""
        named += [point["x"]] * free
    return points


def _days(per: float, longest: float) -> list[Any]:
    """Dashed lines at a day, two days and a week."""
    marks = [{"x": h / per, "label": spoken(h)} for h in _MARKS if h <= longest]
    if not marks:
        return []
    base = kit.plot(marks, x="x:Q")
    words = base.mark_text(color=kit.GREY, dy=-8, fontSize=12)
    lines = base.mark_rule(color=kit.GREY, strokeDash=[4, 4])
    return [lines, words.encode(text="label:N", y={"value": 0})]
