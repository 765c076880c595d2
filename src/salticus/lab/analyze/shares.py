"""Probability of change: downloads with change over downloads, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from salticus.types import Floats, Ints

if TYPE_CHECKING:
    import polars as pl

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


def shares(names: list[str], downloads: Ints, changes: Ints) -> list[ChangeShare]:
    """One share a name, in the order given."""
    low, high = wilson(changes, downloads)
    found = []
    for k, name in enumerate(names):
        n, c = int(downloads[k]), int(changes[k])
        known = (c / n, float(low[k]), float(high[k])) if n else (None, None, None)
        found.append(ChangeShare(name, n, c, *known))
    return found


def shares_of(frame: pl.DataFrame) -> list[ChangeShare]:
    """One share a row of a frame with `name`, `downloads`, `changes` and `pages`."""
    from dataclasses import replace

    plain = shares(
        frame["name"].to_list(), frame["downloads"].to_numpy(), frame["changes"].to_numpy()
    )
    return [replace(s, pages=n) for s, n in zip(plain, frame["pages"].to_list(), strict=True)]


def percent(share: float | None) -> str | None:
    """A share in per cent, three digits.

    >>> percent(0.0022154), percent(0.5), percent(1.0), percent(0.0), percent(None)
    ('0.222 %', '50.0 %', '100 %', '0 %', None)
    """
    if share is None:
        return None
    return f"{100 * share:#.3g}".rstrip(".") + " %" if share else "0 %"
