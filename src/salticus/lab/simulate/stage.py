"""The stage on which policies compete: a log, a span of it, and the rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from salticus.errors import ConfigError, InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import Truth, read_truth, sample
from salticus.exchange.write import spelt
from salticus.lab.simulate.logged import CrawlerHistory, logged_past
from salticus.lab.simulate.named import Estimates
from salticus.lab.simulate.readers import Readership, readers_of
from salticus.types import instant, moment

OBSERVE = ("own", "partial", "full", "logged")

_DAY = timedelta(days=1)
_WEIGHED = 14  # days
_USUAL = {"history": 60 * _DAY, "warmup": 15 * _DAY, "days": 30 * _DAY}


@dataclass(frozen=True, slots=True)
class InstaSettings:
    """InstaCrawl beside the policy, as in the `[desk]` settings: a `share` of the visits is set
    aside for clicks, of which the `gate` lets `gate_share` through: by how likely the copy is out
    of date, or with a `horizon` how likely the page changes within so long."""

    share: float
    gate: str = "instacrawl"
    gate_share: float = 0.2
    horizon: timedelta | None = None


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How a simulation is run; everything that holds for all policies alike.

    The log is replayed from `start`: `history` that is only observed, `warmup` that is crawled but
    not scored, and `days` that are; those not given are 60, 15 and 30 days, or as much less as
    the log is shorter. `estimates` say whose word counts on change, clicks and impressions (the
    `predictor`'s by default), `models` where those are that policies name. `observe` is what
    estimates rest on: "own" (the history was watched step by step, then the policy's own visits),
    "partial" (the log's visits are the history, then the policy's own), "full" (the whole log up to
    yesterday, whatever is visited) or "logged" (the log's visits, likewise). With `frozen`,
    predictors learn nothing after the history. The `copies` at the start are "fresh", "none" (a
    page is stale until it is visited) or "logged", those of the log's crawler; not given, they are
    its where its visits are the history, else fresh. `runs`
    not given are 5 where something is drawn or imputed anew in each, else 1. The share `explore` of
    the visits goes to pages drawn at random.

    With `insta`, clicks may bring visits at once, on the same budget. `delay` is the time between
    two visits to a host; not given, hosts take any number. The share `rendered` of the pages, drawn
    by a hash of (seed, page), costs 5 visits each.
    """

    start: datetime | None = None
    tick: timedelta = timedelta(hours=2)
    history: timedelta | None = None
    warmup: timedelta | None = None
    days: int | None = None
    pages: int | None = None
    spacing: str = "even"
    predictor: str = "rhythm"
    estimates: Estimates = Estimates()
    models: Path | None = None
    observe: str = "own"
    frozen: bool = False
    copies: str | None = None
    explore: float = 0.0
    insta: InstaSettings | None = None
    delay: timedelta | None = None
    rendered: float = 0.0
    demand: str | None = None
    runs: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """One run's world before anyone crawls it: the truth, the readers, and the four times.

    `past` is what the log's own crawler had learnt and held by the start of the crawl, if the
    rules ask for that.
    """

    log: Log
    rules: SimulationSettings
    truth: Truth
    readers: Readership
    start: datetime
    crawl: datetime
    score: datetime
    end: datetime
    seed: int
    past: CrawlerHistory | None = None

    @property
    def weighed(self) -> datetime:
        """From when on models are weighed against history: the last fortnight of the history, or
        its second half if that is shorter."""
        days = min(_WEIGHED, (self.crawl - self.start) // (2 * _DAY))
        return self.crawl - days * _DAY


def set_stage(
    log: Log, rules: SimulationSettings, *, run: int = 0, truth: Truth | None = None
) -> Stage:
    """The stage of one run; each run draws its own demand, coins and imputation.

    Raises ConfigError if the rules ask for more than the log has. `truth` saves reading it again.
    """
    _check(log, rules)
    seed = rules.seed + 1_000_003 * run
    if truth is None or truth.imputed:
        truth = read_truth(log, seed=seed)
    start = rules.start or _midnight(truth)
    last = moment(_last(log, truth))
    crawl, score, end = _times(rules, start, last)
    if end > last:
        raise ConfigError(
            f"{log.folder}: the log ends {last:%Y-%m-%d}, but history, warm-up and days end "
            f"{end:%Y-%m-%d}; shorten them, or choose another --start"
        )
    if rules.pages is not None:
        truth = sample(truth, rules.pages, start, seed=rules.seed)
    stop = truth.before(instant(end))  # what pages born before the end did before it
    truth = replace(truth, page=truth.page[:stop], at=truth.at[:stop], value=truth.value[:stop])
    truth = truth.take(truth.born < instant(end))
    readers = readers_of(rules.demand, log, truth, seed=seed)
    past = logged_past(log, truth, start, crawl) if rules.observe == "partial" else None
    return Stage(log, rules, truth, readers, start, crawl, score, end, seed, past)


def whole_stage(log: Log, *, seed: int = 0) -> Stage:
    """A stage whose history is all of a log but its last day."""
    truth = read_truth(log, seed=seed)
    start = _midnight(truth)
    known = (moment(_last(log, truth)) - start) // _DAY * _DAY
    spans: dict[str, Any] = {"history": known - _DAY, "warmup": timedelta(0), "days": 1}
    rules = SimulationSettings(start=start, tick=usual_tick(log), seed=seed, **spans)
    return set_stage(log, rules, truth=truth)


def _midnight(truth: Truth) -> datetime:
    """The first one, UTC."""
    return moment((truth.at[0] - np.timedelta64(1, "us")).astype("M8[D]") + 1)


def usual_tick(log: Log) -> timedelta:
    """Two hours, or as long as the log's times are known to."""
    return max(timedelta(hours=2), log.about.resolution or timedelta(0))


def runs_of(log: Log, rules: SimulationSettings) -> int:
    """How many runs the rules want."""
    drawn = (rules.demand or ("file" if log.has("demand") else "zipf")).startswith("zipf")
    imputed = not (log.has("values") or log.has("texts"))
    return rules.runs if rules.runs is not None else 5 if drawn or imputed else 1


def _check(log: Log, rules: SimulationSettings) -> None:
    fine = log.about.resolution
    truthful = log.has("values") or log.has("texts")
    if fine is not None and truthful and rules.tick < fine:
        raise ConfigError(
            f"{log.folder}: times are known to {spelt(fine)} only, so ticks of "
            f"{spelt(rules.tick)} would exploit an artefact; use --tick {spelt(fine)} or more"
        )
    if rules.observe not in OBSERVE:
        raise ConfigError(f"--observe is {', '.join(OBSERVE)}, not {rules.observe!r}")
    if rules.observe in ("partial", "logged") and not log.has("visits"):
        raise InputError(f"{log.path('visits')}: no such file; --observe {rules.observe} needs it")
    if rules.frozen and rules.observe in ("full", "logged"):
        raise ConfigError(
            f"--frozen: estimates that learn the log day by day (--observe {rules.observe}) cannot "
            "stop; use --observe own or partial"
        )
    if rules.copies == "logged" and rules.observe != "partial":
        raise ConfigError("--copies logged: add --observe partial, or there are none to be had")
    if rules.delay is not None and rules.delay <= timedelta(0):
        raise ConfigError("--delay must be longer than nothing")
    if min(rules.days or 1, rules.runs or 1) < 1:
        raise ConfigError("--days and --runs must be 1 or more")


def _times(
    rules: SimulationSettings, start: datetime, last: datetime
) -> tuple[datetime, datetime, datetime]:
    """When the crawl, the score and the end come; spans not given share what the others leave."""
    days = None if rules.days is None else rules.days * _DAY
    asked = {"history": rules.history, "warmup": rules.warmup, "days": days}
    given = {name: span for name, span in asked.items() if span is not None}
    usual = {name: span for name, span in _USUAL.items() if name not in given}
    known, wanted = (sum(spans.values(), timedelta(0)) for spans in (given, usual))
    share = min(1.0, max(0.0, (last - start - known) / wanted)) if wanted else 1.0
    spans = given | {name: max(span * share // _DAY, 1) * _DAY for name, span in usual.items()}
    crawl = start + spans["history"]
    score = crawl + spans["warmup"]
    return crawl, score, score + spans["days"]


def _last(log: Log, truth: Truth) -> np.datetime64:
    """When the log ends: by its `span`, or its last change if that is later."""
    try:
        ends = log.about.ends()
    except ValueError as error:
        raise InputError(f"{log.folder / 'log.json'}: `span`: {error}") from None
    after = truth.end + np.timedelta64(1, "us")
    return after if ends is None else max(instant(ends[1]) + np.timedelta64(1, "us"), after)
