"""What policies that find new pages achieved: a table, and a page of charts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from salticus.charts import kit
from salticus.charts.sheet import Sheet, Table, each, table_of

Row = dict[str, Any]


def discovery_table(report: Row) -> Table:
    """Header and rows of a contest in finding new pages: one line a policy and crawl rate."""
    return table_of(
        report["rows"],
        {
            "policy": "policy",
            "visits/day": "visits_per_day",
            "clicks served": "share",
            "pages found": "found",
            "pages fetched": "fetched",
            "median delay (h)": lambda row: _hours(row["delay_hours"]),
            "links unseen": "unseen",
            "source visits": "source_visits",
            "page visits": "page_visits",
        },
    )


def _hours(delay: float | None) -> str:
    return "never" if delay is None else f"{delay:g}"


def write_discovery(report: Row, path: Path) -> None:
    """A page with the table, and what each policy served day by day."""
    log, sheet = report["log"], Sheet(f"Finding new pages: {report['log']['name']}")
    sheet.words(
        f"{log['links']:,} links on {log['sources']:,} sources lead to {log['pages']:,} pages, "
        f"{log['links_per_day']:,.0f} links a day. Clicks served are those on pages from when they "
        "were fetched on, as a share of those from when their first link appeared."
    )
    header, rows = discovery_table(report)
    sheet.table(header, rows)
    for visits in each(report["rows"], "visits_per_day"):
        sheet.heading(f"{visits:,.0f} visits a day")
        sheet.chart(_days([row for row in report["rows"] if row["visits_per_day"] == visits]))
    sheet.remarks(report["notes"])
    sheet.write(path)


def _days(rows: list[Row]) -> Any:
    points = [
        {"policy": row["policy"], "day": day, "served": served}
        for row in rows
        for day, served in enumerate(row["daily"], 1)
    ]
    x = kit.by("day:Q", title="day after the warm-up")
    y = kit.by("served:Q", title="clicks served", axis={"format": "~%"})
    colour = kit.colours("policy", each(rows, "policy"), title="policy")
    tips = [kit.by("policy:N"), kit.tip("day", "d"), kit.tip("served", ".1~%")]
    return kit.lines(points, x=x, y=y, color=colour, tooltip=tips).properties(width=560, height=240)
