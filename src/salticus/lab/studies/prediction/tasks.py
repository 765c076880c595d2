"""Who changes, is clicked or is shown on the next day: Table 4 of Han 2020."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import timedelta

from salticus.exchange.folder import Log
from salticus.lab.studies.prediction.arena import Arena, ArenaSettings, Told, arena, judged
from salticus.lab.studies.prediction.entrants import TASKS, Entrant, some
from salticus.lab.studies.prediction.published import TASKS as PUBLISHED
from salticus.lab.studies.prediction.verdicts import Row, verdict
from salticus.models.training.recipe import SPLITS, Recipe

HOURS = 24
_DAY = timedelta(days=1)


def task_study(log: Log, plan: ArenaSettings, told: Told, *, recipe: Recipe | None = None) -> Row:
    """Every task × metadata, history, both; predictions once a day.

    The published split has 253 days; a shorter log is divided in the same proportions.
    """
    base = recipe or Recipe(edges=(HOURS,), split=SPLITS["han2020"], every=_DAY, visits=False)
    rows: list[Row] = []
    for task in PUBLISHED:
        place = arena(log, replace(base, task=task), plan, told, task)
        for entrant in some(TASKS, plan.models):
            rows += _rows(place, entrant, task)
    split = {name: str(each) for name, each in asdict(base.split).items()}
    return {
        "table": "tasks",
        "log": log.about.name,
        "recipe": {"split": split, "examples": plan.examples, "seed": plan.seed},
        "rows": rows,
        "checks": _checks(rows),
    }


def _rows(place: Arena, entrant: Entrant, task: str) -> list[Row]:
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
