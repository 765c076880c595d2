"""How likely each arm of a bandit is drawn, step by step (Han et al. 2020, Fig. 5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from salticus.charts import kit

Row = dict[str, Any]

_POINTS = 200


def arm_points(arms: Row, **about: Any) -> list[Row]:
    """The probabilities of a row's arms, at two hundred steps that are about even on a log scale,
    each with what it is about."""
    steps = len(arms["chances"])
    shown = sorted({min(steps, max(1, round(steps ** (k / _POINTS)))) for k in range(_POINTS + 1)})
    return [
        {**about, "arm": name, "step": step, "probability": chance}
        for step in shown
        if step <= steps
        for name, chance in zip(arms["names"], arms["chances"][step - 1], strict=True)
    ]


def arms_chart(rows: Iterable[Row]) -> Any:
    """A panel for each bandit and budget among the rows of a simulation."""
    mine = [row for row in rows if "arms" in row]
    panels = [f"{row['policy']}, budget {row['budget']}" for row in mine]
    points = [
        point
        for panel, row in zip(panels, mine, strict=True)
        for point in arm_points(row["arms"], panel=panel)
    ]
    names = list(dict.fromkeys(point["arm"] for point in points))
    chart = kit.lines(
        points,
        x=kit.by("step:Q", title="step", scale=kit.LOG),
        y=kit.by("probability:Q", title="probability", axis=kit.PERCENT),
        color=kit.colours("arm", names, title="arm", legend={"orient": "top", "columns": 3}),
        tooltip=["arm:N", "step:Q", kit.tip("probability", ".3f")],
    ).properties(width=kit.WIDTH, height=180)
    return kit.stacked(chart, "panel", panels)
