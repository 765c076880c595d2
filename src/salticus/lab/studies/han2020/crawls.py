"""The crawls of the study: every policy at every budget, on one log with the same models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from salticus.config import Budget
from salticus.exchange.folder import Log
from salticus.lab.simulate.compare import ContestEntry
from salticus.lab.simulate.contest import Told, simulate
from salticus.lab.simulate.stage import SimulationSettings
from salticus.lab.studies.paper import in_processes

Crawled = dict[tuple[str, float], ContestEntry]
"""What a policy achieved at a budget, by both."""


@dataclass(frozen=True, slots=True)
class Crawls:
    """A policy at several budgets (visits per page and day)."""

    policy: str
    budgets: tuple[float, ...]

    def entries(self, log: Path, rules: SimulationSettings) -> tuple[Crawled, tuple[str, ...]]:
        """What came of them, and what is to be known of the models."""
        budgets = [Budget(each, per_page=True) for each in self.budgets]
        contest = simulate(Log(log), rules, [self.policy], budgets)
        pairs = zip(self.budgets, contest.entries, strict=True)
        return {(self.policy, budget): entry for budget, entry in pairs}, contest.notes


def crawl_all(
    log: Path, rules: SimulationSettings, tasks: Sequence[Crawls], jobs: int, told: Told
) -> tuple[Crawled, list[str]]:
    """All crawls, in so many processes; and notes on them."""
    found: Crawled = {}
    notes: dict[str, None] = {}
    work = partial(Crawls.entries, log=log, rules=rules)
    for task, (entries, said) in zip(tasks, in_processes(work, tasks, jobs), strict=True):
        told(f"crawled: {task.policy}, {len(task.budgets)} budgets")
        found |= entries
        notes |= dict.fromkeys(said)
    return found, list(notes)
