"""Figures over runs and days: medians, paired increases, resources saved at equal freshness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from salticus.lab.simulate.referee import Score
from salticus.lab.simulate.spending import Spending
from salticus.types import Floats

_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class ContestEntry:
    """One policy at one budget: the score of every run, and where the visits went on average.

    `budget` is in visits per page and day.
    """

    policy: str
    budget: float
    label: str
    scores: tuple[Score, ...]
    bound: float | None = None
    spending: Spending | None = None

    def values(self, name: str) -> Floats:
        """A daily figure of all runs, run after run."""
        return np.concatenate([score.column(name) for score in self.scores])

    def mean(self, name: str) -> float:
        """Mean over the runs of a figure that is one number a run."""
        return float(np.mean([getattr(score, name) for score in self.scores]))

    def daily(self) -> dict[str, list[Any]]:
        """Freshness day by day, the median over the runs."""
        daily: dict[str, list[Any]] = {"day": [day.isoformat() for day in self.scores[0].days]}
        for shown, name in (("click_freshness", "clicks"), ("page_freshness", "midnight")):
            middle = np.median([score.column(name) for score in self.scores], axis=0)
            daily[shown] = [known(x) for x in middle]
        return daily


def known(value: float) -> float | None:
    """A figure to six digits; None if it is not a number."""
    return round(float(value), 6) if np.isfinite(value) else None


def spread(values: Floats) -> dict[str, float | None]:
    """Median, mean and the central 95 % of the values; days without any are left out.

    >>> spread(np.array([1.0, 2.0, 3.0, np.nan]))
    {'median': 2.0, 'mean': 2.0, 'low': 1.05, 'high': 2.95}
    """
    some = values[np.isfinite(values)]
    if not len(some):
        return {"median": None, "mean": None, "low": None, "high": None}
    low, middle, high = np.quantile(some, (0.025, 0.5, 0.975))
    figures = {"median": middle, "mean": some.mean(), "low": low, "high": high}
    return {name: round(float(figure), 6) for name, figure in figures.items()}


def increases(entries: Sequence[ContestEntry]) -> list[dict[str, Any]]:
    """Click freshness of every policy against the first at equal budget, paired by run and day.

    The median of the paired increases, and the Wilcoxon signed-rank test of no difference
    (Han 2020, Table 5).
    """
    first = entries[0].policy
    base = {entry.budget: entry for entry in entries if entry.policy == first}
    others = [e for e in entries if e.policy != first and e.budget in base]
    return [_increase(e, base[e.budget]) for e in others]


def _increase(entry: ContestEntry, base: ContestEntry) -> dict[str, Any]:
    gain, p_value = paired_gains(entry, base)
    return {
        "policy": entry.policy,
        "against": base.policy,
        "budget": entry.label,
        "pairs": len(gain),
        "median_increase": float(np.median(gain)) if len(gain) else None,
        "p_value": p_value,
    }


def paired_gains(
    entry: ContestEntry, base: ContestEntry, name: str = "clicks"
) -> tuple[Floats, float | None]:
    """By what part a daily figure is higher, run by run and day by day; and how likely the signed
    ranks would be so uneven by chance (Wilcoxon), None if nothing differs."""
    from scipy.stats import wilcoxon

    ours, theirs = entry.values(name), base.values(name)
    both = np.isfinite(ours) & np.isfinite(theirs) & (theirs > 0)
    ours, theirs = ours[both], theirs[both]
    gain = (ours - theirs) / theirs
    return gain, float(wilcoxon(ours - theirs).pvalue) if np.any(gain) else None


def savings(entries: Sequence[ContestEntry]) -> list[dict[str, Any]]:
    """Visits that every policy saves against the first, at the click freshness the first reaches.

    A policy's freshness is interpolated between the simulated budgets; null where it lies outside
    of them. Mean over the runs with a 95 % bootstrap interval (three runs or more).
    """
    curves: dict[str, list[ContestEntry]] = {}
    for entry in sorted(entries, key=lambda e: e.budget):
        curves.setdefault(entry.policy, []).append(entry)
    base = curves[entries[0].policy]
    return [
        _saving(curve, target)
        for policy, curve in curves.items()
        if policy != base[0].policy and len(curve) > 1
        for target in base
    ]


def _saving(curve: list[ContestEntry], target: ContestEntry) -> dict[str, Any]:
    levels = [_level(target, run) for run in range(len(target.scores))]
    needed = np.array([_budget_for(curve, *level) for level in enumerate(levels)])
    each = 1 - needed / target.budget
    some = each[np.isfinite(each)]
    low, high = _interval(some)
    return {
        "policy": curve[0].policy,
        "against": target.policy,
        "at_budget": target.label,
        "freshness": round(float(np.nanmean(target.values("clicks"))), 6),
        "saving": float(some.mean()) if len(some) == len(each) else None,
        "low": low,
        "high": high,
    }


def _level(entry: ContestEntry, run: int) -> float:
    return float(np.nanmean(entry.scores[run].column("clicks")))


def _budget_for(curve: list[ContestEntry], run: int, level: float) -> float:
    """The budget at which a run's curve reaches a level; NaN if it lies outside."""
    reached = np.maximum.accumulate([_level(entry, run) for entry in curve])
    if not reached[0] <= level <= reached[-1]:
        return float("nan")
    return float(np.interp(level, reached, [entry.budget for entry in curve]))


def _interval(values: Floats) -> tuple[float | None, float | None]:
    if len(values) < 3:
        return None, None
    draws = np.random.default_rng(0).integers(0, len(values), (_RESAMPLES, len(values)))
    low, high = np.quantile(values[draws].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)
