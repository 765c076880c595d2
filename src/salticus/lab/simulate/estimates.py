"""Whose word on change the policies have: the history's, a trained model's, or the truth's."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from pathlib import Path

import numpy as np

from salticus import plugins, predict
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import GONE, Truth
from salticus.features.groups import groups_of
from salticus.features.metadata import Vocabulary
from salticus.features.seen import pages_of
from salticus.lab.simulate.fitting import fitted
from salticus.lab.simulate.learnt import KnownPages, Learnt
from salticus.lab.simulate.stage import Stage
from salticus.models.file import Saved, load_model
from salticus.predict.base import Predictor
from salticus.predict.poisson import PoissonSurvival
from salticus.types import Floats, Ints, Outcomes, Pages, Survival, days_between, instant

HISTORY, ORACLE, FITTED = "history", "oracle", "fitted"
_LEAST = 1e-4  # changes a day: a page that will not change may still be visited some time


def predictor_of(stage: Stage) -> Predictor:
    """The predictor that the rules of a stage ask for."""
    name = stage.rules.estimates
    if name == ORACLE:
        return Oracle(stage.truth.ids, true_rates(stage))
    if name == FITTED:
        return fitted(stage)
    if name != HISTORY:
        return learnt(Path(name), stage.log, stage.truth)
    made: Predictor = plugins.make("predictor", stage.rules.predictor, predict.BUILTIN)
    return made


class Oracle:
    """Knows how often each page will change on average, and nothing of when: the most that better
    estimates could bring.

    `ids` are ascending, `rates` changes a day. It learns nothing, for it knows.
    """

    def __init__(self, ids: Ints, rates: Floats) -> None:
        self.ids = ids
        self.rates = np.maximum(rates, _LEAST)

    def survival(self, pages: Pages, now: datetime) -> Survival:
        return PoissonSurvival(self.rates[np.searchsorted(self.ids, pages.ids)])

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing."""


def true_rates(stage: Stage) -> Floats:
    """Changes a day of each page from the start of the crawl to its end, or that of the crawl."""
    truth, first = stage.truth, instant(stage.crawl)
    later = (truth.at >= first) & (truth.value != GONE) & (truth.at > truth.born[truth.page])
    changes = np.bincount(truth.page[later], minlength=len(truth))
    end = np.full(len(truth), instant(stage.end))
    gone = truth.value == GONE
    np.minimum.at(end, truth.page[gone], truth.at[gone])
    lived = days_between(np.maximum(truth.born, first), end)
    return np.asarray(changes / np.maximum(lived, 1.0))


def learnt(folder: Path, log: Log, truth: Truth) -> Learnt:
    """The model of a folder as a predictor for the pages of a log."""
    saved = _loaded(folder)
    task, edges = saved.manifest["task"], tuple(saved.manifest["edges"])
    if task != "change" or len(edges) < 2:
        raise InputError(
            f"{folder}: a model of {task} within {', '.join(map(str, edges))} h; --estimates takes "
            "one of change with several horizons: train it with --hazard"
        )
    pages = pages_of(log)
    rows = truth.names.to_frame("page_id").join(
        pages, on="page_id", how="left", maintain_order="left"
    )
    known = KnownPages(truth.ids, groups_of(rows), Vocabulary.of(*saved.vocabulary).encode(rows))
    return Learnt(saved.model, edges, known)


def model_notes(stage: Stage) -> list[str]:
    """What is to be known of the model that the rules of a stage ask for, if they do."""
    if stage.rules.estimates in (HISTORY, ORACLE):
        return []
    if stage.rules.estimates == FITTED:
        return [f"fitted to the history: {fitted(stage).traits.told()}"]
    manifest = _loaded(Path(stage.rules.estimates)).manifest
    told, last = manifest["data"]["log"], manifest["data"]["spans"]["validation"][1]
    notes = []
    if told == stage.log.about.name and datetime.fromisoformat(last) > stage.score:
        notes.append(
            f"the model has learnt from days of {told} until {last[:10]}, but the score begins "
            f"{stage.score:%Y-%m-%d}: it knows part of what it foretells"
        )
    if manifest["observe"] == "full":
        notes.append("the model was trained by one who sees all; train it with --observe 0.1-12")
    return notes


@lru_cache(maxsize=2)
def _loaded(folder: Path) -> Saved:
    return load_model(folder)
