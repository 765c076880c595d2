"""The study of predictions as tables, and as a page with charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from salticus.charts.kit import Table, colours, data, each, tip
from salticus.charts.sheet import WIDTH, Sheet

Row = dict[str, Any]

_CELLS = (("seen", "partial"), ("seen", "full"), ("unseen", "partial"), ("unseen", "full"))
_TITLES = {
    "changes": "Who changes within six hours",
    "tasks": "Who changes, is clicked or is shown on the next day",
    "daily": "Models and rules on a daily log",
    "cold": "Pages of which little is known",
}
_WORDS = {
    "changes": "After Han et al. 2019, Tables 2 and 3: AUC (standard deviation over 20 subsets of "
    "the test rows), and what was published of another market beside it. Seen offers were in "
    "training, unseen ones were not; full sight knows every change, partial sight what the "
    "production crawler saw. The ceilings are the true hazards of the synthetic market.",
    "tasks": "After Han et al. 2020, Table 4: AUC (standard deviation over 20 subsets).",
    "daily": "One prediction a page and day, whether it changes within 24 hours; all on the same "
    "later rows. Calibration error: expected, 20 bins of equal numbers of rows.",
    "cold": "AUC on pages that were not in training, by how many observations of the page were "
    "known. The ceilings are the true hazards of the synthetic market.",
}


def prediction_tables(report: Row) -> list[tuple[str, Table]]:
    """Every table of a report of `studies.prediction`, with its title."""
    made = {"changes": _changes, "tasks": _tasks, "daily": _daily, "cold": _cold}
    tables = [(f"{report['log']}: {report['table']}", made[report["table"]](report["rows"]))]
    if report["checks"]:
        tables.append(("what must hold", checks_table(report["checks"])))
    return tables


def checks_table(checks: Sequence[Row]) -> Table:
    """What was checked, whether it holds, and the figures."""
    rows = [(c["check"], "yes" if c["holds"] else "no", c["figures"]) for c in checks]
    return ("check", "holds", "figures"), rows


def write_prediction(report: Row, path: Path) -> None:
    """Write the page of a report of `studies.prediction` to `path`."""
    kind = report["table"]
    sheet = Sheet(f"{_TITLES[kind]}: {report['log']}").words(_WORDS[kind])
    sheet.chart(auc_chart(report["rows"]), "AUC by model; 0.5 is a guess, 1 is certainty.")
    for title, table in prediction_tables(report):
        sheet.heading(title).table(*table)
    sheet.write(path)


def _changes(rows: Sequence[Row]) -> Table:
    header = ["model"]
    for group, observe in _CELLS:
        header += [f"{group}, {observe}", "published"]
    lines = []
    for name, some in _by(rows, "name"):
        cells = {(row["group"], row["observe"]): row for row in some}
        pairs = [_pair(cells.get(cell)) for cell in _CELLS]
        lines.append((name, *(text for pair in pairs for text in pair)))
    return tuple(header), lines


def _tasks(rows: Sequence[Row]) -> Table:
    tasks = each(rows, "task")
    header = ["model"]
    for task in tasks:
        header += [task, "published"]
    lines = []
    for name, some in _by(rows, "name"):
        cells = {row["task"]: row for row in some}
        pairs = [_pair(cells.get(task)) for task in tasks]
        lines.append((name, *(text for pair in pairs for text in pair)))
    return tuple(header), lines


def _daily(rows: Sequence[Row]) -> Table:
    header = (
        "rows", "model", "AUC", "log loss", "calibration error", "before calibration", "number",
        "changes",
    )  # fmt: skip
    names = ("log_loss", "calibration_error", "uncalibrated_error", "rows", "events")
    lines = [
        (row["group"], row["name"], _auc(row), *(_shown(row[name]) for name in names))
        for row in rows
    ]
    return header, lines


def _cold(rows: Sequence[Row]) -> Table:
    groups = each(rows, "known")
    lines: list[tuple[Any, ...]] = []
    for name, some in _by(rows, "name"):
        cells = {row["known"]: row for row in some}
        whole = [cells[g]["whole_auc"] if g in cells else None for g in groups]
        lines.append((name, *(_shown(auc, 3) for auc in whole)))
    counts = {row["known"]: (row["rows"], row["events"]) for row in rows}
    lines.append(("rows (changes)", *(f"{n:,} ({e:,})" for n, e in (counts[g] for g in groups))))
    return ("observations known", *groups), lines


def _by(rows: Sequence[Row], key: str) -> list[tuple[str, list[Row]]]:
    """Rows by one of their entries, in the order in which it first comes."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return [*found.items()]


def _pair(row: Row | None) -> tuple[str, str]:
    """Ours and what was published, as the papers write it.

    >>> _pair({"auc": 0.8751, "sd": 0.002, "published": 0.5, "published_sd": None})
    ('0.875 (0.002)', '0.500')
    """
    if row is None:
        return "–", "–"
    return _auc(row), _spread(row["published"], row["published_sd"])


def _auc(row: Row) -> str:
    return _spread(row["auc"], row["sd"])


def _spread(auc: float | None, sd: float | None) -> str:
    if auc is None:
        return "–"
    return f"{auc:.3f}" if sd is None else f"{auc:.3f} ({sd:.3f})"


def _shown(value: float | None, digits: int = 4) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"


def auc_chart(rows: Sequence[Row]) -> Any:
    """A point a model, and one for what was published; a panel a group of rows."""
    import altair as alt

    points = []
    for row in rows:
        panel = ", ".join(str(row[k]) for k in ("task", "group", "observe", "known") if k in row)
        known = {"model": row["name"], "panel": panel}
        for source, value in (("ours", row["auc"]), ("published", row.get("published"))):
            if value is not None:
                points.append({**known, "auc": value, "source": source})
    told = each(points, "source")
    legend = alt.Legend() if len(told) > 1 else None
    base = alt.Chart(data(points)).encode(
        x=alt.X("auc:Q", title="AUC", scale=alt.Scale(zero=False)),
        y=alt.Y("model:N", title=None, sort=each(rows, "name")),
        color=colours("source", told, title=None, legend=legend),
        shape=alt.Shape("source:N", title=None, scale=alt.Scale(domain=told), legend=legend),
        tooltip=["model:N", "panel:N", "source:N", tip("auc", ".4f")],
    )
    dots = base.mark_point(size=60, filled=True).properties(width=(WIDTH - 300) // 2)
    return dots.facet(facet=alt.Facet("panel:N", title=None, sort=None), columns=2)
