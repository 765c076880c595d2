"""Probability of change: downloads with change over downloads, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from salticus.charts import kit
from salticus.types import Floats, Ints

PERCENT = ".3~%"
_Z = 1.959963984540054  # of the normal distribution, two-sided 95 %


@dataclass(frozen=True, slots=True)
class ChangeShare:
    """Downloads of a group of pages and those of them that showed a change.

    `probability` is changes / downloads as in Han et al. (2019), Fig. 2, with its 95 % interval;
    all three are None where nothing was downloaded. `pages` is None where pages are not counted.
    """

    name: str
    downloads: int
    changes: int
    probability: float | None
    low: float | None
    high: float | None
    pages: int | None = None

    def told(self) -> str:
        """The probability and its interval in words."""
        return f"{percent(self.probability)} ({percent(self.low)} to {percent(self.high)})"


def wilson(changes: Ints, downloads: Ints) -> tuple[Floats, Floats]:
    """The 95 % interval of Wilson (1927) for a share; NaN where there are no downloads.

    >>> low, high = wilson(np.array([0, 5]), np.array([10, 10]))
    >>> low.round(3), high.round(3)
    (array([0.   , 0.237]), array([0.278, 0.763]))
    """
    n = np.where(downloads > 0, downloads, np.nan)
    p = changes / n
    middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
    # rounding must not push a bound past the share that it surrounds
    return np.clip(middle - half, 0.0, p), np.clip(middle + half, p, 1.0)


def shares(
    names: Sequence[str], downloads: Ints, changes: Ints, pages: Sequence[int] | None = None
) -> list[ChangeShare]:
    """One share a name, in the order given."""
    low, high = wilson(changes, downloads)
    found = []
    for k, name in enumerate(names):
        n, c = int(downloads[k]), int(changes[k])
        p, least, most = (c / n, float(low[k]), float(high[k])) if n else (None, None, None)
        found.append(ChangeShare(name, n, c, p, least, most, None if pages is None else pages[k]))
    return found


def shares_of(frame: pl.DataFrame) -> list[ChangeShare]:
    """One share a row of a frame with `name`, `downloads`, `changes` and `pages`."""
    names, pages = frame["name"].to_list(), frame["pages"].to_list()
    return shares(names, frame["downloads"].to_numpy(), frame["changes"].to_numpy(), pages)


def percent(share: float | None) -> str | None:
    """A share in per cent, three digits.

    >>> percent(0.0022154), percent(0.5), percent(1.0), percent(0.0), percent(None)
    ('0.222 %', '50.0 %', '100 %', '0 %', None)
    """
    if share is None:
        return None
    return f"{100 * share:#.3g}".rstrip(".") + " %" if share else "0 %"


def share_tips(name: str) -> list[Any]:
    """What a share tells when pointed at."""
    return [
        kit.by("name:N", title=name),
        kit.tip("probability", ".4~%"),
        kit.tip("low", ".4~%", "95 % from"),
        kit.tip("high", ".4~%", "to"),
        kit.tip("changes", ","),
        kit.tip("downloads", ","),
    ]


def share_bars(base: Any, along: str, ticks: int) -> Any:
    """Bars with whiskers, their lengths along the x or the y axis."""
    title, axis = "probability of change per download", {"format": PERCENT, "tickCount": ticks}
    length = kit.by("probability:Q", title=title, axis=axis)
    bars = base.mark_bar(color=kit.BLUE).encode(**{along: length})
    return bars + base.mark_rule(color="#000").encode(**{along: "low:Q", f"{along}2": "high:Q"})
