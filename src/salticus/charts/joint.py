"""What crawls of offers and publishers together achieved, as tables."""

from __future__ import annotations

from typing import Any

from salticus.charts.sheet import Table, table_of

Row = dict[str, Any]


def joint_table(report: Row) -> Table:
    """Header and rows of crawls with one price and with splits: one line each."""
    return table_of(
        report["rows"],
        {
            "visits/day": "visits_per_day",
            "for finding": lambda row: _percent(row["split"], "one price"),
            "clicks served": "share",
            "on offers": "offers",
            "on articles": "articles",
            "offer visits": lambda row: row["visits"]["offers"],
            "source visits": lambda row: row["visits"]["sources"],
            "article visits": lambda row: row["visits"]["articles"],
        },
    )


def one_price_table(report: Row) -> Table:
    """Header and rows of the study: one line a budget."""
    return table_of(
        report["table"],
        {
            "budget": lambda row: _percent(row["budget"]),
            "one price": "one_price",
            "best split": "best",
            "its share for finding": lambda row: _percent(row["split"]),
            "ratio": "ratio",
            "worst run": "worst_run",
            "found by itself": lambda row: _percent(row["finding"]),
        },
    )


def live_table(report: Row) -> Table:
    """Header and rows of crawls over HTTP: one line each."""
    return table_of(
        report["rows"],
        {
            "crawl": "crawl",
            "median delay (h)": "delay",
            "articles fetched": "fetched",
            "clicks on them served": "read",
            "click staleness of shops": "staleness",
            "visits": "visits",
            "to sources": "to_sources",
            "to offers": "to_offers",
        },
    )


def _percent(share: float | None, otherwise: str = "") -> str:
    """A share in words.

    >>> _percent(0.3), _percent(None, "one price")
    ('30 %', 'one price')
    """
    return otherwise if share is None else f"{100 * share:.0f} %"
