"""The result of a replay of requests as a page: how fresh is the copy at which share sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from salticus.charts.kit import Table, colours, data, each, percent, tip
from salticus.charts.sheet import WIDTH, Sheet


def requests_table(report: dict[str, Any]) -> Table:
    """Header and rows of a replay of requests: one line a gate and share.

    The last column is the share of the requests that the gate saves at the freshness of the
    uniform one's line of that share.
    """
    header = (
        "gate", "share to send", "sent / requests", "requests", "requests that found fresh",
        "visits that found a change", "saved at equal freshness",
    )  # fmt: skip
    saved = {(r["gate"], r["at_budget"]): r["saving"] for r in report["savings"]}
    rows = [
        (
            r["gate"], r["budget"], r["resource"], r["requests"], r["freshness"]["mean"],
            round(r["found"]), saved.get((r["gate"], r["budget"])),
        )
        for r in report["rows"]
    ]  # fmt: skip
    return header, rows


def write_requests(report: dict[str, Any], path: Path) -> None:
    """Write the page of `replay_requests` to `path`: freshness against the share, and in time."""
    import altair

    alt: Any = altair
    rules, rows = report["rules"], report["rows"]
    sheet = Sheet(f"InstaCrawl requests of {report['log']['name']}").words(
        f"{report['log']['pages']:,} pages, replayed from {rules['start'][:10]}: history "
        f"{rules['history']}, warm-up {rules['warmup']}, then {rules['days']} days scored; "
        f"predictor {rules['predictor']}, runs: {rules['runs']}."
    )
    sheet.remarks(report["notes"])
    sheet.heading("Freshness against the share sent")
    sheet.chart(_by_share(alt, rows), "Mean of windows of 6 hours, after the warm-up.")
    sheet.heading("Freshness in time")
    sheet.chart(_by_day(alt, rows), "Windows of 6 hours, median over the runs; a line a share.")
    _tables(sheet, report)
    sheet.write(path)


def _tables(sheet: Sheet, report: dict[str, Any]) -> None:
    sheet.heading("All figures").table(*requests_table(report))
    known = [row for row in report["savings"] if row["saving"] is not None]
    if known:
        sheet.heading("Requests saved at equal freshness", rank=3).table(
            ("gate", "against", "at its share", "freshness", "saved", "95 % from", "to"),
            [tuple(row.values()) for row in known],
        )


def _by_share(alt: Any, rows: list[dict[str, Any]]) -> Any:
    points = [
        {"gate": row["gate"], "share": row["resource"], "fresh": row["freshness"]["mean"]}
        for row in rows
        if row["freshness"]["mean"] is not None
    ]
    top = alt.Legend(orient="top")
    return (
        alt.Chart(data(points))
        .mark_line(point={"size": 50})
        .encode(
            x=alt.X("share:Q", title="requests sent", axis=percent()),
            y=alt.Y("fresh:Q", scale=alt.Scale(zero=False), **_fresh()),
            color=colours("gate", each(rows, "gate"), title="gate", legend=top),
            tooltip=["gate:N", *(tip(k, ".4f") for k in ("share", "fresh"))],
        )
        .properties(width=WIDTH, height=340)
    )


def _by_day(alt: Any, rows: list[dict[str, Any]]) -> Any:
    points = [
        {"gate": row["gate"], "share": row["budget"], "day": k / 4, "fresh": fresh}
        for row in rows
        for k, fresh in enumerate(row["windows"])
        if fresh is not None
    ]
    chart = (
        alt.Chart(data(points))
        .mark_line()
        .encode(
            x=alt.X("day:Q", title="days since all copies were fresh"),
            y=alt.Y("fresh:Q", scale=alt.Scale(zero=False), **_fresh()),
            color=alt.Color("share:O", title="share sent", scale=alt.Scale(scheme="viridis")),
            tooltip=["gate:N", "share:O", "day:Q", tip("fresh", ".4f")],
        )
        .properties(width=WIDTH, height=240)
    )
    return chart.facet(row=alt.Row("gate:N", title=None, sort=each(rows, "gate")))


def _fresh() -> dict[str, Any]:
    return {"title": "requests that find a fresh copy", "axis": percent()}
