"""How well models predict, as tables, and as pages with charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from salticus.charts import kit
from salticus.charts.sheet import Sheet, Table, each, table_of

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
    for group in ("all", "seen"):
        sheet.heading(_GROUPS[group]).table(*figures_table(found, (group,)))
    sheet.remarks(_REMARKS)
    if found["stretches"]:
        sheet.heading("Stretch by stretch, if nothing came before")
        sheet.table(*stretches_table(found))
    sheet.heading("Do the probabilities mean what they say?")
    sheet.chart(_reliability(found), _RELIABLE)
    for group in ("known", "merchant"):
        if rows := [row for row in found["figures"] if row["by"] == group]:
            sheet.heading(_GROUPS[group])
            if group == "known" and any(row["auc"] is not None for row in rows):
                sheet.chart(_by_known(found))
            sheet.table(*figures_table(found, (group,)))
    sheet.write(path)


_RELIABLE = (
    "Each point is a twentieth of the rows: what was said of them, and how many had the event. "
    "On the grey line both agree. Both axes grow as the square root."
)


def _reliability(found: Row) -> Any:
    """What came against what was said, a line an edge."""
    points = [{**row, "within": spelt(row["edge"])} for row in found["reliability"]]
    most = max((max(p["predicted"], p["observed"]) for p in points), default=1.0)
    scale = {"type": "sqrt", "domain": [0, most], "nice": False, "padding": 8}
    p = kit.by("p:Q", scale=scale)
    right = kit.plot([{"p": 0.0}, {"p": most}], x=p, y=p)
    right = right.mark_line(color=kit.GREY, strokeDash=[4, 4])
    shares = {"predicted": "said", "observed": "came"}
    x, y = (kit.by(f"{k}:Q", title=v, scale=scale, axis=kit.PERCENT) for k, v in shares.items())
    told = ["within:N", *(kit.tip(k, ".4~%", v) for k, v in shares.items()), kit.tip("rows", ",")]
    came = kit.lines(points, dots=45, x=x, y=y, color=_within(found), tooltip=told)
    return (right + came).properties(width=460, height=460)


def _by_known(found: Row) -> Any:
    """AUC against the number of known observations, a line an edge."""
    rows = [r for r in found["figures"] if r["by"] == "known" and r["auc"] is not None]
    order, axis = each(rows, "group"), {"labelAngle": 0}
    return kit.lines(
        [{**row, "within": spelt(row["edge"])} for row in rows],
        dots=50,
        x=kit.by("group:O", title="known observations of the page", sort=order, axis=axis),
        y=kit.by("auc:Q", title="AUC", scale=kit.FREE),
        color=_within(found),
        tooltip=["within:N", "group:N", kit.tip("auc", ".4f"), kit.tip("rows", ",")],
    ).properties(width=kit.WIDTH - 120, height=280)


def _within(found: Row) -> Any:
    names = [spelt(edge) for edge in found["edges"]]
    if len(names) == 1:
        return {"value": kit.BLUE}
    scale = {"domain": names, "scheme": "viridis"}
    return kit.by("within:N", title="within", scale=scale, sort=names)


_CHECKED = {
    "check": "check",
    "holds": lambda check: "yes" if check["holds"] else "no",
    "figures": "figures",
}
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
        tables.append(("what must hold", table_of(report["checks"], _CHECKED)))
    return tables


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
    points = []
    for row in rows:
        panel = ", ".join(str(row[k]) for k in ("task", "group", "observe", "known") if k in row)
        known = {"model": row["name"], "panel": panel}
        for source, value in (("ours", row["auc"]), ("published", row.get("published"))):
            if value is not None:
                points.append({**known, "auc": value, "source": source})
    told = each(points, "source")
    legend: dict[str, Any] | None = {} if len(told) > 1 else None
    base = kit.plot(
        points,
        x=kit.by("auc:Q", title="AUC", scale=kit.FREE),
        y=kit.by("model:N", title=None, sort=each(rows, "name")),
        color=kit.colours("source", told, title=None, legend=legend),
        shape=kit.by("source:N", title=None, scale={"domain": told}, legend=legend),
        tooltip=["model:N", "panel:N", "source:N", kit.tip("auc", ".4f")],
    )
    dots = base.mark_point(size=60, filled=True).properties(width=(kit.WIDTH - 300) // 2)
    return dots.facet(facet=kit.by("panel:N", title=None, sort=None), columns=2)
