"""What a log can be used for, and which file or column stands in the way of the rest."""

from __future__ import annotations

from salticus.exchange.folder import Log

_GROUPS = ("country", "category", "merchant")


def uses_of(log: Log) -> dict[str, str]:
    """For each use: "yes", "imputed" or "no", and why."""
    return {
        "simulate": _simulate(log),
        "weigh by clicks": _demand(log),
        "replay requests": _needs(log, "requests"),
        "discover": _needs(log, "links"),
        "analyze": _analyze(log),
        "serve in a mall": _needs(log, "values"),
    }


def _needs(log: Log, table: str) -> str:
    return f"yes ({table}.parquet)" if log.has(table) else f"no, because {table}.parquet is missing"


def _simulate(log: Log) -> str:
    """The truth is values, else texts, else what visits leave open."""
    resolution = log.about.rest.get("resolution")
    for table in ("values", "texts"):
        if log.has(table):
            ticks = (
                f"ticks of {resolution} or more" if resolution else "log.json lacks `resolution`"
            )
            return f"yes ({table}.parquet; {ticks})"
    if not log.has("visits"):
        return "no, because values.parquet, texts.parquet and visits.parquet are missing"
    if "changed" not in log.columns("visits"):
        return "no, because visits.parquet has no column `changed`, and values.parquet is missing"
    return "imputed, because it has visits.parquet but no values.parquet"


def _demand(log: Log) -> str:
    if not log.has("demand"):
        return "synthetic, because demand.parquet is missing"
    if log.about.demand_bucket is None:
        return "no, because log.json lacks `demand_bucket`"
    return "yes (demand.parquet)"


def _analyze(log: Log) -> str:
    """Changes, by the time of the week and by what is known of the pages."""
    table = next((t for t in ("values", "visits", "texts") if log.has(t)), None)
    if table is None:
        some = "demand only (demand.parquet)" if log.has("demand") else "no"
        return f"{some}, because values.parquet, visits.parquet and texts.parquet are missing"
    if table == "visits" and not log.columns("visits") & {"changed", "value"}:
        return "no, because visits.parquet has neither column `changed` nor `value`"
    if table == "texts" and not log.has("crawls"):
        return "no, because texts.parquet tells nothing without crawls.parquet"
    columns = log.columns("pages")
    if table == "texts" and "host" not in columns:
        return "no, because pages.parquet has no column `host`, by which crawls.parquet goes"
    hours = "local hour" if "timezone" in columns else "hour in UTC (pages.parquet: no `timezone`)"
    by = [hours, *(name for name in _GROUPS if name in columns)]
    return f"yes ({table}.parquet; by {', '.join(by)})"
