"""Where models meet: the same examples to learn from, and the same rows to be judged by."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from salticus.exchange.folder import Log
from salticus.exchange.place import in_place
from salticus.features.metadata import Vocabulary
from salticus.features.names import METADATA
from salticus.lab.studies.prediction.entrants import Entrant
from salticus.models.model import Calibrated
from salticus.models.training.calibrate import calibrate
from salticus.models.training.evaluate import Scored, figures_of, labels_within, scored
from salticus.models.training.examples import make_examples
from salticus.models.training.recipe import Recipe, log_span, shrunk
from salticus.models.training.run import DEPTH, fitting_of, renewed
from salticus.models.training.shards import Shards
from salticus.types import Bools, Examples, Metadata

Told = Callable[[str], None]
Figures = list[dict[str, Any]]

QUICK: dict[str, dict[str, Any]] = {
    "trees": {"trees": 25, "leaves": 7, "least": 20},
    **dict.fromkeys(("dnn", "sequence"), {"epochs": 1, "hidden": (16,), "batch": 512}),
}


@dataclass(frozen=True, slots=True)
class ArenaSettings:
    """How much work is done, and where what it makes is kept.

    `models` are the keys of those that run (none: all); `quick` gives all of them a handful of
    trees or one small epoch, to see that everything works.
    """

    work: Path
    examples: int = 5_000_000
    seed: int = 0
    models: tuple[str, ...] = ()
    quick: bool = False


class Arena:
    """Examples of one recipe, and the metadata of their pages.

    Of pages in `without` nothing is learnt, neither from examples nor by the vocabulary.
    """

    def __init__(
        self, shards: Shards, plan: ArenaSettings, told: Told, without: Bools | None = None
    ) -> None:
        self.shards, self.plan, self.told, self.without = shards, plan, told, without
        self.edges: tuple[int, ...] = tuple(shards.about["recipe"]["edges"])

    @cached_property
    def metadata(self) -> Metadata:
        """The metadata of all pages, by the vocabulary of those that training has met."""
        met = np.zeros(len(self.shards.pages), dtype=np.bool_)
        met[self.part("train", ()).inputs.page] = True
        return Vocabulary.fit(self.shards.pages, met, METADATA).encode(self.shards.pages)

    def part(self, name: str, columns: tuple[str, ...]) -> Examples:
        """The examples of a part that may be learnt from: of seen pages alone."""
        rows = self.shards.part(name, columns=columns)
        fine = rows.seen if name == "train" else rows.seen & rows.uniform
        if self.without is not None:
            fine = fine & ~self.without[rows.inputs.page]
        return rows if fine.all() else rows.take(fine)

    def fit(self, entrant: Entrant) -> Calibrated:
        """Train a model, and calibrate it on the validation part."""
        choice = entrant.choice(self.edges)
        train, later = (self.part(name, choice.dense) for name in ("train", "validation"))
        settings, fit = fitting_of(
            entrant.kind,
            seed=self.plan.seed,
            published=entrant.published,
            baseline=entrant.which,
            edges=self.edges,
        )
        if self.plan.quick:
            settings = replace(settings, **QUICK.get(entrant.kind, {}))
        self.told(entrant.name)
        model = fit(train, later, self.metadata, choice, settings, self.told)
        ready = calibrate(model, later, self.metadata)
        return renewed(ready, (train, later), self.metadata, settings, self.told)

    def scored(self, entrant: Entrant, model: Calibrated) -> Scored:
        """What a model says of the test part's uniform rows."""
        columns = entrant.choice(self.edges).dense
        return scored(model, self.shards.days("test", columns), self.metadata)

    def figures(self, entrant: Entrant, rows: Callable[[Scored], Figures]) -> Figures:
        """The rows made of what a model, trained here, says of the test part."""
        return self.remembered(entrant, lambda: rows(self.scored(entrant, self.fit(entrant))))

    def remembered(self, entrant: Entrant, figures: Callable[[], Figures]) -> Figures:
        """The figures of a model; those of an earlier run with the same examples, if kept."""
        mark = [self.shards.about["fingerprint"], asdict(entrant), self.plan.seed, self.plan.quick]
        left = b"" if self.without is None else self.without.tobytes()
        name = blake2b(json.dumps(mark).encode() + left, digest_size=8).hexdigest()
        path = self.plan.work / "results" / f"{entrant.key}-{name}.json"
        if path.is_file():
            kept: Figures = json.loads(path.read_text("utf-8"))
            return kept
        found = figures()
        path.parent.mkdir(exist_ok=True)
        with in_place(path) as part:
            part.write_text(json.dumps(found), "utf-8")
        return found


def arenas(
    log: Log, recipe: Recipe, plan: ArenaSettings, told: Told, name: str
) -> Callable[[Entrant], Arena]:
    """The arena of each model; sequence models have one of their own, whose examples hold the
    pages' last changes too."""

    @cache
    def made(depth: int) -> Arena:
        place = f"{name}-steps" if depth else name
        return arena(log, replace(recipe, depth=depth), plan, told, place)

    return lambda entrant: made(DEPTH if entrant.kind == "sequence" else 0)


def arena(log: Log, recipe: Recipe, plan: ArenaSettings, told: Told, name: str) -> Arena:
    """Make the examples of a recipe in the plan's folder, or find them there."""
    split = shrunk(recipe.split, *log_span(log))  # in the same proportions, if the log is shorter
    whole = replace(recipe, split=split, examples=plan.examples, seed=plan.seed)
    told(f"examples ({name})")
    return Arena(make_examples(log, whole, plan.work / name), plan, told)


def judged(rows: Scored, among: Bools | None = None) -> dict[str, Any]:
    """The figures of some rows, at the last edge: `auc` and `sd` over 20 subsets, and others."""
    came = labels_within(rows.label)[:, -1]
    fine = came >= 0 if among is None else (came >= 0) & among
    found = figures_of(rows.probability[fine, -1], came[fine] == 1, rows.weight[fine])
    return {
        "auc": found["auc_mean"],
        "sd": found["auc_sd"],
        "whole_auc": found["auc"],
        "rows": found["rows"],
        "events": found["events"],
        "log_loss": found["log_loss"],
        "brier": found["brier"],
        "calibration_error": found["ece"],
    }
