"""Clicks and impressions a day of a crawl's pages: by counts, and by a model beside them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

import numpy as np

from salticus.errors import InputError
from salticus.features.metadata import Vocabulary
from salticus.models.file import Saved
from salticus.models.traits import Traits
from salticus.predict.demand import PooledDemand, rate_of
from salticus.predict.followed import Followed
from salticus.predict.roster import Roster
from salticus.predict.trust import some_of
from salticus.types import Counts, Floats, Ints, instant
from salticus.types.coins import coins
from salticus.types.dates import DAY_US, HOUR_US
from salticus.types.state import State, part_of, places

_ASKED = 50_000  # pages at a time
_DAY_H = 24
_SPREAD = 2  # the tick of the coins that spread questions over the day
_LATE = 2  # days after which nobody waits for the counts of a day any more


class CountedDemand(NamedTuple):
    """Clicks (or impressions) a day of pages by counts, and how many each of them comes from."""

    rates: Floats
    known: Ints


class _Said(NamedTuple):
    """What was said of some pages for a UTC day (since 1970) as it began, and what came so far."""

    day: int
    ids: Ints
    counts: Floats
    model: Floats
    known: Ints
    came: Floats


class ModelledDemand:
    """How often pages are clicked (shown): by counts, and once it has one, by a model beside them.

    The model is asked for P(click on a UTC day) of every page once in 24 hours, each at an hour of
    its own, of new pages at once, and again after their first answer. How far it is trusted beside
    the counts is learnt from the clicks of each day (`PooledDemand`). Pages that never answered are
    judged by what they are. Laws: without a model it is the counts, to the bit; to be asked for
    rates changes nothing.

    Cost: features and scores of all pages, once a day; 21 bytes a page.
    """

    def __init__(self, task: str, followed: Followed) -> None:
        self.task = task
        self.followed = followed
        self.model_: Saved | None = None
        self.pooled_ = PooledDemand()
        self._vocabulary: Vocabulary | None = None
        self._said: list[_Said] = []
        self._counted = -1  # the last day of which something was counted
        self._forget()

    @property
    def speaks(self) -> bool:
        """Whether a model does."""
        return self.model_ is not None

    def use_model(self, saved: Saved | Traits | None) -> None:
        """Let this model speak from now on, or none; InputError if it cannot."""
        self._forget()
        self.model_ = None
        if saved is None:
            self.followed.leave(self.task)
        else:
            self.resume(saved)

    def resume(self, saved: Saved | Traits) -> None:
        """Let the model speak on that spoke when the state was kept that was restored."""
        if isinstance(saved, Traits):
            raise InputError(f"fitted traits; here a model of {self.task}s serves")
        self.followed.follow(self.task, self._edges(saved))
        self.model_, self._vocabulary = saved, Vocabulary.of(*saved.vocabulary)

    def rebuild(self) -> None:
        """Let the features be made from the history anew, as it has become another."""
        self.model_ = None
        self.followed.rebuild()

    def _forget(self) -> None:
        """Of no page has the model said anything yet."""
        self._told = Roster(chance=np.nan, hour=np.int32(0), answered=np.bool_(False))
        self._hour = -1  # of the last question

    def _edges(self, saved: Saved) -> tuple[int, ...]:
        """The hours ahead that shape its features; InputError if it cannot speak of this."""
        if saved.manifest["task"] != self.task:
            raise InputError(f"a model of {saved.manifest['task']}; here one of {self.task} serves")
        if saved.manifest["inputs"]["steps"]:
            raise InputError("a model of single changes (sequence), which a crawl does not keep")
        return tuple(saved.manifest["recipe"]["edges"])

    # ------------------------------------------------------------------------------ once a tick

    def meet(self, ids: Ints, now: datetime, counted: Callable[[], CountedDemand]) -> None:
        """Let the model say what it has to of these pages (ascending), and weigh what it said of
        the days that are over; `counted` tells what counts say of the pages now."""
        hour = int(instant(now).astype(np.int64)) // HOUR_US
        self.ask(ids, hour)
        day = hour // _DAY_H
        if self.model_ is None or (self._said and self._said[-1].day >= day):
            return
        self._weigh(day)
        counts, known = counted()
        model = self._rates(ids)
        told = np.flatnonzero(~np.isnan(model))
        told = told[some_of(len(told))]
        none = np.zeros(len(told))
        self._said.append(_Said(day, ids[told], counts[told], model[told], known[told], none))

    def ask(self, ids: Ints, hour: int) -> None:
        """Ask the model about pages (ascending) of which it has said nothing for a day."""
        saved = self.model_
        if saved is None or hour <= self._hour or not len(ids):
            return
        assert self._vocabulary is not None
        following = self.followed.follow(self.task, self._edges(saved))
        row = self.followed.meet(following, ids, hour)
        told = self._told.rows(ids)
        answered = following.answered()[row] >= 0
        due = np.isnan(self._told["chance"][told]) | (hour - self._told["hour"][told] >= _DAY_H)
        due |= answered & ~self._told["answered"][told]
        some = np.flatnonzero(due)
        for start in range(0, len(some), _ASKED):
            part = some[start : start + _ASKED]
            asked = self.followed.inputs(following, ids[part], self._vocabulary)
            chance = saved.model.probabilities(*asked)[:, 0]
            if wrong := np.count_nonzero(~((chance >= 0) & (chance <= 1))):
                raise InputError(f"what it says of {wrong} of {len(part)} pages is no probability")
            self._told["chance"][told[part]] = chance
        new = self._told["hour"][told[some]] == 0
        own = np.floor(_DAY_H * coins(0, ids[some], _SPREAD))
        self._told["hour"][told[some]] = hour - np.where(new, own, 0.0)
        self._told["answered"][told[some]] = answered[some]
        self._hour = hour

    def count(self, counts: Counts) -> None:
        """Take what was counted since the last time."""
        if not len(counts):
            return
        day, many = counts.at.view(np.int64) // DAY_US, getattr(counts, f"{self.task}s")
        self._counted = max(self._counted, int(day.max()))
        for said in self._said:
            row, known = places(said.ids, counts.page)
            known &= day == said.day
            np.add.at(said.came, row[known], many[known])

    def _weigh(self, today: int) -> None:
        """Learn from the days that are over, once later ones are counted; nobody waits for long."""
        while self._said and self._said[0].day < today:
            said, late = self._said[0], today - self._said[0].day >= _LATE
            if self._counted <= said.day and not late:
                return
            del self._said[0]
            if self._counted > said.day and today - said.day <= _LATE:
                end = np.datetime64((said.day + 1) * DAY_US, "us")
                self.pooled_.learn((said.counts, said.model), said.came, said.known, end)

    # -------------------------------------------------------------------------------- its answers

    def rates(self, ids: Ints, counted: CountedDemand) -> Floats:
        """Clicks (impressions) a day of pages (ascending), given what counts say of them."""
        if not len(self._told):
            return counted.rates
        return self.pooled_.rates(counted.rates, self._rates(ids), counted.known)

    def _rates(self, ids: Ints) -> Floats:
        """What the model says, a day; NaN of pages of which it has said nothing."""
        return rate_of(self._told.get("chance", ids))

    def parts(self, page: int, known: int) -> tuple[float, float] | None:
        """What the model says of a page, a day, scaled, and its weight beside the counts; None if
        it has said nothing."""
        model = self._rates(np.array([page], dtype=np.int64))
        if np.isnan(model[0]):
            return None
        return self.pooled_.share(model, np.array([known], dtype=np.int64))

    # ------------------------------------------------------------------------------------- state

    def state(self) -> State:
        own: State = {"asked": np.array(self._hour), "counted": np.array(self._counted)}
        for name, part in (("told", self._told), ("pooled", self.pooled_)):
            own |= {f"{name}_{column}": values for column, values in part.state().items()}
        for number, said in enumerate(self._said):
            own |= {f"said{number}_{name}": np.array(c) for name, c in said._asdict().items()}
        return own

    def restore(self, state: State) -> None:
        self.model_ = None
        self._hour, self._counted = int(state["asked"]), int(state["counted"])
        self._told.restore(part_of(state, "told_"))
        self.pooled_.restore(part_of(state, "pooled_"))
        many = sum(name.endswith("_day") for name in part_of(state, "said"))
        kept = (part_of(state, f"said{number}_") for number in range(many))
        self._said = [_Said(int(columns.pop("day")), **columns) for columns in kept]
