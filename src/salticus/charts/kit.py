"""What several charts share: colours, axes, scales and data, in one form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#767676"
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A")
"""Colours that people with any colour vision tell apart (Okabe and Ito)."""

Table = tuple[tuple[str, ...], list[tuple[Any, ...]]]
"""Header and rows."""


def data(rows: Iterable[Any]) -> Any:
    """Rows (dicts or dataclasses) as the data of a chart."""
    import altair as alt

    values = [row if isinstance(row, dict) else asdict(row) for row in rows]
    return alt.Data(values=values)  # type: ignore[no-untyped-call]


def percent(**more: Any) -> Any:
    """An axis of shares."""
    import altair as alt

    return alt.Axis(format=".2~%", **more)


def log_axis(power: Sequence[int], steps: Sequence[int] = (1,), form: str = "~g") -> Any:
    """An axis with marks at `steps` times the powers of ten from `power[0]` to below `power[1]`."""
    import altair as alt

    return alt.Axis(format=form, values=[k * 10.0**p for p in range(*power) for k in steps])


def colours(name: str, values: Sequence[str], range_: Sequence[str] = COLOURS, **more: Any) -> Any:
    """A colour for each value of a column, in the order given, over and over."""
    import altair as alt

    chosen = [range_[k % len(range_)] for k in range(len(values))]
    return alt.Color(f"{name}:N", scale=alt.Scale(domain=list(values), range=chosen), **more)


def tip(name: str, form: str, title: str | None = None) -> Any:
    """A number that is told when it is pointed at."""
    import altair as alt

    return alt.Tooltip(f"{name}:Q", format=form, title=title or alt.Undefined)


def each(rows: Iterable[dict[str, Any]], name: str) -> list[Any]:
    """The values of a column, each once, in the order in which they come."""
    return list(dict.fromkeys(row[name] for row in rows))
