"""A study of a paper as a page: every table and figure with the published figures beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from salticus.charts import kit
from salticus.charts.sheet import Sheet, Table, each, table_of

Row = dict[str, Any]

_SIZE = {"width": 560, "height": 240}
_PANEL = {"width": 330, "height": 220}
_HOLDS = {True: "yes", False: "no", None: "cannot be told"}


def write_paper(report: Row, path: Path) -> None:
    """A page with what is claimed, and all tables and figures in the order of the paper."""
    sheet = Sheet(report["title"])
    sheet.words(", ".join(f"{name}: {told}" for name, told in report["protocol"].items()) + ".")
    sheet.remarks(report["notes"])
    if report["claims"]:
        sheet.heading("What the paper says, and whether it holds here")
        sheet.table(*claims_table(report))
    for table in report["tables"]:
        sheet.heading(table["title"]).words(table["words"])
        for drawing in table["drawings"]:
            sheet.chart(drawn(drawing, table["rows"]))
        if table["rows"]:
            sheet.table(*paper_table(table))
        sheet.remarks(table["remarks"])
    sheet.write(path)


def claims_table(report: Row) -> Table:
    """Header and rows of what is claimed."""
    holds: Row = {"holds": lambda row: _HOLDS[row["holds"]], "figures": "figures"}
    return table_of(report["claims"], {"claim": "claim", "where": "source", **holds})


def paper_table(table: Row) -> Table:
    """Header and rows of one table; columns that are empty throughout are left out."""
    about = {name.replace("_", " "): name for name in table["about"]}
    figures = {
        "published": "published",
        "ours": "ours",
        "difference": lambda row: _signed(row["difference"]),
        "95 % interval": _interval,
        "where they part": lambda row: row["note"] or None,
    }
    header, rows = table_of(table["rows"], {**about, **figures})
    kept = [
        k for k in range(len(header)) if k < len(about) or any(row[k] is not None for row in rows)
    ]
    return tuple(header[k] for k in kept), [tuple(row[k] for k in kept) for row in rows]


def _signed(value: float | None) -> str | None:
    return None if value is None else f"{value:+.4g}"


def _interval(row: Row) -> str | None:
    return None if row["low"] is None else f"{row['low']:.4g} to {row['high']:.4g}"


def drawn(drawing: Row, rows: list[Row]) -> Any:
    """A chart of its points, or else of the rows of its table; one beside the other for panels."""
    points, panel = list(drawing["points"]) or rows, drawing["panel"]
    if drawing["colour"]:
        points = [{**row, drawing["colour"]: str(row[drawing["colour"]])} for row in points]
    channels = _channels(drawing, points)
    if not panel:
        return _marked(drawing, points, channels).properties(**_SIZE)
    shown = []
    for value in each(points, panel):
        some = [row for row in points if row[panel] == value]
        shown.append(_marked(drawing, some, channels).properties(title=str(value), **_PANEL))
    return kit.beside(*shown)


def _channels(drawing: Row, points: list[Row]) -> Row:
    title_x, title_y = drawing["titles"]
    scale: Row = {"scale": kit.LOG} if drawing["log"] else {}
    y_scale: Row = scale or ({} if drawing["kind"] == "bars" else {"scale": kit.FREE})
    level: Row = {} if drawing["x"].endswith(":Q") else {"axis": {"labelAngle": 0}}
    channels = {
        "x": kit.by(drawing["x"], title=title_x, sort=None, **scale, **level),
        "y": kit.by(drawing["y"], title=title_y, **y_scale),
        "tooltip": [kit.by(drawing["x"]), kit.by(drawing["y"])],
    }
    if drawing["colour"]:
        channels["color"] = _colours(drawing["colour"], each(points, drawing["colour"]))
    return channels


def _colours(name: str, values: list[str]) -> Row:
    """A colour each, or where there are too many a scale in their order."""
    title = name.replace("_", " ")
    if len(values) <= len(kit.COLOURS):
        return kit.colours(name, values, title=title)
    return kit.by(f"{name}:O", title=title, scale={"scheme": "viridis", "domain": values})


def _marked(drawing: Row, points: list[Row], channels: Row) -> Any:
    if drawing["kind"] == "lines":
        return kit.lines(points, **channels)
    apart = {"xOffset": f"{drawing['colour']}:N"} if drawing["colour"] else {}
    if drawing["kind"] == "bars":
        colour = {} if drawing["colour"] else {"color": kit.BLUE}
        return kit.plot(points, **channels, **apart).mark_bar(**colour)
    bounds = {"y": {**channels["y"], "field": "low"}, "y2": "high:Q"}
    known = [row for row in points if row.get("low") is not None]
    spans = kit.plot(known, **{**channels, **bounds}, **apart).mark_rule()
    return kit.layered(spans, kit.plot(points, **channels, **apart).mark_point(filled=True))
