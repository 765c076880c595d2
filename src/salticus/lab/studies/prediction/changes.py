"""Who changes within six hours: the tables of Han 2019 (2: seen offers, 3: unseen offers), and the
same by how much is known of a page."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.lab.studies.prediction.arena import Arena, ArenaSettings, Told, arena, arenas, judged
from salticus.lab.studies.prediction.entrants import CHANGES, COLD, some
from salticus.lab.studies.prediction.published import published
from salticus.lab.studies.prediction.verdicts import (
    GROUPS,
    SIGHTS,
    Row,
    auc_of,
    better,
    steadier,
    warm_enough,
)
from salticus.lab.worlds.market.truth import hazards_of
from salticus.models.training.evaluate import Scored, groups
from salticus.models.training.recipe import SPLITS, Recipe
from salticus.types.dates import HOUR_US

HOURS = 6

CEILINGS = {
    "ceiling_metadata": ("ceiling of metadata", {"own": False}),
    "ceiling_plain": (
        "ceiling of metadata, campaigns unforeseen",
        {"own": False, "campaigns": False},
    ),
    "ceiling_own": ("ceiling of the true rate, no history", {"own": True}),
}

UNSEEN = {"all unseen": False, "unseen, no history": True}
"""Groups of unseen pages that are judged apart: all of them, and those without history."""


def change_study(log: Log, plan: ArenaSettings, told: Told) -> Row:
    """Every model × seen and unseen offers × partial and full sight, and what must hold."""
    entrants = some(CHANGES, plan.models)
    base = Recipe(edges=(HOURS,), split=SPLITS["han2019"])
    rows: list[Row] = []
    for observe in SIGHTS:
        places = arenas(log, replace(base, observe=observe), plan, told, observe)
        for entrant in entrants:
            if entrant.sighted or observe == SIGHTS[0]:
                cells = partial(_rows, entrant.key, entrant.name, observe)
                rows += places(entrant).figures(entrant, cells)
        for key, name, found in _ceilings(log, places(CHANGES[0])):
            rows += _rows(key, name, observe, found)
    blind = {entrant.key for entrant in entrants if not entrant.sighted}
    rows += [{**row, "observe": "full"} for row in rows if row["model"] in blind]
    cold = [row for row in rows if row["group"] in UNSEEN and row["observe"] == SIGHTS[0]]
    rows = [row for row in rows if row["group"] in GROUPS]
    return {
        "table": "changes",
        "log": log.about.name,
        "recipe": _plain(base, plan),
        "rows": rows,
        "cold": cold,
        "checks": _checks(rows, cold),
    }


def _plain(recipe: Recipe, plan: ArenaSettings) -> Row:
    return {
        **asdict(recipe),
        "every": str(recipe.every),
        "examples": plan.examples,
        "seed": plan.seed,
        "observe": [*SIGHTS],
        "split": {name: str(each) for name, each in asdict(recipe.split).items()},
    }


def _rows(key: str, name: str, observe: str, found: Scored) -> list[Row]:
    new, rows = ~found.seen, []
    cold = {group: new & (found.known == 0) if bare else new for group, bare in UNSEEN.items()}
    for group, among in {"seen": found.seen, "unseen": new, **cold}.items():
        theirs = published(key, group, observe) if group in GROUPS else None
        told = {"published": theirs and theirs.auc, "published_sd": theirs and theirs.sd}
        known = {"model": key, "name": name, "group": group, "observe": observe}
        rows.append({**known, **judged(found, among), **told})
    return rows


def cold_study(log: Log, plan: ArenaSettings, told: Told) -> Row:
    """Models by number of observations known of a page (0, 1, 2, 5, 10, 30), of unseen pages."""
    base = Recipe(edges=(HOURS,), split=SPLITS["han2019"], observe="partial")
    place = arena(log, base, plan, told, "partial")
    rows: list[Row] = []
    for entrant in some(COLD, plan.models):  # not kept: the table of changes has the same names
        found = place.scored(entrant, place.fit(entrant))
        rows += _by_known(entrant.key, entrant.name, found)
    for key, name, found in _ceilings(log, place):
        rows += _by_known(key, name, found)
    return {
        "table": "cold",
        "log": log.about.name,
        "recipe": {"observe": base.observe, "examples": plan.examples, "seed": plan.seed},
        "rows": rows,
        "checks": [],
    }


def _by_known(key: str, name: str, found: Scored) -> list[Row]:
    fresh = found.take(~found.seen)
    return [
        {"model": key, "name": name, "known": group, **judged(fresh, among)}
        for (by, group), among in groups(fresh, None)
        if by in ("all", "known")
    ]


# ------------------------------------------------------------------------------------- the ceilings


def _ceilings(log: Log, place: Arena) -> list[tuple[str, str, Scored]]:
    """The test part's uniform rows with the true hazards of each, by what is known: key, name,
    rows; nothing for a log whose hazards are not known."""
    try:
        truth = hazards_of(log)
    except InputError:
        return []
    test = place.shards.part("test", columns=())
    rows, at = test.take(test.uniform), place.shards.times("test")[test.uniform]
    hour = -(-at // HOUR_US)  # changes come on whole hours: the next one is the first ahead
    offer = place.shards.pages["page_id"].cast(int).to_numpy()[rows.inputs.page]
    unscored = Scored(
        page=rows.inputs.page,
        hour=rows.inputs.hour,
        probability=np.zeros((len(rows), 1)),
        label=rows.label[:, -1:],
        weight=rows.weight,
        seen=rows.seen,
        known=rows.known,
    )
    found = []
    for key, (name, known) in CEILINGS.items():
        scores = truth.within(offer, hour, place.edges[-1], **known)
        found.append((key, name, replace(unscored, probability=scores[:, None])))
    return found


# ----------------------------------------------------------------------------------- what must hold


def _checks(rows: list[Row], cold: list[Row]) -> list[Row]:
    there = {row["model"] for row in rows}
    checks: list[Row] = []
    for model, metadata in (("dnn_both", "dnn_metadata"), ("dnn", "metadata")):
        if model in there:
            checks += better(rows, model, [m for m in (metadata, "combined") if m in there])
            checks.append(steadier(rows, model))
    # of all rows at once: subsets of the few rows without history have no positives
    whole = partial(auc_of, cold, observe=SIGHTS[0], name="whole_auc")
    for model in ("dnn_metadata", "metadata", "trees_metadata"):
        for group in UNSEEN:
            if model in there:
                auc, ceiling = whole(model, group), whole("ceiling_metadata", group)
                checks.append(warm_enough(f"{model}, {group}", auc, ceiling))
    return checks
