"""A trained model in a crawl: its pages come as they are found, its features as visits end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from salticus.errors import InputError
from salticus.features.following import Facts, Following, as_crawled
from salticus.features.metadata import Vocabulary
from salticus.models.file import Saved
from salticus.models.model import Calibrated
from salticus.predict.mixed import Mixed
from salticus.predict.rhythm import Rhythm, RhythmSurvival
from salticus.predict.roster import Roster
from salticus.types import Inputs, Ints, Metadata, Outcomes, Pages, instant
from salticus.types.dates import HOUR_US
from salticus.types.frames import pl
from salticus.types.state import State, part_of

_ASKED = 50_000  # pages at a time
_WAITING = 1_000_000  # visits
_EDGE = 1  # which horizon contributions are about: the second, a day as a rule
_ONE = np.zeros(1, dtype=np.int64)  # the first row, to let time pass


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a crawl looks up what it does not keep in memory; every store has both."""

    facts: Callable[[Ints], Facts]
    history: Callable[[], Iterator[Outcomes]]

    def __deepcopy__(self, memo: dict[int, object]) -> Sources:
        """The same: a copy of a predictor asks the same store."""
        return self


class Modelled(Mixed):
    """`Rhythm`, and once it has one, the word of a model on each page beside it (see `Mixed`).

    After every answer of a page the model is asked anew, at most once an hour. A model that comes
    later finds what the visits before it have told: its features are made from the history. Law:
    what it says depends on the visits alone, not on when it came or how they were cut.

    Cost: without a model that of `Rhythm`; with one, the features and scores of pages with news.
    """

    def __init__(self, sources: Sources) -> None:
        super().__init__()
        self.sources = sources
        self.model_: Saved | None = None
        self.following_: Following | None = None
        self._vocabulary: Vocabulary | None = None
        self._news = np.empty(0, dtype=np.bool_)  # by the rows of `following_`
        self._hour = -1  # of the last question

    def employ(self, saved: Saved | None) -> None:
        """Let this model speak from now on, or none; InputError if it cannot speak in a crawl."""
        edges = () if saved is None else _edges(saved)
        self.told_ = Roster(**self.told_.defaults)  # of no page has it said anything yet
        self.model_, self._hour = saved, -1
        if saved is None:
            self.following_ = None
            return
        self._vocabulary = Vocabulary.of(*saved.vocabulary)
        if self.following_ is None or self.following_.edges != edges:
            self.following_ = self._retraced(Following(edges))
        self._news = np.ones(len(self.following_), dtype=np.bool_)

    def go_on(self, saved: Saved) -> None:
        """Let the model speak on that spoke when the state was kept that was restored."""
        if self.following_ is None or self.following_.edges != _edges(saved):
            self.employ(saved)
            return
        self.model_, self._vocabulary = saved, Vocabulary.of(*saved.vocabulary)

    def look_back(self) -> None:
        """Let the features be made from the history anew, as it has become another."""
        self.model_ = self.following_ = None

    def meet(self, pages: Pages, now: datetime) -> None:
        super().meet(pages, now)
        hour = int(instant(now).astype(np.int64)) // HOUR_US
        if self.model_ is None or self.following_ is None or hour <= self._hour:
            return
        self._ask(Rhythm.survival(self, pages, now), pages, hour)
        self._hour = hour

    def survival(self, pages: Pages, now: datetime) -> RhythmSurvival:
        curves = super().survival(pages, now)
        if self.model_ is None or self.following_ is None:
            return curves
        return self.blend(curves, pages.ids)

    def learn(self, outcomes: Outcomes) -> None:
        super().learn(outcomes)
        if self.following_ is None:
            return
        self.following_.learn(outcomes)
        new = np.ones(len(self.following_) - len(self._news), dtype=np.bool_)
        self._news = np.append(self._news, new)
        row, known = self.following_.rows(outcomes.page)
        self._news[row[known]] = True

    def inputs(self, ids: Ints) -> tuple[Inputs, Metadata]:
        """What the model would be asked with now of pages that have answered."""
        assert self.following_ is not None
        row, _ = self.following_.rows(ids)
        found = self.following_.read(row, self._hour)
        return replace(found, page=np.arange(len(ids))), self._encoded(self.sources.facts(ids))

    def contributions(self, page: int) -> list[tuple[str, float]]:
        """What each feature adds to the model's word on a page that has answered, in log-odds."""
        if self.model_ is None or self.following_ is None:
            return []
        one = np.array([page], dtype=np.int64)
        if not self.following_.rows(one)[1].all():
            return []
        self._place(self.following_)
        inputs, metadata = self.inputs(one)
        unknown = self._encoded({name: [None] for name in self.sources.facts(_ONE[:0])})
        return occluded(self.model_.model, inputs, metadata, unknown)

    def _retraced(self, following: Following) -> Following:
        """With all visits that are stored; from time to time their old events are let go."""
        waiting = 0
        for outcomes in self.sources.history():
            following.learn(outcomes)
            waiting += len(outcomes)
            if waiting > _WAITING:
                self._place(following)
                following.read(_ONE, int(outcomes.at[-1].astype(np.int64)) // HOUR_US)
                waiting = 0
        return following

    def _place(self, following: Following) -> None:
        touched = following.touched()
        for start in range(0, len(touched), _ASKED):
            some = touched[start : start + _ASKED]
            following.place(some, self.sources.facts(some))

    def _ask(self, curves: RhythmSurvival, pages: Pages, hour: int) -> None:
        """Ask about pages with news. What this very hour brought is no feature yet, stays news."""
        model, following = self.model_, self.following_
        assert model is not None
        assert following is not None
        self._place(following)
        row, known = following.rows(pages.ids)
        asked = np.flatnonzero(known)
        asked = asked[self._news[row[asked]]]
        following.read(_ONE[: len(following)], hour)
        for start in range(0, len(asked), _ASKED):
            some = asked[start : start + _ASKED]
            self._hour, ids = hour, pages.ids[some]
            hazards = model.model.hazards(*self.inputs(ids))
            self.take_up(curves.take(some), ids, hazards, np.array(model.manifest["edges"]))
        early = following.answered()[row[asked]] < hour
        self._news[row[asked[early]]] = False

    def _encoded(self, facts: Facts) -> Metadata:
        assert self._vocabulary is not None
        texts = {name: pl.Series(name, column, dtype=pl.String) for name, column in facts.items()}
        return self._vocabulary.encode(as_crawled(pl.DataFrame(texts)))

    def state(self) -> State:
        if self.following_ is None:
            return super().state()
        seen = {f"seen_{name}": column for name, column in self.following_.state().items()}
        own = {"edges": np.array(self.following_.edges), "asked": np.array(self._hour)}
        return {**super().state(), **seen, **own, "news": self._news}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.model_ = self.following_ = None
        if "seen_past_visits_data" in state:  # an older crawl kept its features otherwise
            self.following_ = Following(tuple(state["edges"].tolist()))
            self.following_.restore(part_of(state, "seen_"))
            self._hour, self._news = int(state["asked"]), state["news"].copy()


def _edges(saved: Saved) -> tuple[int, ...]:
    """The edges of a model; InputError if it cannot speak in a crawl."""
    manifest = saved.manifest
    edges = tuple(manifest["edges"])
    if manifest["task"] != "change" or len(edges) < 2:
        raise InputError(
            f"a model of {manifest['task']} within {', '.join(map(str, edges))} h; a crawl takes "
            "one of change with several horizons"
        )
    if manifest["inputs"]["steps"]:
        raise InputError("a model of single changes (sequence), which a crawl does not keep")
    return edges


def occluded(
    model: Calibrated, inputs: Inputs, known: Metadata, unknown: Metadata
) -> list[tuple[str, float]]:
    """Of one page (row 0): each feature, and by how much it raises the log-odds of a change.

    A feature is taken away by saying that it is unknown: NaN, or the code of what was never met in
    `unknown`. Parts of features that tell the same are small each: with one of them gone the others
    still tell it. Largest first. Cost: one score a feature.
    """
    names = *inputs.names, *known.fields, "title"
    rows = np.zeros(1 + len(names), dtype=np.int64)  # the page so often
    asked, pages = inputs.take(rows), known.take(rows)
    dense, fields = np.arange(len(inputs.names)), np.arange(len(known.fields))
    asked.dense[1 + dense, dense] = np.nan
    pages.codes[1 + len(dense) + fields, fields] = unknown.codes[0]
    pages.words[-1] = -1
    chance = model.probabilities(replace(asked, page=np.arange(len(rows))), pages)
    chance = np.clip(chance[:, min(_EDGE, chance.shape[1] - 1)], 1e-9, 1 - 1e-9)
    odds = np.log(chance) - np.log1p(-chance)
    parts = zip(names, (odds[0] - odds[1:]).tolist(), strict=True)
    return sorted(((n, p) for n, p in parts if abs(p) > 1e-6), key=lambda part: -abs(part[1]))
