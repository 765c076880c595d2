"""A contest of gates on the clicks of a log: the freshness that each keeps, and what it saves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from salticus import plugins
from salticus.allocate.gate import BUILTIN as GATES
from salticus.config import Budget
from salticus.crawl.opening import RENDERED
from salticus.exchange.folder import Log
from salticus.exchange.write import spelt
from salticus.features.metadata import hashes
from salticus.lab.simulate.clicking import WINDOW, clicks_of
from salticus.lab.simulate.compare import ContestEntry, known, spread
from salticus.lab.simulate.contest import about, stages_of, told_rules
from salticus.lab.simulate.estimates import is_model, model_notes
from salticus.lab.simulate.forecasts import loaded
from salticus.lab.simulate.referee import Score
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import InstaSettings, SimulationSettings, Stage
from salticus.models.training.recipe import Recipe, seen_pages
from salticus.types import Bools, Floats, Ints, Outcomes, Purpose, instant

Told = Callable[[str], None]

BASELINE = "uniform"
"""The gate that others are measured against."""

PERIOD = timedelta(days=5)
"""Han et al. (2019), §6.2.2."""


@dataclass(frozen=True, slots=True)
class GateContest:
    """Which gates compete, at which shares of the clicks, and by what they score clicks.

    Without a `horizon` the score is the chance that the copy is out of date, with one that of a
    change within so long (Han 2019, §6.1.2). `period` is the time that intervals are taken over.
    """

    shares: Sequence[float]
    gates: Sequence[str] = (BASELINE,)
    horizon: timedelta | None = None
    period: timedelta = PERIOD


@dataclass(frozen=True, slots=True)
class Tally:
    """Clicks of the measured days by group of pages and period: how many there were, found a fresh
    copy, and were sent; groups × periods, summed over the runs."""

    clicks: Floats
    fresh: Floats
    sent: Floats

    def resource(self, without: int | None = None) -> Floats:
        """R = C/N of each group (Han 2019, §6.1.4), of all periods but one."""
        return _over(self.sent, self.clicks, without)

    def freshness(self, without: int | None = None) -> Floats:
        """F of each group (eq. 3), of all periods but one."""
        return _over(self.fresh, self.clicks, without)


def _over(part: Floats, whole: Floats, without: int | None) -> Floats:
    kept = np.arange(whole.shape[1]) != (-1 if without is None else without)
    total = whole[:, kept].sum(axis=1)
    return np.asarray(part[:, kept].sum(axis=1) / np.where(total > 0, total, np.nan))


class SentVisits:
    """Remembers which pages were visited for a click, and when."""

    def __init__(self) -> None:
        self._pages: list[Ints] = []
        self._times: list[Any] = []

    def learn(self, outcomes: Outcomes) -> None:
        sent = outcomes.made & (outcomes.purpose == Purpose.INSTA)
        self._pages.append(outcomes.page[sent])
        self._times.append(outcomes.at[sent])

    def columns(self) -> tuple[Ints, Any]:
        """Pages and times."""
        if not self._pages:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype="M8[us]")
        return np.concatenate(self._pages), np.concatenate(self._times)


@dataclass(frozen=True, slots=True)
class GateEntry:
    """What one gate did at one share: its runs, and all of its clicks by group and period."""

    told: ContestEntry
    tally: Tally


def replay_requests(
    log: Log, rules: SimulationSettings, contest: GateContest, told: Told = lambda step: None
) -> dict[str, Any]:
    """Crawl the log with InstaCrawl alone, through gates that let a share of the clicks through.

    A row for each gate and share, of the scored days: the resource R = sent / clicks, the
    freshness that clicks find, of 6 h each (Han 2019, eq. 2, 3, Fig. 10), the visits that found a
    change, and `groups`: all offers, and if a model is asked those that its training has seen or
    held out. `savings`: clicks not sent at the freshness of the uniform gate (Fig. 11). Intervals
    are of 95 %, by periods.
    """
    for gate in contest.gates:
        plugins.load("gate", gate, GATES)
    stages = stages_of(log, rules, told)
    groups = list(groups_of(stages[0]))
    entries = gate_entries(stages, contest, told)
    return {
        "log": about(stages[0]),
        "rules": told_rules(stages),
        "score": "stale" if contest.horizon is None else spelt(contest.horizon),
        "rows": [_row(entry, groups) for entry in entries],
        "savings": list(savings_of(entries, groups)),
        "notes": [*model_notes(stages[0]), "each click is scored before it is sent or not"],
    }


def gate_entries(
    stages: Sequence[Stage], contest: GateContest, told: Told = lambda step: None
) -> list[GateEntry]:
    """Let every gate of a contest replay the clicks of the stages at every share."""
    budgets = [_plenty(stage) for stage in stages]
    found = []
    for gate in dict.fromkeys(contest.gates):
        for share in contest.shares:
            runs = []
            for number, (stage, budget) in enumerate(zip(stages, budgets, strict=True), 1):
                told(f"{gate}, share {share:g}, run {number} of {len(stages)}")
                insta = InstaSettings(1.0, gate, share, contest.horizon)
                rules = replace(stage.rules, insta=insta, explore=0.0)
                runs.append(_run(replace(stage, rules=rules), budget, contest.period))
            found.append(_joined(runs, gate, share))
    return found


def groups_of(stage: Stage) -> dict[str, Bools]:
    """Groups of the stage's pages: all, and if a model is asked those that its training has seen,
    and those that it held out."""
    truth, model = stage.truth, stage.rules.estimates.change.partition("+")[0]
    every = {"all": np.ones(len(truth), dtype=np.bool_)}
    if not is_model(model):
        return every
    manifest = loaded(Path(model)).manifest
    recipe = Recipe(unseen=manifest["recipe"]["unseen"], seed=manifest["recipe"]["seed"])
    if not recipe.unseen:
        return every
    stop = instant(datetime.fromisoformat(manifest["data"]["spans"]["train"][1]))
    seen = seen_pages(hashes(truth.names), recipe) & (truth.born < stop)
    return {**every, "seen": seen, "unseen": ~seen}


def _plenty(stage: Stage) -> Budget:
    """A budget that pays for a visit at every click."""
    number = (clicks_of(stage).at - instant(stage.crawl)) // np.timedelta64(stage.rules.tick)
    most = int(np.bincount(number.astype(np.int64), minlength=1).max()) + 1
    return Budget(most * RENDERED * 86_400 / stage.rules.tick.total_seconds(), per_page=False)


def _run(stage: Stage, budget: Budget, period: timedelta) -> tuple[Score, Tally]:
    """One run; its score tells the freshness of windows instead of days."""
    sent = SentVisits()
    score = run(stage, "uniform", budget, [sent])  # which has nothing left to spend
    settled = score.windows[(stage.score - stage.crawl) // WINDOW :]
    return replace(score, clicks=settled), _tally(stage, score.found_stale, sent, period)


def _joined(runs: Sequence[tuple[Score, Tally]], gate: str, share: float) -> GateEntry:
    scores = tuple(score for score, _ in runs)
    sums = [sum(getattr(tally, name) for _, tally in runs) for name in Tally.__slots__]
    sent = float(np.mean([score.visits / max(1, score.clicked) for score in scores]))
    return GateEntry(ContestEntry(gate, sent, f"{share:g}", scores), Tally(*sums))


def _tally(stage: Stage, stale: Bools, sent: SentVisits, period: timedelta) -> Tally:
    """The clicks of the whole periods; of all measured days, if there is not even one."""
    clicks, groups = clicks_of(stage), groups_of(stage)
    whole = period if stage.score + period <= stage.end else stage.end - stage.score
    periods = (stage.end - stage.score) // whole
    step, first = np.timedelta64(whole), instant(stage.score)

    def counted(rows: Ints, at: Any) -> Floats:
        number = (at - first) // step
        inside = (at >= first) & (number < periods)
        each = [
            np.bincount(number[inside & who[rows]].astype(np.int64), minlength=periods)
            for who in groups.values()
        ]
        return np.array(each, dtype=np.float64)

    pages, at = sent.columns()
    fresh = counted(clicks.page[~stale], clicks.at[~stale])
    rows = np.searchsorted(stage.truth.ids, pages)
    return Tally(counted(clicks.page, clicks.at), fresh, counted(rows, at))


def by_period(figure: Callable[[int | None], Floats], periods: int) -> tuple[Floats, Floats]:
    """A figure of each group over all periods, and half its 95 % interval: the jackknife's, from
    the figure without each period in turn (Efron and Stein 1981); NaN of fewer than two periods.

    >>> x = np.array([1.0, 2.0, 3.0])
    >>> mean = lambda without: np.delete(x, [] if without is None else without).mean(keepdims=True)
    >>> [each.round(2) for each in by_period(mean, 3)]
    [array([2.]), array([2.48])]
    """
    from scipy.stats import t

    whole = figure(None)
    if periods < 2:
        return whole, np.full(len(whole), np.nan)
    less = np.array([figure(period) for period in range(periods)])
    error = np.sqrt((periods - 1) / periods * ((less - less.mean(axis=0)) ** 2).sum(axis=0))
    return whole, np.asarray(t.ppf(0.975, periods - 1) * error)


def _row(entry: GateEntry, groups: Sequence[str]) -> dict[str, Any]:
    told, tally = entry.told, entry.tally
    windows = np.array([score.windows for score in told.scores])
    middle = [None if np.isnan(w).all() else float(np.nanmedian(w)) for w in windows.T]
    periods = tally.clicks.shape[1]
    fresh, half = by_period(tally.freshness, periods)
    return {
        "gate": told.policy,
        "budget": told.label,
        "runs": len(told.scores),
        "requests": told.scores[0].clicked,
        "resource": told.budget,
        "freshness": spread(told.values("clicks")),
        "found": told.mean("caught"),
        "windows": middle,
        "groups": [
            {
                "group": name,
                "clicks": int(tally.clicks[k].sum()),
                "resource": known(tally.resource()[k]),
                **_interval("freshness", fresh[k], half[k]),
            }
            for k, name in enumerate(groups)
        ],
    }


def savings_of(entries: Sequence[GateEntry], groups: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The clicks that each gate need not send, at the freshness of the uniform one and of its
    share; none without that.

    How many a gate needs is read off its freshness between the shares that were tried; nothing sent
    and everything sent are the same of every gate. None where its freshness is never that.
    """
    base = [entry for entry in entries if entry.told.policy == BASELINE]
    ends = [entry.tally for entry in base if float(entry.told.label) in (0.0, 1.0)]
    for gate in dict.fromkeys(entry.told.policy for entry in entries):
        mine = [entry.tally for entry in entries if entry.told.policy == gate]
        if gate == BASELINE or len(mine) + len(ends) < 2:
            continue
        for target in (entry for entry in base if float(entry.told.label) > 0):
            yield from _savings(gate, [*mine, *ends], target, groups)


def _savings(
    gate: str, curve: Sequence[Tally], target: GateEntry, groups: Sequence[str]
) -> Iterator[dict[str, Any]]:
    level = target.tally

    def saved(without: int | None) -> Floats:
        sent = np.array([tally.resource(without) for tally in curve])
        fresh = np.array([tally.freshness(without) for tally in curve])
        needed, spent = _needed(sent, fresh, level.freshness(without)), level.resource(without)
        return 1.0 - needed / np.where(spent > 0, spent, np.nan)

    saving, half = by_period(saved, level.clicks.shape[1])
    for k, name in enumerate(groups):
        yield {
            "gate": gate,
            "against": BASELINE,
            "at_budget": target.told.label,
            "group": name,
            "freshness": known(level.freshness()[k]),
            **_interval("saving", saving[k], half[k]),
        }


def _needed(sent: Floats, fresh: Floats, level: Floats) -> Floats:
    """The least share to send for a freshness, of each group; shares × groups were tried.

    >>> tried = np.array([[0.0], [0.5], [1.0]])
    >>> _needed(tried, np.array([[0.4], [0.8], [0.8]]), np.array([0.8])), _needed(
    ...     tried, np.array([[0.4], [0.8], [0.9]]), np.array([0.6]))
    (array([0.5]), array([0.25]))
    """
    found = np.full(len(level), np.nan)
    for k, wanted in enumerate(level):
        order = np.argsort(sent[:, k], kind="stable")
        share, reached = sent[order, k], np.maximum.accumulate(fresh[order, k])
        at = int(np.searchsorted(reached, wanted))
        if at == 0 and wanted == reached[0]:
            found[k] = share[0]
        elif 0 < at < len(reached):
            part = (wanted - reached[at - 1]) / (reached[at] - reached[at - 1])
            found[k] = share[at - 1] + part * (share[at] - share[at - 1])
    return found


def _interval(name: str, value: float, half: float) -> dict[str, float | None]:
    return {name: known(value), "low": known(value - half), "high": known(value + half)}
