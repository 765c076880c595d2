"""Survival curves: how likely pages are still what we hold, for all pages at once."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from salticus.types.arrays import Bools, Floats, Instant, Ints, Times, days_between


class Survival(Protocol):
    """Probability that a page is unchanged `ages` days after its last answer, for all pages.

    Laws: `unchanged` starts at 1, never rises, stays in [0, 1]; `integral` is its integral from 0.
    Together they give the worth of a visit, V(τ) = μ[∫₀^τ S − τS(τ)]. `rates` are changes a day in
    the long run, for policies that know of no more than that.
    """

    def unchanged(self, ages: Floats) -> Floats: ...

    def integral(self, ages: Floats) -> Floats: ...

    def rates(self) -> Floats: ...

    def take(self, rows: Ints | Bools) -> Survival: ...


@runtime_checkable
class Valued(Protocol):
    """A curve that knows V better than from its own parts, as one that sees the coming week does:
    V(τ) without μ, in days, for visits in steps of so many days."""

    def worth(self, ages: Floats, step: float) -> Floats: ...


@runtime_checkable
class Anchored(Protocol):
    """A curve for which it matters at which hour of the week a page's age begins to count."""

    def since(self, last: Times) -> Survival:
        """The same curves for pages that answered at these times; as many as there are rows."""


@runtime_checkable
class Foreseeing(Protocol):
    """A curve that knows better than by the ages of copies how likely pages change soon."""

    def changing(self, at: Instant, days: float) -> Floats:
        """The probability that each page changes within so many days from a time on, which is not
        before the one at which the curve was made."""


def aged(curve: Survival, last: Times, at: Times | Instant) -> tuple[Survival, Floats]:
    """The curves of pages that answered at these times, and their ages at a time, in days; 0 of
    those that never answered."""
    if isinstance(curve, Anchored):
        curve = curve.since(last)
    ages = days_between(last, at)
    ages[np.isnat(last)] = 0.0
    return curve, np.maximum(ages, 0.0, out=ages)


def changing(curve: Survival, last: Times, at: Instant, days: float) -> Floats:
    """P(a page changes within so many days from a time on), if it has not since its last answer:
    (S(u) − S(u + K))/S(u) (Han 2019, §4).

    Pages that never answered are judged as if they had now. Law: under a constant rate it is
    1 − exp(−ΔK), however old the copy is.
    """
    if isinstance(curve, Foreseeing):
        return curve.changing(at, days)
    curve, ages = aged(curve, np.where(np.isnat(last), at, last), at)
    now, then = curve.unchanged(ages), curve.unchanged(ages + days)
    sure = now <= 0.0  # older than floats can tell
    chance = 1.0 - np.minimum(then, now) / np.where(sure, 1.0, now)
    return np.where(sure, 1.0, np.maximum(chance, 0.0))
