"""For how long people want new pages: by age, by source, and in patterns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from salticus.charts import kit
from salticus.charts.sheet import Sheet
from salticus.exchange.folder import Log
from salticus.lab.analyze.demand import demand_rows
from salticus.lab.analyze.links import names_of, read_links
from salticus.lab.analyze.pages import AnalyzedPages
from salticus.lab.analyze.shares import percent
from salticus.predict.interest import Prior, ages, interest
from salticus.types import Floats, Ints
from salticus.types.dates import DAY_US

PATTERNS, DAYS = 6, 14  # as in Lefortier et al. 2013, §3.1
_LASTING = 0.1  # of the peak, on average in the second week: above, interest is not ephemeral
_FINEST = 1 / 72  # days: 20 minutes
_SAMPLE = 50_000
_SOURCES = 20


@dataclass(frozen=True, slots=True)
class AgePoint:
    """Clicks or impressions that a page has had on average by that age, and by the fitted curve."""

    what: str
    hours: float
    had: float
    fitted: float


@dataclass(frozen=True, slots=True)
class Pattern:
    """The course of interest that a share of the pages has: 14 daily values, of a peak of 1."""

    share: float
    days: list[float]
    ephemeral: bool


@dataclass(frozen=True, slots=True)
class SourceInterest:
    """A source: the pages that it showed first, how many clicks each gets in all, how long until
    half of them have come, and the relative standard error of the clicks: pages are unlike each
    other. None if there is only one."""

    source: str
    pages: int
    profit: float
    half_life_hours: float
    error: float | None


@dataclass(frozen=True, slots=True)
class InterestSummary:
    """Clicks on new pages by age. `ephemeral` is the share of pages whose pattern dies away; None
    if too few were watched for 14 days."""

    pages: int
    profit: float
    half_life_hours: float
    curve: list[AgePoint]
    ephemeral: float | None
    patterns: list[Pattern]
    sources: list[SourceInterest]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class NewPages:
    """Pages that sources showed, and what people did: of each page the row, the row of the source
    that showed it first, and for how many days it was watched; of each count the place of its page,
    its age in days, and the clicks and impressions."""

    row: Ints
    source: Ints
    watched: Floats
    place: Ints
    age: Floats
    counts: dict[str, Floats]
    bucket: float


def interest_of(log: Log, known: AnalyzedPages) -> InterestSummary | None:
    """What the log tells of interest in new pages; None without links, or without demand."""
    if not (log.has("links") and log.has("demand")):
        return None
    pages = _new_pages(log, known)
    if not len(pages.row) or not pages.counts["clicks"].sum():
        return None
    edges = ages(max(_FINEST, pages.bucket))
    sources, of_page = np.unique(pages.source, return_inverse=True)
    clicks, seen = _by_age(pages, "clicks", of_page, edges)
    told = interest(clicks, seen, edges, Prior(1.0, 1.0))
    whole = interest(clicks.sum(axis=0)[None], seen.sum(axis=0)[None], edges, Prior(1.0, 1.0))
    patterns, notes = _patterns(pages)
    many, named = np.bincount(of_page), names_of(log, known)
    had = _sums(pages.place, pages.counts["clicks"], len(pages.row))
    most = np.lexsort((sources, -clicks.sum(axis=1)))[:_SOURCES].tolist()
    return InterestSummary(
        pages=len(pages.row),
        profit=float(whole.profit[0]),
        half_life_hours=_half_life(whole.decay[0]),
        curve=[point for what in pages.counts for point in _curve(pages, what, edges)],
        ephemeral=sum(p.share for p in patterns if p.ephemeral) if patterns else None,
        patterns=patterns,
        sources=[
            SourceInterest(
                source=named[sources[k]],
                pages=int(many[k]),
                profit=float(told.profit[k]),
                half_life_hours=_half_life(told.decay[k]),
                error=_error(had[of_page == k]),
            )
            for k in most
        ],
        notes=notes,
    )


def _error(clicks: Floats) -> float | None:
    """By how much the mean clicks of pages may be off, relative to it: one standard error."""
    if len(clicks) < 2 or not clicks.any():
        return None
    return float(clicks.std(ddof=1) / math.sqrt(len(clicks)) / clicks.mean())


def _half_life(decay: float) -> float:
    return 24.0 * math.log(2.0) / float(decay)


def _new_pages(log: Log, known: AnalyzedPages) -> NewPages:
    links, _ = read_links(log, known)
    born = links.group_by("page", maintain_order=True).first().sort("page")
    rows = demand_rows(log, known).collect()
    bucket = log.about.demand_bucket or log.about.resolution
    length = int(bucket.total_seconds() * 1e6) if bucket else 0
    last = (rows["at"].max() or 0) + length  # type: ignore[operator]
    births = born.select(row="page", born="appeared").with_row_index("place")
    found = rows.join(births, on="row").filter(pl.col("at") + length > pl.col("born"))
    middle = found["at"].to_numpy() + length // 2 - found["born"].to_numpy()
    names = [name for name in ("clicks", "impressions") if name in rows.columns]
    return NewPages(
        row=born["page"].to_numpy(),
        source=born["source"].to_numpy(),
        watched=np.maximum(last - born["appeared"].to_numpy(), 0) / DAY_US,
        place=found["place"].cast(pl.Int64).to_numpy(),
        age=np.maximum(middle, 0) / DAY_US,
        counts={name: found[name].cast(pl.Float64).to_numpy() for name in names},
        bucket=length / DAY_US,
    )


def _by_age(pages: NewPages, what: str, group: Ints, edges: Floats) -> tuple[Floats, Floats]:
    """Counts in each bin of age, and pages watched through it; a row a group."""
    groups, bins = int(group.max()) + 1, len(edges) - 1
    place = np.searchsorted(edges, pages.age, side="right") - 1
    young = place < bins
    cell = group[pages.place[young]] * bins + place[young]
    had = _sums(cell, pages.counts[what][young], groups * bins)
    parts = [
        _sums(group, np.clip((pages.watched - begin) / (end - begin), 0.0, 1.0), groups)
        for begin, end in zip(edges[:-1], edges[1:], strict=True)
    ]
    return had.reshape(groups, bins), np.stack(parts, axis=1)


def _sums(group: Ints, values: Floats, groups: int) -> Floats:
    return np.asarray(np.bincount(group, weights=values, minlength=groups), dtype=np.float64)


def _curve(pages: NewPages, what: str, edges: Floats) -> list[AgePoint]:
    """Of all pages together: the mean so far at the end of each bin, pages too young left out."""
    had, seen = _by_age(pages, what, np.zeros(len(pages.row), dtype=np.int64), edges)
    if not had.sum():
        return []
    fit = interest(had, seen, edges, Prior(1.0, 1.0))
    so_far = np.cumsum(had[0] / np.maximum(seen[0], 1e-9))
    fitted = fit.profit[0] * -np.expm1(-fit.decay[0] * edges[1:])
    enough = seen[0] >= 1.0
    return [
        AgePoint(what, float(24.0 * age), float(mean), float(curve))
        for age, mean, curve, some in zip(edges[1:], so_far, fitted, enough, strict=True)
        if some
    ]


def _patterns(pages: NewPages) -> tuple[list[Pattern], list[str]]:
    """The 14 daily values of each page, the highest of them 1, in six groups by k-means; the
    commonest first."""
    from sklearn.cluster import KMeans

    day = pages.age.astype(np.int64)
    early = day < DAYS
    cell = pages.place[early] * DAYS + day[early]
    daily = _sums(cell, pages.counts["clicks"][early], len(pages.row) * DAYS).reshape(-1, DAYS)
    daily = daily[(pages.watched >= DAYS) & (daily.max(axis=1) > 0)]
    if len(daily) < 10 * PATTERNS:
        return [], [f"patterns: only {len(daily)} pages were clicked and watched for {DAYS} days"]
    some = np.random.default_rng(0).permutation(len(daily))[:_SAMPLE]
    scaled = daily[some] / daily[some].max(axis=1, keepdims=True)
    means = KMeans(PATTERNS, n_init=4, random_state=0).fit(scaled)
    share = np.bincount(means.labels_, minlength=PATTERNS) / len(scaled)
    return [
        Pattern(
            float(share[k]),
            [round(float(value), 6) for value in means.cluster_centers_[k]],
            bool(means.cluster_centers_[k][DAYS // 2 :].mean() <= _LASTING),
        )
        for k in np.argsort(-share, kind="stable").tolist()
    ], []


# ----------------------------------------------------------------------------------------- the page


def draw_interest(sheet: Sheet, found: InterestSummary) -> None:
    """The section on interest in new pages."""
    sheet.heading("Interest in new pages")
    words = (
        f"A new page gets {found.profit:.3g} clicks on average, half of them within "
        f"{found.half_life_hours:.3g} h, if they come as P(1 − e^(−mt)) (Lefortier et al. 2013)."
    )
    if found.ephemeral is not None:
        words += f" {percent(found.ephemeral)} of the pages are ephemeral: in the second week "
        words += "their pattern has fallen to a tenth of its peak or less."
    sheet.words(words)
    for what in dict.fromkeys(point.what for point in found.curve):
        sheet.chart(_age_curve([p for p in found.curve if p.what == what], what))
    if found.patterns:
        sheet.chart(_pattern_lines(found.patterns))
    header = ("source", "pages", "clicks a page", "half of them within", "± ")
    rows = [
        (
            s.source,
            f"{s.pages:,}",
            f"{s.profit:.3g}",
            f"{s.half_life_hours:.3g} h",
            percent(s.error),
        )
        for s in found.sources
    ]
    sheet.table(header, rows)
    sheet.remarks(found.notes)


def _age_curve(points: Sequence[AgePoint], what: str) -> Any:
    names = {"had": "as counted", "fitted": "P(1 − e^(−mt))"}
    rows = [
        {"days": point.hours / 24, "mean": asdict(point)[name], "curve": words}
        for point in points
        for name, words in names.items()
    ]
    return kit.lines(
        rows,
        x=kit.by("days:Q", title="age of the page, days"),
        y=kit.by("mean:Q", title=f"{what} so far, a page"),
        color=kit.colours("curve", list(names.values()), title=None),
        tooltip=[kit.tip("days", ".3~g"), kit.tip("mean", ".3~g", what)],
    ).properties(width=560, height=240)


def _pattern_lines(patterns: Sequence[Pattern]) -> Any:
    names = [
        f"{percent(p.share)}{'' if p.ephemeral else ', lasting'} ({n})"
        for n, p in enumerate(patterns, 1)
    ]
    rows = [
        {"day": day, "interest": value, "pattern": name}
        for name, pattern in zip(names, patterns, strict=True)
        for day, value in enumerate(pattern.days, 1)
    ]
    return kit.lines(
        rows,
        x=kit.by("day:Q", title="day after the page appeared"),
        y=kit.by("interest:Q", title="clicks, of those on its best day", axis={"format": "~%"}),
        color=kit.colours("pattern", names, title="share of the pages"),
        tooltip=[kit.tip("day", "d"), kit.tip("interest", ".1~%")],
    ).properties(width=560, height=260)
