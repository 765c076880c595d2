"""A contest on one stage, over several runs, of policies and budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from salticus import allocate, plugins
from salticus.allocate.base import Spaced
from salticus.config import Budget
from salticus.exchange.folder import Log
from salticus.exchange.truth import read_truth
from salticus.exchange.write import spelt
from salticus.lab.simulate.arms import told_arms
from salticus.lab.simulate.clairvoyant import bound
from salticus.lab.simulate.compare import ContestEntry, increases, known, savings, spread
from salticus.lab.simulate.estimates import model_notes
from salticus.lab.simulate.fitting import fitted
from salticus.lab.simulate.named import FITTED, contestant, parsed
from salticus.lab.simulate.run import ruled, run
from salticus.lab.simulate.spending import spending, together
from salticus.lab.simulate.stage import SimulationSettings, Stage, runs_of, set_stage

Told = Callable[[str], None]

PEERS = (
    "uniform",
    "fixed_interval",
    "nutch",
    "stormcrawler",
    "change_proportional",
    "lambdacrawl",
    "leap",
    "clairvoyant",
)
"""Who competes if nobody is named; what the log's own crawler did comes first if it is known."""


ALL_KNOWING = ("clairvoyant", "logged")
"""Policies that know more than a crawler can; they are made for the log."""

COMPANY = ("lambdacrawl", "uniform")
"""Beside whom a policy that competes alone is drawn."""


def in_company(policies: Sequence[str]) -> tuple[str, ...]:
    """The policies, and for one alone those that show what is special about it.

    >>> in_company(["leap"]), in_company(["leap", "nutch"])
    (('leap', 'lambdacrawl', 'uniform'), ('leap', 'nutch'))
    """
    return tuple(dict.fromkeys([*policies, *COMPANY])) if len(policies) == 1 else tuple(policies)


def usual_policies(log: Log) -> tuple[str, ...]:
    """The contestants if nobody is named."""
    return ("logged", *PEERS) if log.has("visits") else PEERS


@dataclass(frozen=True, slots=True)
class Contest:
    """What a simulation found: an entry for each policy and budget, and remarks on the log."""

    log: dict[str, Any]
    rules: dict[str, Any]
    entries: tuple[ContestEntry, ...]
    notes: tuple[str, ...]

    def report(self, shown: Sequence[str] | None = None) -> dict[str, Any]:
        """The result as plain data.

        Of other policies than those `shown` (not given: all) it tells only where the visits went.
        """
        entries = [e for e in self.entries if shown is None or e.policy in shown]
        several = len({e.policy for e in entries}) > 1
        return {
            "log": self.log,
            "rules": self.rules,
            "rows": [self._row(entry) for entry in entries],
            "increases": increases(entries) if several else [],
            "savings": savings(entries) if several else [],
            "spending": [
                {"policy": entry.policy, "budget": entry.label, "cells": entry.spending.cells()}
                for entry in self.entries
                if entry.spending
            ],
            "notes": list(self.notes),
        }

    def _row(self, entry: ContestEntry) -> dict[str, Any]:
        row = {
            "policy": entry.policy,
            "budget": entry.label,
            "spacing": spacing_of(entry.policy, self.rules["spacing"]),
            "runs": len(entry.scores),
            "click_freshness": spread(entry.values("clicks")),
            "page_freshness": spread(entry.values("midnight")),
            "page_freshness_ticks": spread(entry.values("ticks")),
            "untouched": spread(entry.values("untouched")),
            "young": _young(entry),
            "staleness_age_days": round(entry.mean("age"), 6),
            "harmonic_staleness": round(entry.mean("harmonic"), 6),
            "visits_per_page_day": round(entry.mean("visits_per_page_day"), 6),
            "visits_failed": round(entry.mean("failed") / max(1.0, entry.mean("visits")), 6),
            "changes_caught": entry.mean("caught"),
            "changes_missed": entry.mean("missed"),
            "interval_days": known(entry.mean("gap")),
            "seconds": round(entry.mean("seconds"), 3),
            "daily": entry.daily(),
        }
        if drawn := [score.arms for score in entry.scores if score.arms]:
            row["arms"] = told_arms(drawn)
        if self.rules["rendered"]:
            row["cost_per_page_day"] = round(entry.mean("cost") / entry.mean("page_days"), 6)
        if self.rules["insta"] is not None:
            row |= _clicked(entry)
        return row if entry.bound is None else {**row, "bound": round(entry.bound, 6)}


def _young(entry: ContestEntry) -> dict[str, float | None]:
    """Clicks on pages younger than a week (mean of the runs), and how many found them fresh."""
    clicks, fresh = np.sum([score.young for score in entry.scores], axis=0).tolist()
    return {
        "clicks": round(clicks / len(entry.scores), 3),
        "click_freshness": round(fresh / clicks, 6) if clicks else None,
    }


def _clicked(entry: ContestEntry) -> dict[str, Any]:
    """What clicks found that may bring visits, and the visits for each purpose; means of runs."""
    asked, runs = entry.mean("clicked"), len(entry.scores)
    purposes = sum((score.purposes for score in entry.scores), Counter[str]())
    return {
        "clicks": asked,
        "stale_clicks": round(entry.mean("stale_clicks") / asked, 6) if asked else None,
        "visits_by_purpose": {name: purposes[name] / runs for name in sorted(purposes)},
    }


def spacing_of(policy: str, usual: str) -> str:
    """How the visits of a policy are spaced: as its name says, as it must be, or as is usual.

    >>> spacing_of("uniform@coin", "even"), spacing_of("uniform", "even")
    ('coin', 'even')
    """
    name, spacing, _ = parsed(policy)
    if spacing or name in ALL_KNOWING:
        return spacing or usual
    made = plugins.make("policy", name, allocate.BUILTIN)
    return made.spacing if isinstance(made, Spaced) else usual


def simulate(
    log: Log,
    rules: SimulationSettings,
    policies: Sequence[str],
    budgets: Sequence[Budget],
    told: Told = lambda step: None,
) -> Contest:
    """Let every policy crawl the log with every budget. `told` hears of each step.

    The same seed gives the same result, whatever else is in the contest.
    """
    stages = stages_of(log, rules, told)
    if rules.estimates.change == FITTED:
        told("fitting a rhythm to the history")
        fitted(stages[0])  # the runs share what it finds
    entries = [
        _entry(stages, policy, budget, told)
        for policy in dict.fromkeys(policies)
        for budget in (budgets if policy != "logged" else (None,))
    ]
    rules_told = {**told_rules(stages), "demand": _demand(stages[0])}
    notes = dict.fromkeys(chain(_notes(stages[0]), _notes_on_models(stages[0], policies)))
    return Contest(about(stages[0]), rules_told, tuple(entries), tuple(notes))


def about(stage: Stage) -> dict[str, Any]:
    """Name, folder and size of the log that is replayed."""
    log = stage.log
    return {"name": log.about.name, "folder": str(log.folder), "pages": len(stage.truth)}


def stages_of(log: Log, rules: SimulationSettings, told: Told) -> list[Stage]:
    """The stage of every run."""
    told("reading the log")
    truth = read_truth(log, seed=rules.seed)
    return [set_stage(log, rules, run=k, truth=truth) for k in range(runs_of(log, rules))]


def _entry(stages: Sequence[Stage], policy: str, budget: Budget | None, told: Told) -> ContestEntry:
    pages = len(stages[0].truth)
    each = None if budget is None else budget.per_day(pages) / pages
    label = "logged" if each is None else f"{each:.6g}"
    scores, spent = [], []
    for number, stage in enumerate(stages, 1):
        told(f"{policy}, budget {label}, run {number} of {len(stages)}")
        score = run(stage, policy, budget)
        spent.append(spending(stage, score.visited))
        scores.append(replace(score, visited=score.visited[:0]))  # a column a run is too much
    least = None
    if policy == "clairvoyant" and each is not None:
        least = float(np.mean([bound(stage, _most(stage, each)) for stage in stages]))
    if each is None:
        each = float(np.mean([score.visits_per_page_day for score in scores]))
    return ContestEntry(policy, each, label, tuple(scores), least, together(spent))


def _most(stage: Stage, each: float) -> float:
    """Visits that the ledger can have granted by the end, its opening balance included."""
    days = (stage.end - stage.crawl + 2 * stage.rules.tick) / timedelta(days=1)
    return each * len(stage.truth) * days + 1


def told_rules(stages: Sequence[Stage]) -> dict[str, Any]:
    """The rules as plain data, with the times and runs that came of them."""
    stage = stages[0]
    found = {
        "start": stage.start,
        "history": stage.crawl - stage.start,
        "warmup": stage.score - stage.crawl,
        "days": (stage.end - stage.score).days,
        "runs": len(stages),
    }
    return plain({**asdict(stage.rules), **found})


def _demand(stage: Stage) -> str:
    return stage.rules.demand or ("zipf:1.1" if stage.readers.synthetic else "file")


def _notes(stage: Stage) -> list[str]:
    notes = []
    if stage.truth.imputed:
        notes.append(
            "the log has visits but no values.parquet: changes are imputed, at random between the "
            "visits that enclose them, anew in each run; low and high show the spread"
        )
    if stage.readers.synthetic and _demand(stage) != "uniform":
        notes.append(f"demand is synthetic ({_demand(stage)}), drawn anew in each run")
    if stage.log.about.resolution is None and not stage.truth.imputed:
        notes.append("log.json gives no resolution; ticks finer than its times exploit artefacts")
    return notes


def _notes_on_models(stage: Stage, policies: Sequence[str]) -> Iterator[str]:
    """What is to be known of the models that the rules or names of policies ask for."""
    for policy in policies:
        rules = ruled(stage.rules, contestant(policy, stage.rules.models))
        yield from model_notes(replace(stage, rules=rules))


def plain(rules: dict[str, Any]) -> dict[str, Any]:
    """The rules with times and spans as text."""

    def text(value: Any) -> Any:
        if isinstance(value, dict):
            return plain(value)
        if isinstance(value, timedelta):
            return spelt(value)
        if isinstance(value, Path):
            return str(value)
        return value.isoformat() if isinstance(value, datetime) else value

    return {name: text(value) for name, value in rules.items()}
