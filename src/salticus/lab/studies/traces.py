"""`salticus study traces`: every policy on logs of real changes, by one protocol.

Daily ticks; 60 days of fully observed history, at whose end every copy is fresh; 15 days warm-up;
40 days measured; Zipf demand drawn anew in each of ten runs; estimates from the history and from
the policy's own visits. Every figure of a run is a mean over its days, and the median over the runs
is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from salticus import allocate
from salticus.config import Budget
from salticus.exchange.folder import Log
from salticus.exchange.truth import Truth, read_truth
from salticus.lab.simulate.compare import known
from salticus.lab.simulate.contest import plain
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import SimulationSettings, Stage, set_stage

_DAY = timedelta(days=1)

PROTOCOL = SimulationSettings(
    tick=_DAY, history=60 * _DAY, warmup=15 * _DAY, days=40, demand="zipf:1.1", runs=10
)
BUDGETS = ("1%", "5%", "10%", "20%", "50%")
CLAIRVOYANT = "clairvoyant"
RIVALS = ("lambdacrawl@coin", "lambdacrawl")
OURS = "leap"

Told = Callable[[str], None]


def everyone() -> tuple[str, ...]:
    """Every policy by even visits, the two that are published with coins by coins too, and the one
    that knows everything."""
    return (*allocate.BUILTIN, "uniform@coin", "lambdacrawl@coin", CLAIRVOYANT)


@dataclass(frozen=True, slots=True)
class Trace:
    """A log, the first day of its history, and how many of its pages are drawn (None = all)."""

    folder: Path
    start: datetime | None = None
    pages: int | None = None

    @property
    def name(self) -> str:
        return self.folder.resolve().name


@dataclass(frozen=True, slots=True)
class Field:
    """Who runs, on which budgets, by which rules."""

    policies: Sequence[str]
    budgets: Sequence[Budget]
    rules: SimulationSettings = PROTOCOL


@dataclass(frozen=True, slots=True)
class Task:
    """One run of one policy with one budget on one trace."""

    trace: Trace
    rules: SimulationSettings
    policy: str
    budget: Budget
    run: int

    def measure(self) -> RunFigures:
        """Run it."""
        stage = _stage(self.trace, self.rules, self.run)
        pages = len(stage.truth)
        score = run(stage, self.policy, self.budget)
        fresh = min(1.0, float(np.nanmean(score.column("clicks"))))
        return RunFigures(
            trace=self.trace.name,
            budget=self.budget.per_day(pages) / pages,
            policy=self.policy,
            run=self.run,
            staleness=1.0 - fresh,
            click_freshness=fresh,
            page_freshness=float(np.mean(score.column("midnight"))),
            visits_per_page_day=score.visits_per_page_day,
            interval_days=score.gap,
            pages_visited=np.count_nonzero(score.visited) / pages,
            seconds=score.seconds,
        )


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What one run achieved, means over its measured days.

    `staleness` is the click-weighted share of reads that found a stale copy, `interval_days` the
    mean over the visits of the time since the page's last answer, `pages_visited` the share of the
    pages that got any visit.
    """

    trace: str
    budget: float
    policy: str
    run: int
    staleness: float
    click_freshness: float
    page_freshness: float
    visits_per_page_day: float
    interval_days: float
    pages_visited: float
    seconds: float


@lru_cache(maxsize=1)
def _truth(folder: Path, seed: int) -> Truth:
    return read_truth(Log(folder), seed=seed)


@lru_cache(maxsize=32)
def _stage(trace: Trace, rules: SimulationSettings, number: int) -> Stage:
    rules = replace(rules, start=trace.start, pages=trace.pages)
    return set_stage(Log(trace.folder), rules, run=number, truth=_truth(trace.folder, rules.seed))


def study(
    traces: Sequence[Trace], field: Field, *, jobs: int = 1, told: Told = lambda step: None
) -> dict[str, Any]:
    """Run everything, in so many processes, and compare. The same seed gives the same result."""
    tasks = [
        Task(trace, field.rules, policy, budget, number)
        for trace in traces
        for number in range(field.rules.runs or 1)
        for budget in field.budgets
        for policy in dict.fromkeys(field.policies)
    ]
    figures = []
    for number, one in enumerate(_measured(tasks, jobs), 1):
        told(f"{number} of {len(tasks)}: {one.trace}, budget {one.budget:.4g}, {one.policy}")
        figures.append(one)
    return {
        "protocol": plain(asdict(field.rules)),
        "traces": [_about(trace, field.rules) for trace in traces],
        "rows": list(medians(figures)),
        "comparisons": list(comparisons(figures)),
        "runs": [asdict(one) for one in figures],
    }


def _measured(tasks: Sequence[Task], jobs: int) -> Iterator[RunFigures]:
    if jobs <= 1:
        yield from map(Task.measure, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(Task.measure, tasks)


def _about(trace: Trace, rules: SimulationSettings) -> dict[str, Any]:
    stage = _stage(trace, rules, 0)
    return {
        "name": trace.name,
        "log": stage.log.about.name,
        "start": stage.start.date().isoformat(),
        "pages": len(stage.truth),
    }


# ------------------------------------------------------------------------------------- the tables


def _places(figures: Iterable[RunFigures]) -> dict[tuple[str, float], dict[str, list[RunFigures]]]:
    """The runs of each policy, by trace and budget."""
    found: dict[tuple[str, float], dict[str, list[RunFigures]]] = {}
    for one in figures:
        place = found.setdefault((one.trace, one.budget), {})
        place.setdefault(one.policy, []).append(one)
    return found


def medians(figures: Iterable[RunFigures]) -> Iterator[dict[str, Any]]:
    """One row for each trace, budget and policy: the median over the runs of every figure."""
    for (trace, budget), policies in _places(figures).items():
        for policy, runs in policies.items():
            row = {"trace": trace, "budget": round(budget, 6), "policy": policy}
            names = [n for n in RunFigures.__dataclass_fields__ if n not in (*row, "run")]
            middle = {n: float(np.median([getattr(one, n) for one in runs])) for n in names}
            yield {**row, "runs": len(runs), **{n: known(x) for n, x in middle.items()}}


def comparisons(figures: Iterable[RunFigures], ours: str = OURS) -> Iterator[dict[str, Any]]:
    """Our policy against LambdaCrawl, by coins and even, paired over the draws of the demand."""
    for (trace, budget), policies in _places(figures).items():
        for rival in RIVALS:
            if ours in policies and rival in policies:
                stale = {
                    name: np.array([one.staleness for one in sorted(runs, key=lambda one: one.run)])
                    for name, runs in policies.items()
                }
                where = {"trace": trace, "budget": round(budget, 6), "policy": ours}
                yield {**where, "against": rival, **_against(stale, ours, rival)}


def _against(stale: dict[str, Any], ours: str, rival: str) -> dict[str, float | None]:
    """Staleness of both, their ratio, and the share of the gap to the clairvoyant that is closed.

    `ratio` and `gap_closed` are of the medians; `paired` is the median of the ratios of each run,
    `worst` the highest of them.
    """
    mine, theirs = stale[ours], stale[rival]
    with np.errstate(divide="ignore", invalid="ignore"):
        paired = mine / theirs
        closed = np.nan
        if CLAIRVOYANT in stale:
            gap = np.median(theirs) - np.median(stale[CLAIRVOYANT])
            closed = (np.median(theirs) - np.median(mine)) / gap
        figures = {
            "staleness": np.median(mine),
            "theirs": np.median(theirs),
            "ratio": np.median(mine) / np.median(theirs),
            "paired": np.median(paired),
            "worst": paired.max(),
            "gap_closed": closed,
        }
    return {name: known(float(figure)) for name, figure in figures.items()}
