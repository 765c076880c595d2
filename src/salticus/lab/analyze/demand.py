"""How clicks and impressions spread over pages and days, and over pages that change."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from salticus.charts import kit
from salticus.charts.sheet import Sheet
from salticus.exchange.folder import Log
from salticus.lab.analyze.pages import AnalyzedPages, key
from salticus.lab.analyze.rates import top
from salticus.lab.analyze.record import Downloads
from salticus.lab.analyze.shares import percent
from salticus.types import Floats, Ints
from salticus.types.dates import DAY_US

_POINTS = 200


@dataclass(frozen=True, slots=True)
class Decile:
    """Pages by their clicks: 0 are those without, 1 to 10 tenths of the others, least first."""

    decile: int
    pages: int
    clicks: int
    changes: int
    page_days: float
    rate: float | None


@dataclass(frozen=True, slots=True)
class DemandSummary:
    """Concentration of clicks over all pages, page-days with a click, clicks against change rates.

    `lorenz` are points (share of pages, share of clicks), least clicked first. `click_days` and
    `impression_days` are shares of page-days with at least one. `rank_correlation` is Spearman's,
    of clicks a day and changes a day. What the log does not allow is empty.
    """

    clicks: int | None = None
    impressions: int | None = None
    top_1_percent: float | None = None
    top_10_percent: float | None = None
    gini: float | None = None
    lorenz: list[tuple[float, float]] = field(default_factory=list)
    page_days: int | None = None
    click_days: float | None = None
    impression_days: float | None = None
    deciles: list[Decile] = field(default_factory=list)
    rank_correlation: float | None = None
    notes: list[str] = field(default_factory=list)


def demand_of(log: Log, known: AnalyzedPages, record: Downloads | None) -> DemandSummary:
    """The study of demand; `notes` tell the reason for what is empty."""
    if not log.has("demand"):
        reason = "demand.parquet is absent: nothing is known of clicks and impressions"
        return DemandSummary(notes=[reason])
    rows = demand_rows(log, known)
    counted = rows.group_by("row").agg(pl.exclude("row", "at").sum()).collect()
    sums = known.frame.select("row").join(counted, on="row", how="left").fill_null(0)
    clicks = sums["clicks"].to_numpy()
    shown = int(sums["impressions"].sum()) if "impressions" in sums.columns else None
    days, notes = _days(log, rows, record, len(known))
    against, more = _against(sums, record)
    if shown is None:
        notes.append("demand.parquet has no column `impressions`")
    return DemandSummary(
        clicks=int(clicks.sum()),
        impressions=shown,
        top_1_percent=top(clicks, 0.01),
        top_10_percent=top(clicks, 0.1),
        gini=gini(clicks),
        lorenz=_lorenz(clicks),
        **days,
        **against,
        notes=notes + more,
    )


def demand_rows(log: Log, known: AnalyzedPages) -> pl.LazyFrame:
    """The demand of known pages: `row`, `at` (µs), `clicks`, `impressions` if there."""
    counts = [c for c in ("clicks", "impressions") if c in log.columns("demand")]
    demand = log.scan("demand").select(
        key(log, "demand"), pl.col("at").cast(pl.Int64), *(pl.col(c).fill_null(0) for c in counts)
    )
    pages = known.frame.lazy().select("page_id", "row")
    return demand.join(pages, on="page_id").drop("page_id").filter(pl.col("at").is_not_null())


def gini(counts: Ints) -> float | None:
    """Gini's coefficient: 0 if all are equal, towards 1 if one holds all; None without any.

    >>> gini(np.array([5, 5])), gini(np.array([0, 0, 0, 8]))
    (0.0, 0.75)
    """
    total, n = counts.sum(), len(counts)
    if not total:
        return None
    ranks = np.arange(1, n + 1)
    return float(2 * (ranks * np.sort(counts)).sum() / (n * total) - (n + 1) / n)


def _lorenz(counts: Ints) -> list[tuple[float, float]]:
    """Points of the curve, closer together near its steep end."""
    total, n = counts.sum(), len(counts)
    if not total:
        return []
    sums = np.append(0, np.cumsum(np.sort(counts))) / total
    even = np.linspace(0, n, _POINTS)
    steep = n - np.geomspace(1, n, _POINTS)
    at = np.unique(np.rint(np.concatenate([even, steep])).astype(np.int64))
    return [(float(k / n), float(sums[k])) for k in at]


# --------------------------------------------------------------------------------------------- days


def _days(
    log: Log, rows: pl.LazyFrame, record: Downloads | None, pages: int
) -> tuple[dict[str, Any], list[str]]:
    """Page-days, the share of them with a click and with an impression, and remarks.

    A page-day is a UTC date from a page's first download to its last. Without a record of changes,
    every page counts from the first date of the demand to the last.
    """
    bucket = log.about.demand_bucket
    if bucket is not None and bucket > timedelta(days=1):
        return {}, ["days with a click: `demand_bucket` in log.json is longer than a day"]
    dated = rows.with_columns(day=pl.col("at") // DAY_US)
    notes = []
    if record is None:
        notes.append("days with a click are counted over all pages and all dates of demand.parquet")
        ends = dated.select(pl.col("day").max() - pl.col("day").min() + 1).collect().item()
        total = pages * int(ends or 0)
    else:
        life = record.pages.select(
            "row", born=pl.col("first") // DAY_US, died=pl.col("last") // DAY_US
        )
        total = int(life.select((pl.col("died") - pl.col("born") + 1).sum()).item())
        dated = dated.join(life.lazy(), on="row").filter(
            pl.col("day").is_between(pl.col("born"), pl.col("died"))
        )
    found = {f"{c}_days": _share(dated, f"{c}s", total) for c in ("click", "impression")}
    return {"page_days": total, **found}, notes


def _share(dated: pl.LazyFrame, column: str, total: int) -> float | None:
    if column not in dated.collect_schema() or not total:
        return None
    days = dated.filter(pl.col(column) > 0).select("row", "day").unique().select(pl.len())
    return int(days.collect().item()) / total


# ---------------------------------------------------------------------------- clicks against change


def _against(sums: pl.DataFrame, record: Downloads | None) -> tuple[dict[str, Any], list[str]]:
    """Change rates by decile of clicks a day; pages with equal clicks stand in one decile."""
    if record is None:
        return {}, ["clicks against change rate: the log does not tell what changed"]
    days = pl.col("watched") / DAY_US
    pages = (
        record.pages.filter(pl.col("watched") > 0)
        .join(sums, on="row", maintain_order="left")
        .with_columns(pace=pl.col("clicks") / days, rate=pl.col("changes") / days)
    )
    clicked = pl.col("pace") > 0
    rank = pl.when(clicked).then("pace").rank("average")
    decile = ((rank - 0.5) * 10 / clicked.sum()).floor().cast(pl.Int64).clip(0, 9) + 1
    rows = (
        pages.with_columns(decile=decile.fill_null(0))
        .group_by("decile")
        .agg(
            pl.col("clicks", "changes").sum(),
            pages=pl.len(),
            page_days=pl.col("watched").sum() / DAY_US,
        )
        .with_columns(rate=pl.col("changes") / pl.col("page_days"))
        .sort("decile")
    )
    found = [Decile(**row) for row in rows.to_dicts()]
    return {"deciles": found, "rank_correlation": _spearman(pages["pace"], pages["rate"])}, []


def _spearman(a: pl.Series, b: pl.Series) -> float | None:
    ranks: list[Floats] = [x.rank("average").cast(float).to_numpy() for x in (a, b)]
    if any(not len(r) or np.ptp(r) == 0 for r in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


# ----------------------------------------------------------------------------------------- the page


def draw_demand(sheet: Sheet, demand: DemandSummary) -> None:
    """The section on clicks and impressions."""
    sheet.heading("Demand")
    if demand.clicks:
        sheet.words(
            f"{demand.clicks:,} clicks. The 1 % of pages with most clicks hold "
            f"{percent(demand.top_1_percent)} of them, the top 10 % hold "
            f"{percent(demand.top_10_percent)}; the Gini coefficient is {demand.gini:.3f}."
        )
        sheet.chart(_lorenz_curve(demand))
    elif demand.clicks == 0:
        sheet.words("There are no clicks.")
    for name, share in (("click", demand.click_days), ("impression", demand.impression_days)):
        if share:
            sheet.words(
                f"{percent(share)} of page-days have at least one {name} (1 in {1 / share:.3g})."
            )
    if demand.deciles:
        sheet.chart(_decile_bars(demand))
        if demand.rank_correlation is not None:
            words = "Rank correlation (Spearman) of clicks a day and changes a day"
            sheet.words(f"{words}: {demand.rank_correlation:.3f}.")
    sheet.remarks(demand.notes)


def _lorenz_curve(demand: DemandSummary) -> Any:
    """Share of clicks against share of pages; the diagonal is what equal pages would give."""
    titles = {"pages": "share of pages, least clicked first", "clicks": "share of clicks"}
    equal: list[tuple[float, float]] = [(0, 0), (1, 1)]
    curves = {"clicks": demand.lorenz, "equal pages": equal}
    rows = [{"pages": x, "clicks": y, "curve": k} for k, xys in curves.items() for x, y in xys]
    x, y = (kit.by(f"{k}:Q", title=v, axis={"format": "~%"}) for k, v in titles.items())
    dash = {"domain": list(curves), "range": [[1, 0], [5, 4]]}
    return kit.lines(
        rows,
        x=x,
        y=y,
        color=kit.colours("curve", list(curves), (kit.BLUE, kit.GREY), title=None),
        strokeDash=kit.by("curve:N", title=None, scale=dash),
        tooltip=[kit.tip(k, ".2~%", v) for k, v in titles.items()],
    ).properties(width=380, height=320)


def _decile_bars(demand: DemandSummary) -> Any:
    """Change rate by decile of clicks."""
    rows = [{**asdict(d), "name": str(d.decile or "none")} for d in demand.deciles]
    x = kit.by(
        "name:O",
        scale={"domain": ["none", *map(str, range(1, 11))]},
        title="clicks a day: none, then tenths of the clicked pages (10 = most clicked)",
        axis={"labelAngle": 0},
    )
    counts = [kit.tip(name, ",") for name in ("pages", "clicks", "changes")]
    tips = [kit.by("name:N", title="tenth"), kit.tip("rate", ".4~g", "changes a day"), *counts]
    y = kit.by("rate:Q", title="changes per page and day", axis={"format": "~g"})
    chart = kit.plot(rows, x=x, y=y, tooltip=tips).mark_bar(color=kit.BLUE)
    return chart.properties(width=560, height=240)
