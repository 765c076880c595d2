"""A fitted rhythm as simulations have it: it knows itself which visits were answered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from salticus.models.traits import Traits
from salticus.predict.fitted import Fitted, FittedSurvival
from salticus.predict.kin import Kin
from salticus.predict.roster import Roster
from salticus.predict.worth import between
from salticus.types import Floats, Ints, Outcomes, Pages, Times
from salticus.types.dates import DAY_US
from salticus.types.state import State, part_of

_USUAL, _TRIES = 0.9, 0.5  # the chance of an answer before any, and how many tries that is worth
_RECENT = 200.0  # tries that a merchant is judged by
_PATIENCE = 0.25  # a page that failed n times is worth (1 + n)^-¼ of what it would be


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringSurvival(FittedSurvival):
    """A fitted curve that knows of visits that failed: `seen` is the last answer (µs since 1970),
    `answers` the chance that a visit is answered."""

    seen: Ints
    answers: Floats

    def own(self, ages: Floats) -> Floats:
        """Own time since `seen`, days; `ages` count from the last answer, or what the world calls
        one: a page that says it is gone is as old as its last value."""
        late = np.where((self.last >= 0) & (self.seen < self.last), self.last - self.seen, 0)
        return self._own_since(self.last - late, np.ascontiguousarray(ages + late / DAY_US))

    def rates(self) -> Floats:
        """Changes a day, at the pace of the day that ends now."""
        now = np.full(len(self.row), self.now)
        pace = np.maximum(between(self.table, self.row, now - DAY_US, now), 1e-3)
        assert self.level is not None
        return np.asarray(self.level * pace)

    def since(self, last: Times) -> AnsweringSurvival:
        late = last.view(np.int64)
        return replace(self, last=late, seen=np.where(late > self.last, late, self.seen))


class FittedReplay(Fitted):
    """`Fitted`, in a world that tells of a failed visit no more than that it failed.

    Merchants that do not answer are found out, and pages are as old as their last answer. A crawl
    need not learn that: its pages say when they answered (`Pages.answering`).
    """

    def __init__(self, traits: Traits, kin: Kin) -> None:
        super().__init__(traits, kin)
        self.failures_ = Roster(seen=-1.0, failed=0.0)
        self.tries_ = np.zeros((2, 1))  # by merchant: answered, all

    def learn(self, outcomes: Outcomes) -> None:
        super().learn(outcomes)
        self._note_answers(outcomes.take(outcomes.made))

    def _curves(self, rows: Ints | slice, pages: Pages, now: datetime) -> AnsweringSurvival:
        plain = super()._curves(rows, pages, now)
        failed, seen = (self.failures_.get(name, pages.ids) for name in ("failed", "seen"))
        since = np.where(seen < 0, np.maximum(plain.last, 0), seen.astype(np.int64))
        self._widen()
        chance = (self.tries_[0] + _USUAL * _TRIES) / (self.tries_[1] + _TRIES)
        return AnsweringSurvival(
            a=plain.a,
            b=plain.b,
            row=plain.row,
            last=plain.last,
            now=plain.now,
            table=plain.table,
            level=plain.level,
            kin=plain.kin,
            news=plain.news,
            seen=since,
            answers=chance[plain.row] * (1.0 + failed) ** -_PATIENCE,
        )

    def _note_answers(self, made: Outcomes) -> None:
        """When pages answered last, and how often merchants do; only real visits tell of that."""
        rows, good = self.failures_.rows(made.page), made.answered
        at = made.at.view(np.int64).astype(np.float64)
        np.maximum.at(self.failures_["seen"], rows[good], at[good])
        np.add.at(self.failures_["failed"], rows[~good], 1.0)
        self.failures_["failed"][rows[good]] = 0.0
        real, row = made.visit >= 0, self._week_row(self.pages_.rows(made.page))
        self._widen()
        np.add.at(self.tries_[0], row[good & real], 1.0)
        np.add.at(self.tries_[1], row[real], 1.0)
        self.tries_ /= np.maximum(self.tries_[1] / _RECENT, 1.0)

    def _widen(self) -> None:
        new = len(self.week_.pace_) - self.tries_.shape[1]
        if new > 0:
            self.tries_ = np.pad(self.tries_, ((0, 0), (0, new)))

    def state(self) -> State:
        failures = {f"failures_{name}": c for name, c in self.failures_.state().items()}
        return {**super().state(), **failures, "tries": self.tries_.copy()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.failures_.restore(part_of(state, "failures_"))
        self.tries_ = state["tries"].copy()
