"""How well models predict, as tables, and as pages with charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from salticus.charts.sheet import (
    BLUE,
    GREY,
    WIDTH,
    Sheet,
    Table,
    colours,
    data,
    each,
    lines,
    percent,
    table_of,
    tip,
)

Row = dict[str, Any]

_FIGURES = {
    "rows": "rows", "events": "events", "share": "share", "AUC": "auc", "of 20": "auc_mean",
    "± sd": "auc_sd", "PR-AUC": "pr_auc", "log loss": "log_loss", "Brier": "brier",
    "ECE": "ece", "(width)": "ece_width",
}  # fmt: skip
_GROUPS = {
    "all": "All rows",
    "seen": "Pages that training saw, and others",
    "known": "By number of known observations",
    "merchant": "By merchant",
}
_REMARKS = (
    "Share: of rows with the event. AUC: chance that a row with the event is rated above one "
    "without; then its mean and standard deviation over 20 random subsets.",
    "PR-AUC: area under precision against recall; a guess has the share.",
    "Log loss in nats and Brier score: the lower, the better; both reward right probabilities.",
    "ECE: mean distance of what was said from what came, over 20 bins of equal "
    "count; beside it over 20 bins of equal width.",
)


def figures_table(evaluation: Row, by: Sequence[str] = ("all", "seen")) -> Table:
    """Header and rows of the groups that are told apart `by` these, for every edge."""
    rows = [row for row in evaluation["figures"] if row["by"] in by]
    return table_of(rows, {"within": lambda row: spelt(row["edge"]), "pages": "group", **_FIGURES})


def stretches_table(evaluation: Row) -> Table:
    """Header and rows of the stretches of time, among the rows still at risk in each."""
    ends = {"from": lambda row: spelt(row["from"]), "to": lambda row: spelt(row["to"])}
    return table_of(evaluation["stretches"], {**ends, **_FIGURES})


def spelt(hours: int) -> str:
    """Hours as people say them.

    >>> spelt(6), spelt(24), spelt(336)
    ('6 h', '1 d', '14 d')
    """
    return f"{hours // 24} d" if hours and hours % 24 == 0 else f"{hours} h"


def write_evaluation(report: Row, path: Path) -> None:
    """Write the page of an evaluation: figures, reliability, and how they depend on what is known.

    `report` has `title`, `facts` (name → value) and `evaluation`.
    """
    found = report["evaluation"]
    sheet = Sheet(report["title"])
    sheet.table(("", ""), [(name, str(value)) for name, value in report["facts"].items()])
    for by in ("all", "seen"):
        sheet.heading(_GROUPS[by]).table(*figures_table(found, (by,)))
    sheet.remarks(_REMARKS)
    if found["stretches"]:
        sheet.heading("Stretch by stretch, if nothing came before")
        sheet.table(*stretches_table(found))
    sheet.heading("Do the probabilities mean what they say?")
    sheet.chart(_reliability(found), _RELIABLE)
    _grouped(sheet, found, "known", _by_known)
    _grouped(sheet, found, "merchant", None)
    sheet.write(path)


_RELIABLE = (
    "Each point is a twentieth of the rows: what was said of them, and how many had the event. "
    "On the grey line both agree. Both axes grow as the square root."
)


def _grouped(sheet: Sheet, found: Row, by: str, chart: Any) -> None:
    rows = [row for row in found["figures"] if row["by"] == by]
    if not rows:
        return
    sheet.heading(_GROUPS[by])
    if chart is not None and any(row["auc"] is not None for row in rows):
        sheet.chart(chart(found))
    sheet.table(*figures_table(found, (by,)))


def _reliability(found: Row) -> Any:
    """What came against what was said, a line an edge."""
    import altair as alt

    points = [{**row, "within": spelt(row["edge"])} for row in found["reliability"]]
    most = max((max(p["predicted"], p["observed"]) for p in points), default=1.0)
    scale = alt.Scale(type="sqrt", domain=[0, most], nice=False, padding=8)
    axis = percent()
    right = alt.Chart(data([{"p": 0.0}, {"p": most}])).encode(
        x=alt.X("p:Q", scale=scale), y=alt.Y("p:Q", scale=scale)
    )
    came = alt.Chart(data(points)).encode(
        x=alt.X("predicted:Q", title="said", scale=scale, axis=axis),
        y=alt.Y("observed:Q", title="came", scale=scale, axis=axis),
        color=_within(found),
        tooltip=[
            alt.Tooltip("within:N"),
            tip("predicted", ".4~%", "said"),
            tip("observed", ".4~%", "came"),
            tip("rows", ","),
        ],
    )
    grey = right.mark_line(color=GREY, strokeDash=[4, 4])
    return (grey + came.mark_line(point={"size": 45})).properties(width=460, height=460)


def _by_known(found: Row) -> Any:
    """AUC against the number of known observations, a line an edge."""
    import altair as alt

    rows = [r for r in found["figures"] if r["by"] == "known" and r["auc"] is not None]
    order, axis = each(rows, "group"), alt.Axis(labelAngle=0)
    return lines(
        [{**row, "within": spelt(row["edge"])} for row in rows],
        dots=50,
        x=alt.X("group:O", title="known observations of the page", sort=order, axis=axis),
        y=alt.Y("auc:Q", title="AUC", scale=alt.Scale(zero=False)),
        color=_within(found),
        tooltip=["within:N", "group:N", tip("auc", ".4f"), tip("rows", ",")],
    ).properties(width=WIDTH - 120, height=280)


def _within(found: Row) -> Any:
    import altair as alt

    names = [spelt(edge) for edge in found["edges"]]
    if len(names) == 1:
        return alt.value(BLUE)
    scale = alt.Scale(domain=names, scheme="viridis")
    return alt.Color("within:N", title="within", scale=scale, sort=names)


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
    made: dict[str, Callable[[Sequence[Row]], Table]] = {
        "changes": lambda rows: _beside(rows, ("group", "observe"), _CELLS),
        "tasks": lambda rows: _beside(rows, ("task",), [(task,) for task in each(rows, "task")]),
        "daily": _daily,
        "cold": _cold,
    }
    tables = [(f"{report['log']}: {report['table']}", made[report["table"]](report["rows"]))]
    if report["checks"]:
        tables.append(("what must hold", _checks(report["checks"])))
    return tables


def _checks(checks: Sequence[Row]) -> Table:
    """What was checked, whether it holds, and the figures."""
    rows = [(c["check"], "yes" if c["holds"] else "no", c["figures"]) for c in checks]
    return ("check", "holds", "figures"), rows


def write_prediction(report: Row, path: Path) -> None:
    """Write the page of a report of `studies.prediction` to `path`."""
    kind = report["table"]
    sheet = Sheet(f"{_TITLES[kind]}: {report['log']}").words(_WORDS[kind])
    sheet.chart(_auc_by_model(report["rows"]), "AUC by model; 0.5 is a guess, 1 is certainty.")
    for title, table in prediction_tables(report):
        sheet.heading(title).table(*table)
    sheet.write(path)


def _beside(rows: Sequence[Row], names: Sequence[str], cells: Sequence[tuple[str, ...]]) -> Table:
    """A line a model: for each cell, given by these entries, our figure and the published one."""
    found = {(row["name"], *(row[name] for name in names)): row for row in rows}
    header = ["model"]
    for cell in cells:
        header += [", ".join(cell), "published"]
    models = each(rows, "name")
    pairs = {model: [_pair(found.get((model, *cell))) for cell in cells] for model in models}
    return tuple(header), [(model, *chain.from_iterable(pairs[model])) for model in models]


def _daily(rows: Sequence[Row]) -> Table:
    names = {
        "log loss": "log_loss", "calibration error": "calibration_error",
        "before calibration": "uncalibrated_error", "number": "rows", "changes": "events",
    }  # fmt: skip
    columns = {"rows": "group", "model": "name", "AUC": _auc}
    shown = {title: lambda row, name=name: _shown(row[name]) for title, name in names.items()}
    return table_of(rows, {**columns, **shown})


def _cold(rows: Sequence[Row]) -> Table:
    groups = each(rows, "known")
    found = {(row["name"], row["known"]): row["whole_auc"] for row in rows}
    counts = {row["known"]: f"{row['rows']:,} ({row['events']:,})" for row in rows}
    models: list[tuple[Any, ...]] = [
        (name, *(_shown(found.get((name, group)), 3) for group in groups))
        for name in each(rows, "name")
    ]
    last = ("rows (changes)", *(counts[group] for group in groups))
    return ("observations known", *groups), [*models, last]


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


def _auc_by_model(rows: Sequence[Row]) -> Any:
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
