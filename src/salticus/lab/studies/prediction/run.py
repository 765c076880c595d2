"""`salticus study predict`: one of four tables of a log; tasks and daily logs here.

Of daily logs of real changes: do models beat simple rules, on later days and on new merchants?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np

from salticus.errors import ConfigError
from salticus.exchange.folder import Log
from salticus.lab.studies.prediction.arena import Arena, ArenaSettings, Told, arena, arenas, judged
from salticus.lab.studies.prediction.changes import change_study, cold_study
from salticus.lab.studies.prediction.entrants import DAILY, RULES, TASKS, Entrant, some
from salticus.lab.studies.prediction.published import TASKS as PUBLISHED
from salticus.lab.studies.prediction.verdicts import Row, at_least, at_most, verdict
from salticus.models.model import Calibrated, Curve
from salticus.models.training.evaluate import Scored
from salticus.models.training.recipe import SPLITS, Recipe, TimeSplit
from salticus.types import Bools

TABLES = ("changes", "tasks", "daily", "cold")
CALIBRATED = 0.01  # expected calibration error
RULE_KEYS = tuple(rule.key for rule in RULES)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Dates:
    """Training from `start` on, the last `validation` days of it kept for calibration; the test
    from `test` to `end`, both half-open."""

    start: datetime
    test: datetime
    end: datetime
    validation: timedelta = 21 * _DAY

    def split(self) -> TimeSplit:
        """The same as lengths of time."""
        if not self.start + self.validation < self.test < self.end:
            raise ConfigError("the days of training, validation and test must follow one another")
        train = self.test - self.validation - self.start
        return TimeSplit(train, self.validation, self.end - self.test, self.start)


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a daily log: all three or none; and merchants that training leaves out."""

    start: datetime | None = None
    test: datetime | None = None
    end: datetime | None = None
    without: tuple[str, ...] = ()

    def dates(self) -> Dates | None:
        """The days, if they were given; ConfigError if only some were."""
        if self.start is None and self.test is None and self.end is None:
            return None
        if self.start is None or self.test is None or self.end is None:
            raise ConfigError("give the first day, that of the test and the end, or none of them")
        return Dates(self.start, self.test, self.end)


def run(table: str, log: Log, plan: ArenaSettings, told: Told, days: Days | None = None) -> Row:
    """The report of a table, as JSON can hold it."""
    if table == "daily":
        given = days or Days()
        return daily_study(log, plan, told, dates=given.dates(), without=given.without)
    return {"changes": change_study, "tasks": task_study, "cold": cold_study}[table](
        log, plan, told
    )


# -------------------------------------------------------------------------------------------- tasks


TASK_RECIPE = Recipe(edges=(24,), split=SPLITS["han2020"], every=_DAY, visits=False)
"""Of Han et al. (2020): predictions once a day, of the day that follows."""


def task_study(
    log: Log, plan: ArenaSettings, told: Told, entrants: tuple[Entrant, ...] = TASKS
) -> Row:
    """Every task × metadata, history, both; predictions once a day.

    The published split has 253 days; a shorter log is divided in the same proportions.
    """
    base = TASK_RECIPE
    rows: list[Row] = []
    for task in PUBLISHED:
        place = arena(log, replace(base, task=task), plan, told, task)
        for entrant in some(entrants, plan.models):
            rows += place.figures(entrant, partial(_task_rows, entrant, task))
    split = {name: str(each) for name, each in asdict(base.split).items()}
    return {
        "table": "tasks",
        "log": log.about.name,
        "recipe": {"split": split, "examples": plan.examples, "seed": plan.seed},
        "rows": rows,
        "checks": _task_checks(rows),
    }


def _task_rows(entrant: Entrant, task: str, found: Scored) -> list[Row]:
    theirs = PUBLISHED[task].get(entrant.key)
    known = {"task": task, "model": entrant.key, "name": entrant.name}
    told = {"published": theirs and theirs.auc, "published_sd": theirs and theirs.sd}
    return [{**known, **judged(found), **told}]


def _task_checks(rows: list[Row]) -> list[Row]:
    """Both kinds of features are at least as good as either, to a hundredth."""
    found = []
    for task in dict.fromkeys(row["task"] for row in rows):
        aucs = {row["model"]: row["auc"] for row in rows if row["task"] == task}
        parts = [aucs[kind] for kind in ("metadata", "history") if aucs.get(kind) is not None]
        if aucs.get("both") is not None and parts:
            told = f"{aucs['both']:.3f} against {max(parts):.3f}"
            holds = aucs["both"] >= max(parts) - 0.01
            found.append(verdict(f"{task}: both as good as the better one", holds, told))
    return found


# --------------------------------------------------------------------------------------- daily logs


@dataclass(frozen=True, slots=True)
class Bar:
    """What is asked on a log: an AUC, and how far above the best rule."""

    dates: Dates
    auc: float
    above: float = 0.0


def _day(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


BARS = {
    "grocery": Bar(Dates(_day(2023, 7, 1), _day(2024, 1, 1), _day(2024, 7, 1)), 0.83, 0.03),
    "fuel": Bar(Dates(_day(2026, 1, 2), _day(2026, 3, 15), _day(2026, 5, 1), 10 * _DAY), 0.81),
}
"""The days and the bars of two public logs, by the name that the log gives itself."""


def daily_study(
    log: Log,
    plan: ArenaSettings,
    told: Told,
    *,
    dates: Dates | None = None,
    without: Sequence[str] = (),
) -> Row:
    """Rules and models on the same later rows; then models that never met one of the merchants."""
    bar = BARS.get(log.about.name)
    days = dates if dates is not None or bar is None else bar.dates
    if days is None:
        raise ConfigError("tell the first day, that of the test and the end")
    entrants = some(DAILY, plan.models)
    # a prediction a page and day, of the day that follows; a tenth of the pages is never met
    recipe = Recipe(edges=(24,), split=days.split(), every=_DAY, visits=False, unseen=0.1)
    places = arenas(log, recipe, plan, told, "daily")
    rows: list[Row] = []
    for entrant in entrants:
        rows += _daily_rows(places(entrant), entrant, "all", None)
    for merchant in without:
        for entrant in entrants:
            rows += _left_out(places(entrant), entrant, merchant)
    return {
        "table": "daily",
        "log": log.about.name,
        "recipe": {"split": {n: str(getattr(days, n)) for n in ("start", "test", "end")}},
        "rows": rows,
        "checks": _daily_checks(rows, bar if dates is None else None),
    }


def _daily_rows(place: Arena, entrant: Entrant, group: str, among: Bools | None) -> list[Row]:
    """The figures of a model, before and after calibration; `among`: of which pages."""

    def figures() -> list[Row]:
        model = place.fit(entrant)
        raw = Calibrated(model.model, (Curve(),) * len(model.curves))
        found, before = place.scored(entrant, model), place.scored(entrant, raw)
        groups = {
            group: np.ones(len(found), dtype=np.bool_) if among is None else among[found.page]
        }
        if among is None:
            groups |= {"seen": found.seen, "unseen": ~found.seen}
        return [
            {
                "model": entrant.key,
                "name": entrant.name,
                "group": name,
                **judged(found, who),
                "uncalibrated_error": judged(before, who)["calibration_error"],
            }
            for name, who in groups.items()
        ]

    return place.remembered(entrant, figures)


def _left_out(place: Arena, entrant: Entrant, merchant: str) -> list[Row]:
    pages = place.shards.pages
    theirs = np.asarray((pages["merchant"] == merchant).fill_null(False).to_numpy())
    if not theirs.any():
        raise ConfigError(f"the log has no merchant {merchant!r}")
    other = Arena(place.shards, place.plan, place.told, without=theirs)
    return _daily_rows(other, entrant, f"{merchant}, never met", theirs)


def _daily_checks(rows: list[Row], bar: Bar | None) -> list[Row]:
    whole = {row["model"]: row for row in rows if row["group"] == "all"}
    models = {key: row for key, row in whole.items() if key not in RULE_KEYS and row["auc"]}
    rules = [whole[key]["auc"] for key in RULE_KEYS if key in whole and whole[key]["auc"]]
    if not models:
        return []
    best = max(models.values(), key=lambda row: row["auc"])
    checks = [at_most(f"{best['model']}: calibration error", best["calibration_error"], CALIBRATED)]
    if bar is not None:
        checks.append(at_least(f"{best['model']}: AUC", best["auc"], bar.auc))
    if rules:
        above = best["auc"] - max(rules)
        least = bar.above if bar is not None else 0.0
        checks.append(at_least(f"{best['model']}: above the best rule", above, least))
    return checks
