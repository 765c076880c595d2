"""Where estimates of change, clicks and impressions come from: history, models, or the truth."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from salticus import plugins, predict
from salticus.errors import ConfigError, InputError
from salticus.exchange.truth import GONE
from salticus.lab.simulate.demand import (
    CLICKS,
    IMPRESSIONS,
    Estimate,
    EstimatedDemand,
    MixedDemand,
    ToldDemand,
    counted,
    true_demand,
)
from salticus.lab.simulate.fitted import FittedReplay
from salticus.lab.simulate.fitting import fitted, kin_of
from salticus.lab.simulate.forecasts import (
    LOG_VIEWS,
    CrawlFeatures,
    Forecasts,
    KnownPages,
    OracleForecasts,
    edges_of,
    forecasts_of,
    loaded,
)
from salticus.lab.simulate.learnt import Learnt, LearntBesideFitted, ModelRates
from salticus.lab.simulate.named import FITTED, HISTORY, MODELS, ORACLE
from salticus.lab.simulate.observing import LogObserver, observations_of
from salticus.lab.simulate.stage import Stage
from salticus.lab.worlds.replay import visit_by_visit
from salticus.models.file import MANIFEST, read_manifest
from salticus.models.traits import TRAITS, load_traits
from salticus.predict.base import Meets, Predictor
from salticus.predict.poisson import PoissonSurvival
from salticus.types import (
    Floats,
    Ints,
    Outcomes,
    Pages,
    Survival,
    days_between,
    instant,
)

_DAY = timedelta(days=1)
_LEAST = 1e-4  # changes a day: a page that will not change may still be visited some time


class Estimators:
    """The estimators of a run, made as its rules name them; one for every quantity.

    What models look at is shared: `features` are fed with the outcomes of the crawl's own visits.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.own = stage.rules.observe not in LOG_VIEWS
        self.features: dict[tuple[int, ...], CrawlFeatures] = {}
        self._pages: KnownPages | None = None
        self.predictor = self._predictor()
        self.demand = EstimatedDemand(
            self._demand("clicks", CLICKS), self._demand("impressions", IMPRESSIONS)
        )

    @property
    def weighing(self) -> bool:
        """Whether some model is weighed against history."""
        return any("+" in name for name in self.stage.rules.estimates.names())

    def meet(self, pages: Pages, now: datetime) -> None:
        if isinstance(self.predictor, Meets):
            self.predictor.meet(pages, now)

    def ask(self, pages: Pages, now: datetime) -> None:
        """Let all be said that is said at a time of the history, so that it can be weighed."""
        self.meet(pages, now)
        self.demand.known(now, len(pages))

    def study(self, start: datetime, end: datetime) -> None:
        """Learn what the history shows from `start` to `end`."""
        if not self.own:
            return  # that comes day by day, whatever is visited
        for outcomes in observations_of(self.stage)(start, end):
            self.predictor.learn(outcomes)
        if self.features:
            for outcomes in observations_of(self.stage, visit_by_visit)(start, end):
                self.learn(outcomes)

    def learn(self, outcomes: Outcomes) -> None:
        """Let models see what visits found."""
        for features in self.features.values():
            features.learn(outcomes)

    def _predictor(self) -> Predictor:
        stage = self.stage
        model, _, beside = stage.rules.estimates.change.partition("+")
        if beside:
            told = self._forecasts(model, "change")
            made: Predictor = self._beside(beside, told)
        elif model == ORACLE:
            return Oracle(stage.truth.ids, true_rates(stage))
        elif model == FITTED:
            made = fitted(stage)
        elif is_traits(model):
            kin = kin_of(stage.log, stage.truth)
            made = FittedReplay(load_traits(Path(model)), kin)
        elif is_predictor(model):
            name = stage.rules.predictor if model == HISTORY else model
            made = plugins.make("predictor", name, predict.BUILTIN)
        else:
            return ModelRates(self._forecasts(model, "change"), self._known)
        return made if self.own else LogObserver(made, observations_of(stage), stage.start)

    def _beside(self, history: str, told: Forecasts) -> Learnt:
        """A model beside the rhythm, or beside a fitted one."""
        asked: dict[str, Any] = {
            "forecasts": told,
            "known": self._known,
            "since": self.stage.weighed,
            "daily": not self.own,
        }
        if history == HISTORY:
            return Learnt(**asked)
        plain = fitted(self.stage)
        return LearntBesideFitted(**asked, traits=plain.traits, kin=plain.kin)

    def _demand(self, name: str, which: int) -> Estimate:
        stage = self.stage
        model, _, beside = getattr(stage.rules.estimates, name).partition("+")
        counts = counted(stage.readers, which)
        if model == HISTORY:
            return counts
        truth = stage.readers.mean(stage.crawl, stage.end)[which]
        if model == ORACLE and not beside:
            return true_demand(truth)
        if stage.readers.synthetic:
            raise ConfigError(
                f"--estimates {name}={model}: the log counts no clicks that a model could look at "
                "(demand.parquet, or --demand file); use history"
            )
        task = MODELS[name]
        told = ToldDemand(self._forecasts(model, task, truth), len(stage.truth))
        if not beside:
            return told
        return MixedDemand(counts, told, lambda tick: stage.readers.counts(tick)[which])

    def _forecasts(self, model: str, task: str, true: Floats | None = None) -> Forecasts:
        if model == ORACLE:
            rates = true_rates(self.stage) if true is None else true
            return OracleForecasts(np.maximum(rates, _LEAST))
        folder = checked_model(Path(model), task)
        if not self.own:
            return forecasts_of(self.stage, folder)
        edges = edges_of(folder)
        if edges not in self.features:
            self.features[edges] = CrawlFeatures(self.stage, self._known, edges)
        return forecasts_of(self.stage, folder, self.features[edges])

    @property
    def _known(self) -> KnownPages:
        if self._pages is None:
            self._pages = KnownPages.of(self.stage.log, self.stage.truth)
        return self._pages


def stretches(stage: Stage, *, weighing: bool) -> Iterator[tuple[datetime, datetime, bool]]:
    """The history in one piece, but for its last days where models are weighed: from when to when,
    and whether they are."""
    first = stage.weighed if weighing else stage.crawl
    if stage.start < first:
        yield stage.start, first, False
    while first < stage.crawl:
        until = min(first + _DAY, stage.crawl)
        yield first, until, True
        first = until


def is_predictor(word: str) -> bool:
    """Whether a word names a predictor that learns from history, and not a folder with a model.

    >>> [is_predictor(word) for word in ("history", "gamma", "mine.py:Mine", "models/change")]
    [True, True, True, False]
    """
    return word == HISTORY or word in predict.BUILTIN or ".py:" in word


def is_traits(word: str) -> bool:
    """Whether a word names a folder with traits that were fitted."""
    folder = Path(word)
    return (folder / MANIFEST).is_file() and read_manifest(folder).get("kind") == TRAITS


def is_model(word: str) -> bool:
    """Whether a word names a folder with a model, to be asked about change."""
    return not (word in (ORACLE, FITTED) or is_predictor(word) or is_traits(word))


def checked_model(folder: Path, task: str) -> Path:
    """The folder, if its model predicts the task; InputError otherwise."""
    found = loaded(folder).manifest["task"]
    if found != task:
        raise InputError(f"{folder}: a model of {found}, but here one of {task} is needed")
    return folder


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


def model_notes(stage: Stage) -> list[str]:
    """What is to be known of the models that the rules of a stage ask for."""
    notes = []
    for word in stage.rules.estimates.names():
        model, _, beside = word.partition("+")
        if FITTED in (model, beside):
            notes.append(f"fitted to the history: {fitted(stage).traits.told()}")
        if is_traits(model):
            notes.append(f"fitted in {model}: {load_traits(Path(model)).told()}")
        if is_model(model):
            notes += _notes_on(stage, Path(model))
    return list(dict.fromkeys(notes))


def _notes_on(stage: Stage, folder: Path) -> list[str]:
    manifest = loaded(folder).manifest
    told, last = manifest["data"]["log"], manifest["data"]["spans"]["validation"][1]
    name, observe, notes = f"the model of {manifest['task']}", stage.rules.observe, []
    if told == stage.log.about.name and datetime.fromisoformat(last) > stage.score:
        notes.append(
            f"{name} has learnt from days of {told} until {last[:10]}, but the score begins "
            f"{stage.score:%Y-%m-%d}: it knows part of what it predicts"
        )
    if manifest["observe"] == "full" and observe != "full":
        notes.append(
            f"{name} was trained by one who sees all; train it with --observe 0.1-12, or add "
            "--observe full"
        )
    if unknown := unknown_features(stage, manifest["features"]["dense"]):
        notes.append(f"{name} looks at what is unknown here: {', '.join(unknown)}")
    return notes


def unknown_features(stage: Stage, names: list[str]) -> list[str]:
    """Those of the features that no page of a simulation has."""
    own = stage.rules.observe not in LOG_VIEWS
    priced = ("price", "price_place", "move", "in_stock")
    counts = stage.log.has("demand")
    shown = counts and "impressions" in stage.log.columns("demand")
    return [
        name
        for name in names
        if (own and name in priced)
        or (name.startswith("clicks_") and not counts)
        or (name.startswith("impressions_") and not shown)
    ]
