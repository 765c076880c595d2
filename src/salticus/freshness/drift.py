"""Drift: what was foretold of pages, and what visits drawn by lot found, have parted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from salticus.types import Alert, Findings, Gauge

SPAN = 3 * 86_400_000_000  # µs that are looked back on
WHERE, KIND = "*", "drift"  # the alert is of all hosts
_SURE, _CALM = 4.0, 3.0  # standard errors at which the alarm begins, and below which it ends
_FAR, _NEAR = 1.4, 1.25  # likewise, how many times more or fewer changes than foretold
_FULL = 0.9  # of the span that must have been crawled: at first nothing is known of any page


@dataclass(frozen=True, slots=True)
class Drift:
    """Changes that exploring visits found, changes foretold of them, and how unlike they are.

    `z` is the difference in standard errors. These allow for changes that come in waves: they are
    the larger of what the chances themselves make likely, and of what the ticks differ by.
    """

    visits: int
    found: float
    foretold: float
    z: float
    full: bool

    @property
    def ratio(self) -> float:
        """Changes found for each that was foretold."""
        return self.found / self.foretold if self.foretold > 0 else inf if self.found else 1.0

    @property
    def parted(self) -> bool:
        """Whether the two have parted: surely, and by far."""
        return self.full and self._beyond(_SURE, _FAR)

    @property
    def settled(self) -> bool:
        """Whether they agree again."""
        return not self._beyond(_CALM, _NEAR)

    def _beyond(self, errors: float, times: float) -> bool:
        return abs(self.z) >= errors and not 1.0 / times < self.ratio < times


def drift_of(ticks: Sequence[Gauge], found: Findings) -> Drift:
    """Compare what was foretold for the time of each visit with what it found."""
    some = found.take(~np.isnan(found.found) & ~np.isnan(found.chance))
    beyond = some.found - some.chance
    _, tick = np.unique(some.at, return_inverse=True)
    by_tick = np.bincount(tick, weights=beyond - (beyond.mean() if len(beyond) else 0.0))
    error = max(float(some.chance @ (1.0 - some.chance)), float(by_tick @ by_tick)) ** 0.5
    days = sum(t.days for t in ticks)
    return Drift(
        visits=len(some),
        found=float(some.found.sum()),
        foretold=float(some.chance.sum()),
        z=float(beyond.sum()) / error if error > 0 else 0.0,
        full=days * 86_400e6 >= _FULL * SPAN,
    )


def drift_alert(drift: Drift, at: int) -> Alert | None:
    """The alert that begins or lasts, the end of it, or None if nothing is to be said."""
    if drift.parted:
        more = f"{drift.found:.0f} of {drift.visits} exploring visits found a change"
        fault = f"{more} in the last 3 days, {drift.foretold:.1f} were foretold"
        return Alert(WHERE, KIND, at, fault)
    return Alert(WHERE, KIND, at, over=True) if drift.settled else None
