"""`salticus study predict`: one of four tables of a log; tasks and cold start here."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from salticus.errors import ConfigError, InputError
from salticus.exchange.folder import Log
from salticus.lab.studies.prediction.arena import (
    Arena,
    ArenaSettings,
    Told,
    arena,
    judged,
    with_scores,
)
from salticus.lab.studies.prediction.changes import CEILINGS, HOURS, ceilings, change_study
from salticus.lab.studies.prediction.daily import Dates, daily_study
from salticus.lab.studies.prediction.entrants import COLD, TASKS, Entrant, some
from salticus.lab.studies.prediction.published import TASKS as PUBLISHED
from salticus.lab.studies.prediction.verdicts import Row, verdict
from salticus.lab.worlds.market.truth import hazards_of
from salticus.models.training.evaluate import Scored, groups
from salticus.models.training.recipe import SPLITS, Recipe

TABLES = ("changes", "tasks", "daily", "cold")
_DAY = timedelta(days=1)


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


def cold_study(log: Log, plan: ArenaSettings, told: Told, *, recipe: Recipe | None = None) -> Row:
    """Models by number of observations known of a page (0, 1, 2, 5, 10, 30), of unseen pages."""
    base = recipe or Recipe(edges=(HOURS,), split=SPLITS["han2019"], observe="partial")
    place = arena(log, base, plan, told, "partial")
    rows: list[Row] = []
    for entrant in some(COLD, plan.models):
        rows += _cold_rows(place, entrant)
    try:
        truth = hazards_of(log)
    except InputError:
        truth = None
    if truth is not None:
        test, scores = ceilings(truth, place)
        for key, name in CEILINGS.items():
            rows += _by_known(key, name, with_scores(test, scores[key]))
    return {
        "table": "cold",
        "log": log.about.name,
        "recipe": {"observe": base.observe, "examples": plan.examples, "seed": plan.seed},
        "rows": rows,
        "checks": [],
    }


def _cold_rows(place: Arena, entrant: Entrant) -> list[Row]:
    """The model's figures, not kept: those of the table of changes have the same name."""
    return _by_known(entrant.key, entrant.name, place.scored(entrant, place.fit(entrant)))


def _by_known(key: str, name: str, found: Scored) -> list[Row]:
    fresh = found.take(~found.seen)
    return [
        {"model": key, "name": name, "known": group, **judged(fresh, among)}
        for (by, group), among in groups(fresh, None)
        if by in ("all", "known")
    ]


def task_study(log: Log, plan: ArenaSettings, told: Told, *, recipe: Recipe | None = None) -> Row:
    """Every task × metadata, history, both; predictions once a day.

    The published split has 253 days; a shorter log is divided in the same proportions.
    """
    base = recipe or Recipe(edges=(24,), split=SPLITS["han2020"], every=_DAY, visits=False)
    rows: list[Row] = []
    for task in PUBLISHED:
        place = arena(log, replace(base, task=task), plan, told, task)
        for entrant in some(TASKS, plan.models):
            rows += _task_rows(place, entrant, task)
    split = {name: str(each) for name, each in asdict(base.split).items()}
    return {
        "table": "tasks",
        "log": log.about.name,
        "recipe": {"split": split, "examples": plan.examples, "seed": plan.seed},
        "rows": rows,
        "checks": _checks(rows),
    }


def _task_rows(place: Arena, entrant: Entrant, task: str) -> list[Row]:
    theirs = PUBLISHED[task].get(entrant.key)

    def figures() -> list[Row]:
        found = place.scored(entrant, place.fit(entrant))
        known = {"task": task, "model": entrant.key, "name": entrant.name}
        told = {"published": theirs and theirs.auc, "published_sd": theirs and theirs.sd}
        return [{**known, **judged(found), **told}]

    return place.remembered(entrant, figures)


def _checks(rows: list[Row]) -> list[Row]:
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
