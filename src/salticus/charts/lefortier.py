"""What the study of Lefortier et al. (2013) found: tables, and a page of charts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from salticus.charts import kit
from salticus.charts.sheet import Sheet, Table, each, table_of

Row = dict[str, Any]

_SIZE = {"width": 560, "height": 240}
_WORDS = {
    "learnt": "what sources promise is learnt as the crawl goes",
    "known": "rate, profit and decay of every source are known",
}


def policy_tables(report: Row) -> list[tuple[str, Table]]:
    """The policies of each world, with learnt and with known parameters: a title and a table."""
    found = []
    for world in each(report["table"], "world"):
        for estimates, words in _WORDS.items():
            wanted = (world, estimates)
            rows = [row for row in report["table"] if (row["world"], row["estimates"]) == wanted]
            if rows:
                found.append((f"{world}: {words}", table_of(rows, _COLUMNS)))
    return found


_COLUMNS = {
    "visits/link": "rate",
    "policy": "policy",
    "profit/s": lambda row: f"{row['profit']:.4g} ± {row['sd']:.2g}",
    "of the bound (95 %)": lambda row: f"{row['share']:.3f} ({row['low']:.3f}–{row['high']:.3f})",
    "of the dual bound": lambda row: _part(row["of_bound"]),
    "pages fetched": lambda row: _part(row["fetched"]),
    "links vanished unseen": lambda row: _part(row["lost"]),
    "sources hardly visited": lambda row: _part(row["seldom"]),
}


def _part(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def facts_of(report: Row) -> Row:
    """The figures beside the tables, by what they are."""
    facts: Row = {}
    for world in report["worlds"]:
        facts[f"{world['name']}: bound"] = f"{world['profit']:.4g} ± {world['sd']:.2g} clicks/s"
        for name, rule in (("keeps_all", "corrected"), ("keeps_all_published", "published")):
            if name in world:
                facts[f"{world['name']}: no source is dropped ({rule})"] = (
                    f"{world[name]:.3g} visits a link"
                )
    for row in report["reach"]:
        facts[f"{row['policy']}: 99 % of the bound"] = (
            f"{row['rate']:.3g} visits a link, {row['per_second']:.3g}/s"
            if row["reached"]
            else f"not with {row['rate']:.3g} visits a link"
        )
    return facts


def write_lefortier(report: Row, path: Path) -> None:
    """A page with the tables and the figures."""
    told, sheet = report["protocol"], Sheet("Finding new pages, as Lefortier et al. (2013) did")
    sheet.words(
        f"{told['days']:g} days in steps of {told['step']}, the last {told['measured']} measured, "
        f"{told['runs']} runs. Profit is the clicks to come on the pages fetched in a window of "
        "that length, a second: mean and standard deviation over its steps. Shares are of the "
        "clicks that a crawl without limits serves."
    )
    for title, (header, rows) in policy_tables(report):
        sheet.heading(title)
        sheet.table(header, rows)
    sheet.table(("", ""), list(facts_of(report).items()))
    sheet.heading("The last week, in a window of five hours")
    sheet.chart(_course(report["five_hours"], "policy", "policy"))
    sheet.heading("Warm-up, by how often clicks arrive")
    sheet.chart(_course(report["warmup"], "push", "clicks arrive every"))
    _draw_settings(sheet, report)
    _draw_analysis(sheet, report["analysis"])
    sheet.write(path)


def _course(points: list[Row], name: str, title: str) -> Any:
    return kit.lines(
        points,
        x=kit.by("day:Q", title="day"),
        y=kit.by("profit:Q", title="clicks a second"),
        color=kit.colours(name, each(points, name), title=title),
        tooltip=[kit.by(f"{name}:N"), kit.tip("day", ".2f"), kit.tip("profit", ".3~g")],
    ).properties(**_SIZE)


def _draw_settings(sheet: Sheet, report: Row) -> None:
    names = {
        "history": "visits to a source that its rate is taken from",
        "resolve": "time between two solutions for the intervals",
        "bins": "bins of age in which clicks are counted",
    }
    sheet.heading("Settings that hardly matter")
    for name, title in names.items():
        rows = [{**row, name: str(row[name])} for row in report[name]]
        x = kit.by(f"{name}:O", title=title, sort=None, axis={"labelAngle": 0})
        y = kit.by("share:Q", title="of the bound", axis=kit.PERCENT)
        colour = kit.colours("policy", each(rows, "policy"), title="policy")
        sheet.chart(kit.lines(rows, dots=40, x=x, y=y, color=colour).properties(**_SIZE))


def _draw_analysis(sheet: Sheet, found: Row) -> None:
    """Cover curve, hours of new links, clicks by age and patterns of interest."""
    links, interest = found["links"], found["interest"]
    if links is not None:
        sheet.heading("Links")
        x = kit.by("sources:Q", title="sources, each time the one that adds most")
        y = kit.by("share:Q", title="share of the new pages", axis=kit.PERCENT)
        sheet.chart(kit.lines(links["cover"], x=x, y=y).properties(**_SIZE))
        hours = [{"hour": hour, "links": n} for hour, n in enumerate(links["hours"])]
        bars = kit.plot(hours, x=kit.by("hour:O"), y=kit.by("links:Q"))
        sheet.chart(bars.mark_bar(color=kit.BLUE).properties(**_SIZE))
    if interest is not None:
        sheet.heading("Interest")
        sheet.chart(_fit(interest["curve"]))
        if interest["patterns"]:
            sheet.chart(_patterns(interest["patterns"]))
        sheet.remarks(interest["notes"])


def _fit(curve: list[Row]) -> Any:
    names = {"had": "as counted", "fitted": "P(1 − e^(−mt))"}
    rows = [
        {"days": point["hours"] / 24, "clicks": point[name], "curve": words}
        for point in curve
        if point["what"] == "clicks"
        for name, words in names.items()
    ]
    x = kit.by("days:Q", title="age of the page, days")
    y = kit.by("clicks:Q", title="clicks so far, a page")
    colour = kit.colours("curve", list(names.values()), title=None)
    return kit.lines(rows, x=x, y=y, color=colour).properties(**_SIZE)


def _patterns(patterns: list[Row]) -> Any:
    rows = [
        {"day": day, "interest": value, "pattern": f"{pattern['share']:.1%} ({n})"}
        for n, pattern in enumerate(patterns, 1)
        for day, value in enumerate(pattern["days"], 1)
    ]
    x = kit.by("day:Q", title="day after the page appeared")
    y = kit.by("interest:Q", title="clicks, of those on its best day", axis=kit.PERCENT)
    colour = kit.colours("pattern", each(rows, "pattern"), title="share of the pages")
    return kit.lines(rows, x=x, y=y, color=colour).properties(**_SIZE)
