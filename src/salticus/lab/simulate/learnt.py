"""A trained model as a predictor: every answer is turned into features, and those into a curve."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from salticus.errors import InputError
from salticus.features.events import EventKind, make_events
from salticus.features.groups import Groups
from salticus.features.past import FeatureStream
from salticus.models.model import Calibrated
from salticus.predict.mixed import Mixed
from salticus.predict.rhythm import Rhythm, RhythmSurvival
from salticus.types import CHANGED, Ints, Metadata, Outcomes, Pages, Times, instant
from salticus.types.dates import HOUR_US
from salticus.types.state import State, part_of, places


@dataclass(frozen=True, slots=True)
class KnownPages:
    """What is known of pages without visiting them, row by row, in the order of their ids."""

    ids: Ints
    groups: Groups
    metadata: Metadata


class Learnt(Mixed):
    """`Rhythm`, with the word of a trained model on each page beside its own (see `Mixed`).

    After every answer of a page the model is asked how likely it changes in the stretches ahead,
    from all that visits have told by then; that holds until the next answer. Pages that have never
    answered are judged by what they are.

    `edges` are the ends of the stretches that the model tells of, in hours.

    Cost: as `Rhythm`, and the features and scores of the pages that were visited.
    """

    def __init__(
        self, model: Calibrated, edges: tuple[int, ...], known: KnownPages, *, trust: float = 0.5
    ) -> None:
        super().__init__(trust=trust)
        if len(edges) < 2:
            raise InputError("a curve needs two horizons or more; train the model with --hazard")
        self.model, self.edges, self.known = model, edges, known
        self.past_ = FeatureStream(known.groups, edges=edges, full=False, demand=False)
        self._met = np.zeros(len(known.ids), dtype=np.bool_)
        self._news = np.full(len(known.ids), -1, dtype=np.int64)  # hour of the latest; -1: none
        self._hour = -1  # of the last question

    def meet(self, pages: Pages, now: datetime) -> None:
        hour = int(instant(now).astype(np.int64)) // HOUR_US
        self._welcome(self._rows(pages.ids), _hours(pages.added), hour)
        super().meet(pages, now)
        self._ask(Rhythm.survival(self, pages, now), pages, hour)

    def survival(self, pages: Pages, now: datetime) -> RhythmSurvival:
        return self.blend(super().survival(pages, now), pages.ids)

    def learn(self, outcomes: Outcomes) -> None:
        super().learn(outcomes)
        seen = outcomes.take(outcomes.answered)
        rows, at = self._rows(seen.page), _hours(seen.at)
        self._welcome(rows, at, int(at.max(initial=0)))
        gap = (seen.at - seen.since) / np.timedelta64(HOUR_US, "us")
        events = make_events(EventKind.VISIT, at, rows, gap.astype(np.float32))
        new = seen.changed == CHANGED
        self.past_.learn(events.join(make_events(EventKind.CHANGE, at[new], rows[new])).ordered())
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
            self.past_.learn(
                make_events(EventKind.BORN, np.maximum(born, self._hour), rows).ordered()
            )
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
        hazards = self.model.hazards(inputs, self.known.metadata)
        self.take_up(curves.take(some), pages.ids[some], hazards, np.array(self.edges))

    def state(self) -> State:
        past = {f"past_{name}": column for name, column in self.past_.state().items()}
        own = {"met": self._met.copy(), "news": self._news.copy(), "hour": np.array(self._hour)}
        return {**super().state(), **past, **own}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.past_.restore(part_of(state, "past_"))
        self._met, self._news = state["met"].copy(), state["news"].copy()
        self._hour = int(state["hour"])


def _hours(times: Times) -> Ints:
    return np.asarray(times.view(np.int64) // HOUR_US)
