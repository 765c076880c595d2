"""What a version of the registry makes of the rhythm: a model beside it, or fitted traits."""

from __future__ import annotations

from dataclasses import astuple
from datetime import datetime, timedelta

import numpy as np

from salticus.errors import InputError
from salticus.models.file import Saved
from salticus.models.traits import Traits
from salticus.predict.base import Evidence
from salticus.predict.fitted import Fitted
from salticus.predict.followed import Followed
from salticus.predict.kin import Kin, KnownKin
from salticus.predict.modelled import Modelled
from salticus.predict.retrace import ticks
from salticus.predict.rhythm import RhythmSurvival
from salticus.predict.roster import Roster
from salticus.types import Floats, Ints, Outcomes, Pages
from salticus.types.state import State, part_of

_ASKED = 50_000  # pages at a time
_DAY = timedelta(days=1)
_PART = "rhythm_"


class Versioned(Modelled):
    """`Modelled`, or in its place a rhythm with fitted traits: one at a time.

    The plain rhythm goes on learning beside fitted traits, so that it can take over at any time.
    Traits that come later find what the visits before have told: the fitted rhythm learns the
    stored visits, day by day, and from then on those that were not stored then. Law: what it knows
    when it takes over depends on the stored visits alone, not on how they are cut.

    Cost: without traits that of `Modelled`; with them that of a second rhythm, some 165 bytes a
    page, and once the time to learn all stored visits.
    """

    def __init__(self, followed: Followed) -> None:
        super().__init__(followed)
        self.traits_: Traits | None = None
        self.rhythm_: Fitted | None = None
        self.kin_ = KnownKin()
        self.learnt_ = Roster(until=-1.0)  # the last answer of each page, µs, that `rhythm_` knows

    @property
    def speaks(self) -> bool:
        """Whether it says more than the rhythm."""
        return self.model_ is not None or self.traits_ is not None

    def use_model(self, saved: Saved | Traits | None) -> None:
        """Let this speak from now on, or nothing but the rhythm."""
        self.rhythm_ = None
        self.traits_ = saved if isinstance(saved, Traits) else None
        super().use_model(None if isinstance(saved, Traits) else saved)

    def resume(self, saved: Saved | Traits) -> None:
        if not isinstance(saved, Traits):
            super().resume(saved)
        elif self.rhythm_ is not None and self.rhythm_.traits == saved:
            self.traits_ = saved
        else:
            self.use_model(saved)

    def rebuild(self) -> None:
        super().rebuild()
        self.traits_ = self.rhythm_ = None

    def meet(self, pages: Pages, now: datetime) -> None:
        super().meet(pages, now)
        if self.traits_ is None:
            return
        if self.rhythm_ is None:
            self.rhythm_ = self._retraced_rhythm(self.traits_, pages)
        self._find_kin(self.rhythm_, pages.ids[~np.isnat(pages.last_answer)])
        self.rhythm_.meet(pages, now)
        if not np.isfinite(self.rhythm_.rates(pages.ids)).all():
            raise InputError("its change rates are no numbers")

    def survival(self, pages: Pages, now: datetime) -> RhythmSurvival:
        if self.rhythm_ is None:
            return super().survival(pages, now)
        return self.rhythm_.survival(pages, now)

    def learn(self, outcomes: Outcomes) -> None:
        super().learn(outcomes)
        if self.rhythm_ is None:
            return
        until = self.learnt_.get("until", outcomes.page)
        new = outcomes.answered & (outcomes.at.view(np.int64) > until)
        self._learn_answers(self.rhythm_, outcomes.take(new))

    def rates(self, ids: Ints) -> Floats:
        return super().rates(ids) if self.rhythm_ is None else self.rhythm_.rates(ids)

    def evidence(self, ids: Ints) -> Evidence:
        return super().evidence(ids) if self.rhythm_ is None else self.rhythm_.evidence(ids)

    def paces(self, ids: Ints) -> Floats:
        return super().paces(ids) if self.rhythm_ is None else self.rhythm_.paces(ids)

    def traits_told(self) -> str | None:
        """The fitted traits in words, if there are any."""
        return None if self.rhythm_ is None else self.rhythm_.traits.told()

    def _retraced_rhythm(self, traits: Traits, pages: Pages) -> Fitted:
        """A fitted rhythm that has learnt all stored visits."""
        self.kin_, self.learnt_ = KnownKin(), Roster(until=-1.0)
        fitted = Fitted(traits, Kin())
        self._find_kin(fitted, pages.ids[~np.isnat(pages.last_answer)])
        for now, outcomes in ticks(self.followed.sources.history(), _DAY):
            fitted.meet(pages, now)
            self._learn_answers(fitted, outcomes.take(outcomes.answered))
        return fitted

    def _learn_answers(self, fitted: Fitted, answers: Outcomes) -> None:
        fitted.learn(answers)
        at = answers.at.view(np.int64).astype(np.float64)
        rows = self.learnt_.rows(answers.page)
        np.maximum.at(self.learnt_["until"], rows, at)

    def _find_kin(self, fitted: Fitted, answered: Ints) -> None:
        """Find the kin of pages (ascending) that have answered: what they are is known by then."""
        if fitted.news_.off:
            return
        missing = self.kin_.missing(answered)
        for start in range(0, len(missing), _ASKED):
            some = missing[start : start + _ASKED]
            self.kin_.place(some, self.followed.sources.facts(some))
        if len(missing):
            fitted.relate(self.kin_.kin)

    def state(self) -> State:
        if self.rhythm_ is None:
            return super().state()
        own = {"traits": np.array(astuple(self.rhythm_.traits))}
        parts = (
            (_PART, self.rhythm_.state()),
            ("kin_", self.kin_.state()),
            ("learnt_", self.learnt_.state()),
        )
        for prefix, state in parts:
            own |= {f"{prefix}{name}": column for name, column in state.items()}
        return {**super().state(), **own}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.traits_ = self.rhythm_ = None
        if "traits" not in state:
            return
        self.kin_.restore(part_of(state, "kin_"))
        self.learnt_.restore(part_of(state, "learnt_"))
        self.rhythm_ = Fitted(Traits(*state["traits"].tolist()), self.kin_.kin)
        self.rhythm_.restore(part_of(state, _PART))
