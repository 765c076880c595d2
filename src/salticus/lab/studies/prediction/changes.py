"""Who changes within six hours: the tables of Han 2019 (2: seen offers, 3: unseen offers)."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.lab.studies.prediction.arena import (
    Arena,
    ArenaSettings,
    Told,
    arenas,
    judged,
    with_scores,
)
from salticus.lab.studies.prediction.entrants import CHANGES, Entrant, some
from salticus.lab.studies.prediction.published import published
from salticus.lab.studies.prediction.verdicts import (
    GROUPS,
    SIGHTS,
    Row,
    better,
    steadier,
    warm_enough,
)
from salticus.lab.worlds.market.truth import Hazards, hazards_of
from salticus.models.training.evaluate import Scored
from salticus.models.training.recipe import SPLITS, Recipe
from salticus.types import Examples, Floats
from salticus.types.dates import HOUR_US

HOURS = 6

CEILINGS = {
    "ceiling_metadata": "ceiling of metadata",
    "ceiling_plain": "ceiling of metadata, campaigns unforeseen",
    "ceiling_own": "ceiling of the true rate, no history",
}


def change_study(log: Log, plan: ArenaSettings, told: Told, *, recipe: Recipe | None = None) -> Row:
    """Every model × seen and unseen offers × partial and full sight, and what must hold."""
    entrants = some(CHANGES, plan.models)
    base = recipe or Recipe(edges=(HOURS,), split=SPLITS["han2019"])
    rows: list[Row] = []
    for observe in SIGHTS:
        places = arenas(log, replace(base, observe=observe), plan, told, observe)
        for entrant in entrants:
            if entrant.sighted or observe == SIGHTS[0]:
                rows += _cells(places(entrant), entrant, observe)
        rows += _ceilings(log, places(CHANGES[0]), observe)
    rows += [{**row, "observe": "full"} for row in rows if row["model"] in _blind(entrants)]
    cold = [row for row in rows if row["group"] in COLD and row["observe"] == SIGHTS[0]]
    rows = [row for row in rows if row["group"] in GROUPS]
    return {
        "table": "changes",
        "log": log.about.name,
        "recipe": _plain(base, plan),
        "rows": rows,
        "cold": cold,
        "checks": _checks(rows, cold),
    }


def _blind(entrants: tuple[Entrant, ...]) -> set[str]:
    return {each.key for each in entrants if not each.sighted}


def _plain(recipe: Recipe, plan: ArenaSettings) -> Row:
    told = {**asdict(recipe), "examples": plan.examples, "seed": plan.seed, "observe": [*SIGHTS]}
    return {name: str(each) if name == "every" else each for name, each in told.items()} | {
        "split": {name: str(each) for name, each in asdict(recipe.split).items()}
    }


def _cells(place: Arena, entrant: Entrant, observe: str) -> list[Row]:
    def figures() -> list[Row]:
        found = place.scored(entrant, place.fit(entrant))
        return _rows(entrant.key, entrant.name, observe, found)

    return place.remembered(entrant, figures)


COLD = {"all unseen": False, "unseen, no history": True}
"""Groups of unseen pages that are judged apart: all of them, and those without history."""


def _rows(key: str, name: str, observe: str, found: Scored) -> list[Row]:
    groups = {"seen": found.seen, "unseen": ~found.seen}
    for group, none_known in COLD.items():
        groups[group] = ~found.seen & (found.known == 0) if none_known else ~found.seen
    rows = []
    for group, among in groups.items():
        theirs = published(key, group, observe) if group in GROUPS else None
        told = {"published": theirs and theirs.auc, "published_sd": theirs and theirs.sd}
        known = {"model": key, "name": name, "group": group, "observe": observe}
        rows.append({**known, **judged(found, among), **told})
    return rows


# ------------------------------------------------------------------------------------- the ceilings


def _ceilings(log: Log, place: Arena, observe: str) -> list[Row]:
    """The AUC of the true hazards on the same rows; nothing for a log whose are not known."""
    try:
        truth = hazards_of(log)
    except InputError:
        return []
    found, scores = ceilings(truth, place)
    rows = []
    for key, name in CEILINGS.items():
        rows += _rows(key, name, observe, with_scores(found, scores[key]))
    return rows


def ceilings(truth: Hazards, place: Arena) -> tuple[Scored, dict[str, Floats]]:
    """The test part's uniform rows, and the true hazards of each by what is known."""
    test = place.shards.part("test", columns=())
    at, fine = place.shards.times("test"), test.uniform
    hour = -(-at[fine] // HOUR_US)  # changes come on whole hours: the next one is the first ahead
    offer = place.shards.pages["page_id"].cast(int).to_numpy()[test.inputs.page[fine]]
    rows = _unscored(test.take(fine))
    hours = place.edges[-1]
    known = {
        "ceiling_metadata": truth.within(offer, hour, hours, own=False),
        "ceiling_plain": truth.within(offer, hour, hours, own=False, campaigns=False),
        "ceiling_own": truth.within(offer, hour, hours, own=True),
    }
    return rows, known


def _unscored(some: Examples) -> Scored:
    return Scored(
        page=some.inputs.page,
        hour=some.inputs.hour,
        probability=np.zeros((len(some), 1)),
        label=some.label[:, -1:],
        weight=some.weight,
        seen=some.seen,
        known=some.known,
    )


# ----------------------------------------------------------------------------------- what must hold


def _checks(rows: list[Row], cold: list[Row]) -> list[Row]:
    there = {row["model"] for row in rows}
    checks: list[Row] = []
    for model, metadata in (("dnn_both", "dnn_metadata"), ("dnn", "metadata")):
        if model in there:
            checks += better(rows, model, [m for m in (metadata, "combined") if m in there])
            checks.append(steadier(rows, model))
    for model in ("dnn_metadata", "metadata", "trees_metadata"):
        for group in COLD:
            if model in there:
                ceiling = _whole(cold, "ceiling_metadata", group)
                checks.append(warm_enough(f"{model}, {group}", _whole(cold, model, group), ceiling))
    return checks


def _whole(cold: list[Row], model: str, group: str) -> float | None:
    """AUC of all rows at once: subsets of the few rows without history have no positives."""
    for row in cold:
        if (row["model"], row["group"]) == (model, group):
            return row["whole_auc"]  # type: ignore[no-any-return]
    return None
