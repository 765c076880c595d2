"""The stage on which policies compete: a log, a span of it, and the rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from salticus.errors import ConfigError, InputError
from salticus.log.folder import Log
from salticus.log.truth import Truth, read_truth, sample
from salticus.simulate.readers import Readers, readers_of
from salticus.types import instant, moment


@dataclass(frozen=True, slots=True)
class Rules:
    """How a simulation is run; everything that holds for all policies alike.

    The log is replayed from `start`: `history` that is only observed, `warmup` that is crawled but
    not scored, and `days` that are. `observe`: "full" (the history was watched step by step, and
    every copy is fresh at its end) or "partial" (the log's own visits are the history). With
    `frozen`, predictors learn nothing after the history.
    """

    start: datetime | None = None
    tick: timedelta = timedelta(hours=2)
    history: timedelta = timedelta(0)
    warmup: timedelta = timedelta(days=15)
    days: int = 30
    pages: int | None = None
    spacing: str = "even"
    predictor: str = "gamma"
    observe: str = "full"
    frozen: bool = False
    demand: str | None = None
    runs: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """One run's world before anyone crawls it: the truth, the readers, and the four times."""

    log: Log
    rules: Rules
    truth: Truth
    readers: Readers
    start: datetime
    crawl: datetime
    score: datetime
    end: datetime
    seed: int


def set_stage(log: Log, rules: Rules, *, run: int = 0, truth: Truth | None = None) -> Stage:
    """The stage of one run; each run draws its own demand, coins and imputation.

    Raises ConfigError if the rules ask for more than the log has. `truth` saves reading it again.
    """
    _check(log, rules)
    seed = rules.seed + 1_000_003 * run
    if truth is None or truth.imputed:
        truth = read_truth(log, seed=seed)
    start = rules.start or _midnight(moment(truth.at[0]))
    crawl = start + rules.history
    score = crawl + rules.warmup
    end = score + timedelta(days=rules.days)
    if instant(end) > _last(log, truth):
        raise ConfigError(
            f"{log.folder}: the log ends {moment(_last(log, truth)):%Y-%m-%d}, but history, "
            f"warm-up and days end {end:%Y-%m-%d}; shorten them, or choose another --start"
        )
    if rules.pages is not None:
        truth = sample(truth, rules.pages, start, seed=rules.seed)
    truth = _until(truth, end)
    readers = readers_of(rules.demand, log, truth, seed=seed)
    return Stage(log, rules, truth, readers, start, crawl, score, end, seed)


def _check(log: Log, rules: Rules) -> None:
    fine = log.about.resolution
    truthful = log.has("values") or log.has("texts")
    if fine is not None and truthful and rules.tick < fine:
        raise ConfigError(
            f"{log.folder}: times are known to {_shown(fine)} only, so ticks of "
            f"{_shown(rules.tick)} would exploit an artefact; use --tick {_shown(fine)} or more"
        )
    if rules.observe not in ("full", "partial"):
        raise ConfigError(f"--observe is full or partial, not {rules.observe!r}")
    if rules.observe == "partial" and not log.has("visits"):
        raise InputError(f"{log.path('visits')}: no such file; --observe partial needs it")
    if rules.days < 1 or rules.runs < 1:
        raise ConfigError("--days and --runs must be 1 or more")


def _last(log: Log, truth: Truth) -> np.datetime64:
    """When the log ends: by its `span` (a bare date includes that day), else its last change."""
    span: Any = log.about.rest.get("span")
    try:
        last = datetime.fromisoformat(str(span[1])) if span else None
    except (ValueError, TypeError, IndexError):
        raise InputError(f"{log.folder / 'log.json'}: `span` is not two dates: {span!r}") from None
    if last is None:
        return truth.end + np.timedelta64(1, "us")
    bare = len(str(span[1])) == len("2026-01-31")
    last = last.replace(tzinfo=last.tzinfo or UTC) + timedelta(days=1 if bare else 0)
    return max(instant(last), truth.end)


def _until(truth: Truth, end: datetime) -> Truth:
    """The pages born before `end`, and what they did before it."""
    stop = truth.before(instant(end))
    cut = replace(truth, page=truth.page[:stop], at=truth.at[:stop], value=truth.value[:stop])
    return cut.take(truth.born < instant(end))


def _midnight(when: datetime) -> datetime:
    """The first midnight (UTC) at or after a time."""
    day = when.replace(hour=0, minute=0, second=0, microsecond=0)
    return day if day == when else day + timedelta(days=1)


def _shown(span: timedelta) -> str:
    """A span as one would write it.

    >>> _shown(timedelta(hours=8)), _shown(timedelta(days=1)), _shown(timedelta(minutes=10))
    ('8h', '1d', '10m')
    """
    seconds = int(span.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
