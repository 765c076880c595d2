"""Cold start: how well models rank pages of which little is known, by how much is."""

from __future__ import annotations

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.lab.studies.prediction.arena import (
    Arena,
    ArenaSettings,
    Told,
    arena,
    judged,
    with_scores,
)
from salticus.lab.studies.prediction.changes import CEILINGS, HOURS, ceilings
from salticus.lab.studies.prediction.entrants import COLD, Entrant, some
from salticus.lab.studies.prediction.verdicts import Row
from salticus.lab.worlds.market.truth import hazards_of
from salticus.models.training.evaluate import Scored, groups
from salticus.models.training.recipe import SPLITS, Recipe


def cold_study(log: Log, plan: ArenaSettings, told: Told, *, recipe: Recipe | None = None) -> Row:
    """Models by number of observations known of a page (0, 1, 2, 5, 10, 30), of unseen pages."""
    base = recipe or Recipe(edges=(HOURS,), split=SPLITS["han2019"], observe="partial")
    place = arena(log, base, plan, told, "partial")
    rows: list[Row] = []
    for entrant in some(COLD, plan.models):
        rows += _rows(place, entrant)
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


def _rows(place: Arena, entrant: Entrant) -> list[Row]:
    """The model's figures, not kept: those of the table of changes have the same name."""
    return _by_known(entrant.key, entrant.name, place.scored(entrant, place.fit(entrant)))


def _by_known(key: str, name: str, found: Scored) -> list[Row]:
    fresh = found.take(~found.seen)
    return [
        {"model": key, "name": name, "known": group, **judged(fresh, among)}
        for (by, group), among in groups(fresh, None)
        if by in ("all", "known")
    ]
