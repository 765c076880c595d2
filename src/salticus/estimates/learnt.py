"""A trained model as a predictor: every answer is turned into features, and those into a curve."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from salticus.columns import State, part_of, places
from salticus.errors import InputError
from salticus.estimates.curve import LearntSurvival, gamma_through
from salticus.features.events import Kind, make_events
from salticus.features.groups import Groups
from salticus.features.past import Past
from salticus.predict.calibrated import Calibrated
from salticus.predict.rhythm import Rhythm, RhythmSurvival
from salticus.predict.roster import Roster
from salticus.types import (
    ANSWERED,
    CHANGED,
    Floats,
    Ints,
    Metadata,
    Outcomes,
    Pages,
    Survival,
    Times,
    instant,
)

_HOUR_US = 3_600_000_000
_LEAST = 1e-7
_STATUSES = np.array([int(status) for status in ANSWERED], dtype=np.int8)


@dataclass(frozen=True, slots=True)
class Asked:
    """A model, and the ends of the stretches that it tells of, in hours."""

    model: Calibrated
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of pages without visiting them, row by row, in the order of their ids."""

    ids: Ints
    groups: Groups
    metadata: Metadata


class Learnt(Rhythm):
    """`Rhythm`, with the word of a trained model on each page beside its own.

    After every answer of a page the model is asked how likely it changes in the stretches ahead,
    from all that visits have told by then. Until the next answer the page's curve goes through the
    chances of both: `trust` is the weight of the model's hazards, geometrically; the rest is the
    rhythm's. Pages that have never answered are judged by what they are.

    Cost: as `Rhythm`, and the features and scores of the pages that were visited.
    """

    def __init__(self, asked: Asked, known: Known, *, trust: float = 0.5) -> None:
        super().__init__()
        if len(asked.edges) < 2:
            raise InputError("a curve needs two horizons or more; train the model with --hazard")
        self.asked, self.known, self.trust = asked, known, trust
        self.past_ = Past(known.groups, edges=asked.edges, full=False, demand=False)
        self.told_ = Roster(shape=1.0, days=1.0, level=np.nan)
        self._met = np.zeros(len(known.ids), dtype=np.bool_)
        self._news = np.full(len(known.ids), -1, dtype=np.int64)  # hour of the latest; -1: none
        self._hour = -1  # of the last question

    def survival(self, pages: Pages, now: datetime) -> Survival:
        hour = int(instant(now).astype(np.int64)) // _HOUR_US
        self._welcome(self._rows(pages.ids), _hours(pages.added), hour)
        curves = super().survival(pages, now)
        assert isinstance(curves, RhythmSurvival)
        self._ask(curves, pages, hour)
        row = self.told_.rows(pages.ids)
        a, b, level = (self.told_[name][row] for name in ("shape", "days", "level"))
        unasked = np.isnan(level)
        return LearntSurvival(
            a=np.where(unasked, curves.a, a),
            b=np.where(unasked, curves.b, b),
            row=curves.row,
            last=curves.last,
            now=curves.now,
            table=curves.table,
            level=np.where(unasked, curves.a / curves.b, level),
        )

    def learn(self, outcomes: Outcomes) -> None:
        super().learn(outcomes)
        seen = outcomes.take(outcomes.made & np.isin(outcomes.status, _STATUSES))
        rows, at = self._rows(seen.page), _hours(seen.at)
        self._welcome(rows, at, int(at.max(initial=0)))
        gap = (seen.at - seen.since) / np.timedelta64(_HOUR_US, "us")
        events = make_events(Kind.VISIT, at, rows, gap.astype(np.float32))
        new = seen.changed == CHANGED
        self.past_.learn(events.join(make_events(Kind.CHANGE, at[new], rows[new])).ordered())
        np.maximum.at(self._news, rows, at)

    # ------------------------------------------------------------------------------------ inside

    def _rows(self, ids: Ints) -> Ints:
        """The row of each page among those known; InputError if one is not."""
        rows, known = places(self.known.ids, ids)
        if not known.all():
            raise InputError(f"page {ids[~known][0]}: the model was told nothing of it")
        return rows

    def _welcome(self, rows: Ints, added: Ints, hour: int) -> None:
        """Let the features meet pages that are new and there: later ones would have to wait."""
        new = np.flatnonzero(~self._met[rows] & (added <= hour))
        if len(new):
            rows, first = np.unique(rows[new], return_index=True)
            born = added[new][first]
            self.past_.learn(make_events(Kind.BORN, np.maximum(born, self._hour), rows).ordered())
            self._met[rows], self._news[rows] = True, np.maximum(self._news[rows], born)

    def _ask(self, curves: RhythmSurvival, pages: Pages, hour: int) -> None:
        """Ask the model about pages of which there is news, at most once an hour.

        What this very hour brought is not a feature yet, and stays news.
        """
        rows = self._rows(pages.ids)
        some = np.flatnonzero(self._news[rows] >= 0)
        if hour <= self._hour or not len(some):
            return
        asked = rows[some]
        self._hour, self._news[asked[self._news[asked] < hour]] = hour, -1
        inputs = self.past_.read(asked, np.full(len(asked), hour))
        stays = np.cumsum(-np.log1p(-self.asked.model.hazards(inputs, self.known.metadata)), axis=1)
        near, far = (self._mixed(curves.take(some), stays[:, k], k) for k in (0, -1))
        shape, days = gamma_through(near, far)
        place = self.told_.rows(pages.ids[some])
        self.told_["shape"][place], self.told_["days"][place] = shape, days
        self.told_["level"][place] = far[1] / (self.asked.edges[-1] / 24.0)

    def _mixed(self, curves: RhythmSurvival, stays: Floats, edge: int) -> tuple[Floats, Floats]:
        """Own time until an edge, and −ln S there of model and rhythm together."""
        start = np.full(len(stays), curves.now)
        own = self.week_.between(curves.row, start, start + self.asked.edges[edge] * _HOUR_US)
        own = np.maximum(own, 1e-6)
        theirs = curves.a * np.log1p(own / curves.b)
        return own, np.exp(
            self.trust * np.log(np.maximum(stays, _LEAST))
            + (1 - self.trust) * np.log(np.maximum(theirs, _LEAST))
        )

    def state(self) -> State:
        past = {f"past_{name}": column for name, column in self.past_.state().items()}
        told = {f"told_{name}": column for name, column in self.told_.state().items()}
        own = {"met": self._met.copy(), "news": self._news.copy(), "hour": np.array(self._hour)}
        return {**super().state(), **past, **told, **own}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.past_.restore(part_of(state, "past_"))
        self.told_.restore(part_of(state, "told_"))
        self._met, self._news = state["met"].copy(), state["news"].copy()
        self._hour = int(state["hour"])


def _hours(times: Times) -> Ints:
    return np.asarray(times.view(np.int64) // _HOUR_US)
