"""A trained model in a crawl: its pages come as they are found, its features as visits end."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np

from salticus.errors import InputError
from salticus.features.following import Following
from salticus.features.metadata import Vocabulary
from salticus.models.file import Saved
from salticus.models.model import Calibrated
from salticus.predict.followed import Followed, encoded
from salticus.predict.mixed import Mixed
from salticus.predict.rhythm import Rhythm, RhythmSurvival
from salticus.predict.roster import Roster
from salticus.types import Inputs, Ints, Metadata, Outcomes, Pages, instant
from salticus.types.dates import HOUR_US
from salticus.types.state import State

_ASKED = 50_000  # pages at a time
_EDGE = 1  # which horizon contributions are about: the second, a day as a rule
_TASK = "change"


class Modelled(Mixed):
    """`Rhythm`, and once it has one, the word of a model on each page beside it (see `Mixed`).

    After every answer of a page the model is asked anew, at most once an hour; pages that have
    never answered are judged by what is known without. What the model looks at is kept by
    `followed`, where a model that comes later finds what the visits before it have told. Law: what
    it says depends on the visits alone, not on when it came or how they were cut.

    Cost: without a model that of `Rhythm`; with one, the features and scores of pages with news.
    """

    def __init__(self, followed: Followed) -> None:
        super().__init__()
        self.followed = followed
        self.model_: Saved | None = None
        self._vocabulary: Vocabulary | None = None
        self._news = np.empty(0, dtype=np.bool_)  # by the rows of what is followed
        self._hour = -1  # of the last question

    @property
    def following_(self) -> Following | None:
        """What the model looks at."""
        return self.followed.of(_TASK)

    def use_model(self, saved: Saved | None) -> None:
        """Let this model speak from now on, or none; InputError if it cannot speak in a crawl."""
        edges = () if saved is None else _edges(saved)
        self.told_ = Roster(**self.told_.defaults)  # of no page has it said anything yet
        self.model_, self._hour = saved, -1
        if saved is None:
            self.followed.leave(_TASK)
            return
        self._vocabulary = Vocabulary.of(*saved.vocabulary)
        following = self.followed.follow(_TASK, edges)
        self._news = np.ones(len(following), dtype=np.bool_)

    def resume(self, saved: Saved) -> None:
        """Let the model speak on that spoke when the state was kept that was restored."""
        if self.following_ is None or self.following_.edges != _edges(saved):
            self.use_model(saved)
            return
        self.model_, self._vocabulary = saved, Vocabulary.of(*saved.vocabulary)

    def rebuild(self) -> None:
        """Let the features be made from the history anew, as it has become another."""
        self.model_ = None
        self.followed.rebuild()

    def meet(self, pages: Pages, now: datetime) -> None:
        super().meet(pages, now)
        hour = int(instant(now).astype(np.int64)) // HOUR_US
        if self.model_ is not None and self.following_ is None:
            self.use_model(self.model_)  # who follows the same had to begin anew
        if self.model_ is None or hour <= self._hour:
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
        self.followed.learn(outcomes)
        if self.following_ is None:
            return
        row, known = self.following_.rows(outcomes.page)
        self._room(len(self.following_))
        self._news[row[known]] = True

    def inputs(self, ids: Ints) -> tuple[Inputs, Metadata]:
        """What the model would be asked with now of pages that it has met."""
        assert self.following_ is not None
        assert self._vocabulary is not None
        return self.followed.inputs(self.following_, ids, self._vocabulary)

    def contributions(self, page: int) -> list[tuple[str, float]]:
        """What each feature adds to the model's word on a page that it has met, in log-odds."""
        following, one = self.following_, np.array([page], dtype=np.int64)
        if self.model_ is None or following is None or not following.rows(one)[1].all():
            return []
        assert self._vocabulary is not None
        self.followed.meet(following, one, following.hour)
        inputs, metadata = self.inputs(one)
        known = self.followed.sources.facts(one[:0])
        unknown = encoded({name: [None] for name in known}, self._vocabulary)
        return occluded(self.model_.model, inputs, metadata, unknown)

    def _room(self, rows: int) -> None:
        """Pages that are new are news."""
        new = np.ones(max(0, rows - len(self._news)), dtype=np.bool_)
        self._news = np.append(self._news, new)

    def _ask(self, curves: RhythmSurvival, pages: Pages, hour: int) -> None:
        """Ask about pages with news. What this very hour brought is no feature yet, stays news."""
        model, following = self.model_, self.following_
        assert model is not None
        assert following is not None
        row = self.followed.meet(following, pages.ids, hour)
        self._room(len(following))
        asked = np.flatnonzero(self._news[row])
        for start in range(0, len(asked), _ASKED):
            some = asked[start : start + _ASKED]
            self._hour, ids = hour, pages.ids[some]
            hazards = model.model.hazards(*self.inputs(ids))
            self.set_hazards(curves.take(some), ids, hazards, np.array(model.manifest["edges"]))
        early = following.answered()[row[asked]] < hour
        self._news[row[asked[early]]] = False

    def state(self) -> State:
        own = {"asked": np.array(self._hour), "news": self._news}
        return super().state() if self.following_ is None else {**super().state(), **own}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.model_ = None
        if "news" in state:
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
