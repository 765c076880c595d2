"""The evaluation of a model as tables, and as a page with charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from salticus.charts.kit import BLUE, GREY, Table, data, each, percent, tip
from salticus.charts.sheet import WIDTH, Sheet

_FIGURES = {
    "rows": "rows", "events": "events", "share": "share", "auc": "AUC", "auc_mean": "of 20",
    "auc_sd": "± sd", "pr_auc": "PR-AUC", "log_loss": "log loss", "brier": "Brier",
    "ece": "ECE", "ece_width": "(width)",
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


def figures_table(evaluation: dict[str, Any], by: Sequence[str] = ("all", "seen")) -> Table:
    """Header and rows of the groups that are told apart `by` these, for every edge."""
    rows = [row for row in evaluation["figures"] if row["by"] in by]
    header = ("within", "pages", *_FIGURES.values())
    return header, [(spelt(r["edge"]), r["group"], *(r[name] for name in _FIGURES)) for r in rows]


def stretches_table(evaluation: dict[str, Any]) -> Table:
    """Header and rows of the stretches of time, among the rows still at risk in each."""
    header = ("from", "to", *_FIGURES.values())
    return header, [
        (spelt(row["from"]), spelt(row["to"]), *(row[name] for name in _FIGURES))
        for row in evaluation["stretches"]
    ]


def spelt(hours: int) -> str:
    """Hours as people say them.

    >>> spelt(6), spelt(24), spelt(336)
    ('6 h', '1 d', '14 d')
    """
    return f"{hours // 24} d" if hours and hours % 24 == 0 else f"{hours} h"


def write_evaluation(report: dict[str, Any], path: Path) -> None:
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
    sheet.chart(reliability_chart(found), _RELIABLE)
    _grouped(sheet, found, "known", known_chart)
    _grouped(sheet, found, "merchant", None)
    sheet.write(path)


_RELIABLE = (
    "Each point is a twentieth of the rows: what was said of them, and how many had the event. "
    "On the grey line both agree. Both axes grow as the square root."
)


def _grouped(sheet: Sheet, found: dict[str, Any], by: str, chart: Any) -> None:
    rows = [row for row in found["figures"] if row["by"] == by]
    if not rows:
        return
    sheet.heading(_GROUPS[by])
    if chart is not None and any(row["auc"] is not None for row in rows):
        sheet.chart(chart(found))
    sheet.table(*figures_table(found, (by,)))


def reliability_chart(found: dict[str, Any]) -> Any:
    """What came against what was said, a line an edge."""
    import altair as alt

    points = [{**row, "within": spelt(row["edge"])} for row in found["reliability"]]
    most = max((max(p["predicted"], p["observed"]) for p in points), default=1.0)
    scale = alt.Scale(type="sqrt", domain=[0, most], nice=False, padding=8)
    axis = percent()
    right = alt.Chart(data([{"p": 0.0}, {"p": most}])).encode(
        x=alt.X("p:Q", scale=scale), y=alt.Y("p:Q", scale=scale)
    )
    lines = alt.Chart(data(points)).encode(
        x=alt.X("predicted:Q", title="said", scale=scale, axis=axis),
        y=alt.Y("observed:Q", title="came", scale=scale, axis=axis),
        color=_within(alt, found),
        tooltip=[
            alt.Tooltip("within:N"),
            tip("predicted", ".4~%", "said"),
            tip("observed", ".4~%", "came"),
            tip("rows", ","),
        ],
    )
    grey = right.mark_line(color=GREY, strokeDash=[4, 4])
    return (grey + lines.mark_line(point={"size": 45})).properties(width=460, height=460)


def known_chart(found: dict[str, Any]) -> Any:
    """AUC against the number of known observations, a line an edge."""
    import altair as alt

    rows = [r for r in found["figures"] if r["by"] == "known" and r["auc"] is not None]
    points = [{**row, "within": spelt(row["edge"])} for row in rows]
    order = each(rows, "group")
    return (
        alt.Chart(data(points))
        .mark_line(point={"size": 50})
        .encode(
            x=alt.X("group:O", title="known observations of the page", sort=order,
                    axis=alt.Axis(labelAngle=0)),
            y=alt.Y("auc:Q", title="AUC", scale=alt.Scale(zero=False)),
            color=_within(alt, found),
            tooltip=["within:N", "group:N", tip("auc", ".4f"), tip("rows", ",")],
        )
        .properties(width=WIDTH - 120, height=280)
    )  # fmt: skip


def _within(alt: Any, found: dict[str, Any]) -> Any:
    names = [spelt(edge) for edge in found["edges"]]
    if len(names) == 1:
        return alt.value(BLUE)
    scale = alt.Scale(domain=names, scheme="viridis")
    return alt.Color("within:N", title="within", scale=scale, sort=names)
