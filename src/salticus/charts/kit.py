"""What charts share: colours, axes, tips, marks on rows; all else is said as in Vega-Lite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#767676"
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A")
"""Colours that people with any colour vision tell apart (Okabe and Ito)."""

WIDTH = 780
"""Of a chart without its axes, in pixels: with them it fits into a page of 1000."""

PERCENT = {"format": ".2~%"}
"""An axis of shares."""

LOG = {"type": "log"}
FREE = {"zero": False}
"""A scale that need not begin at 0."""

_KINDS = {"Q": "quantitative", "N": "nominal", "O": "ordinal", "T": "temporal"}


def data(rows: Iterable[Any]) -> Any:
    """Rows (dicts or dataclasses) as the data of a chart."""
    import altair as alt

    values = [row if isinstance(row, dict) else asdict(row) for row in rows]
    return alt.Data(values=values)  # type: ignore[no-untyped-call]


def plot(rows: Iterable[Any], **channels: Any) -> Any:
    """A chart of rows that has no mark yet; channels are columns (see `by`), values or lists."""
    import altair as alt

    said = {name: _channel(name, channel) for name, channel in channels.items()}
    return alt.Chart(data(rows), encoding=alt.FacetedEncoding(**said))  # quicker than `encode`


def _channel(name: str, said: Any) -> Any:
    """A channel in the words of Vega-Lite: the end of a span (x2, y2) has the type of its start."""
    if isinstance(said, list | tuple):
        return [_channel(name, each) for each in said]
    column = by(said) if isinstance(said, str) else said
    return {key: column[key] for key in column if not (key == "type" and name in ("x2", "y2"))}


def by(column: str, **more: Any) -> dict[str, Any]:
    """A column, called as in Altair, as a channel of Vega-Lite.

    >>> by("price:Q", title="€")
    {'field': 'price', 'type': 'quantitative', 'title': '€'}
    """
    name, kind = column.split(":")
    return {"field": name, "type": _KINDS[kind], **more}


def tip(name: str, form: str, title: str | None = None) -> dict[str, Any]:
    """A number that is told when it is pointed at."""
    return by(f"{name}:Q", format=form, **({"title": title} if title else {}))


def log_axis(power: Sequence[int], steps: Sequence[int] = (1,), form: str = "~g") -> dict[str, Any]:
    """An axis with marks at `steps` times the powers of ten from `power[0]` to below `power[1]`."""
    return {"format": form, "values": [k * 10.0**p for p in range(*power) for k in steps]}


def colours(
    name: str, values: Sequence[str], range_: Sequence[str] = COLOURS, **more: Any
) -> dict[str, Any]:
    """A colour for each value of a column, in the order given, over and over."""
    chosen = [range_[k % len(range_)] for k in range(len(values))]
    return by(f"{name}:N", scale={"domain": list(values), "range": chosen}, **more)


def lines(points: Iterable[Any], dots: int = 0, **channels: Any) -> Any:
    """A line a colour, with dots of that size, if any."""
    return plot(points, **channels).mark_line(**({"point": {"size": dots}} if dots else {}))


def layered(*charts: Any) -> Any:
    """The charts upon one another, each with its own rows."""
    import altair as alt

    return alt.layer(*charts)


def beside(*charts: Any) -> Any:
    """The charts in a row, on one scale."""
    import altair as alt

    return alt.hconcat(*charts).resolve_scale(x="shared", y="shared", color="shared")


def stacked(chart: Any, name: str, order: Sequence[str]) -> Any:
    """The chart once for each value of a column, one below the other."""
    return chart.facet(row=by(f"{name}:N", title=None, sort=order))
