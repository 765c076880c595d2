"""leap: visit when the freshness that a visit buys reaches the visit price."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np

from salticus.allocate.base import Policy, known
from salticus.allocate.failures import Failures
from salticus.allocate.finding import page_worth, source_worth, unseen_for, untried
from salticus.allocate.rates import rows_by_host
from salticus.allocate.share import first, in_turn, ranked
from salticus.errors import ConfigError
from salticus.types import Outcomes, Pages, Prospects, Survival, Tick, Valued
from salticus.types.arrays import DAY, NEVER, Bools, Floats, Ints, instant
from salticus.types.compiled import compiled
from salticus.types.state import State, part_of

_DAY_US = int(DAY.astype(np.int64))
_NEVER = int(NEVER.astype(np.int64))
_YEAR = 365.0  # days
_FOLLOWS = 0.6  # a day: how fast the price follows what is wanted at it, where new pages come
_LEARNS = 4.0  # a day after one day, half as much after two, and so on
_SWAY = 2.0  # how far off, as a logarithm, what is wanted counts at most
_CHOICE = 4.0  # new pages wanted for each visit that there is: the best are visited, others wait
_WAITS = 0.25  # days for which visits are kept for what is worth the price
_SPARE = 2.0  # standard deviations of the pages that will be found, for which visits are kept
_FIRST, _LEAST = 0.5, 1e-4  # of what a new page is worth: the price at first, and the lowest


class Leap(Policy):
    """The pages for which a visit buys the most: V(τ) = μ[∫₀^τ S − τS(τ)], per cost.

    S is the chance that the page is unchanged τ days after its last answer. V never falls with age,
    so that to take the best pages of every tick is to visit each page when its V reaches one common
    price, at which the visits are spent (Olston and Pandey 2008 for the Poisson curve). With
    constant rates that are right this is the fixed-interval optimum.

    A page that was never visited is worth as much as one whose copy is a year old: nearly all that
    a visit can ever buy, μ∫S, and so it comes before pages that are read as often. After a failed
    visit V counts by the chance of an answer (`Failures`). Pages that nobody reads share
    what is left by V without demand. In case estimates are wrong, a set of `few` of all pages (1 %)
    gets no more than about the share `most` of the visits: that much goes, at most, to the few /
    most visited last.

    Where new pages are to be found, these, sources and known pages have one price, in clicks; or a
    fixed share `finding` of the visits is for sources and new pages, which then have a price of
    their own. What is worth less than the price waits, and its visits are kept for six hours; of
    more, the best are made at any price. A tenth is for sources that were looked at once or twice.

    `price_` is the visit price of the last plan, in demand-weighted fresh days per visit of cost;
    where that is 0, because visits are left for pages that nobody reads, `unread_price_` is the
    least V without demand among them. Both are 0 while there are visits for all. Cost: linear.

    >>> from dataclasses import replace
    >>> from salticus.predict.poisson import PoissonSurvival
    >>> from salticus.testing import blank_pages
    >>> day = np.full(3, np.datetime64("2025-12-31", "us"))
    >>> survival = PoissonSurvival(np.array([0.1, 0.2, 0.2]))
    >>> pages = replace(blank_pages(3).answered(day), survival=survival)
    >>> Leap().expected(pages, visits=1.0)
    array([0. , 0.5, 0.5])
    """

    predictor = "rhythm"
    patience = timedelta(days=1)

    def __init__(
        self, *, few: float = 0.01, most: float = 0.5, finding: float | None = None
    ) -> None:
        if few < 0.0 or most <= 0.0:
            raise ConfigError(f"few is 0 or more and most is above 0, not {few:g} and {most:g}")
        if finding is not None and not 0.0 <= finding <= 1.0:
            raise ConfigError(f"finding is a share of the visits, not {finding:g}")
        self.few = few
        self.most = most
        self.finding = finding
        self.failures_ = Failures()
        self.pace_ = np.nan  # visits a tick, on average
        self.price_, self.unread_price_ = np.nan, np.nan  # not known yet
        self.owed_ = (0.0, np.nan)  # of a fixed split, to known pages, after the tick of a number
        self._left: tuple[float, float] | None = None
        self._asked = (np.nan, np.nan)  # the prices of the last answer
        self.days_, self._days = 0.0, 0.0  # that had a price; those of the last answer
        self._each = 0.0  # clicks on a new page at the price of the last plan, 0 = not known
        self._asked_each = 0.0

    def expected(self, pages: Pages, visits: float) -> Floats:
        if pages.prospects is not None:
            return self._with_new(pages, pages.prospects, visits)
        return self._refreshing(pages, visits)

    def learn(self, outcomes: Outcomes) -> None:
        self.failures_.learn(outcomes)

    def pace(self, per_tick: float) -> None:
        """A tick may count on so many visits."""
        self.pace_ = per_tick

    def _refreshing(self, pages: Pages, visits: float) -> Floats:
        """What each page gets where nobody looks for new ones: all visits are spent."""
        worth, alone = self.worth(pages)
        order, then = np.negative(worth, out=worth), np.negative(alone, out=alone)
        expected = first(order, visits, then)
        hasty, limit = self._hasty(pages), self.most * visits
        if float(expected[hasty].sum()) > limit:
            others = np.delete(np.arange(len(pages)), hasty)
            rest = min(visits - limit, float(len(others)))
            left = min(visits, float(len(pages))) - rest
            for rows, share in ((others, rest), (hasty, left)):
                expected[rows] = first(order[rows], share, then[rows])
        self._note_price(order, then, expected)
        return expected

    def _with_new(self, pages: Pages, prospects: Prospects, visits: float) -> Floats:
        """What each page gets where new ones are to be found: at one price, or by a fixed split."""
        if self.finding is None:
            return self._finding(pages, prospects, visits)
        new = (prospects.row >= 0) | ~np.isnan(prospects.remaining)
        expected, old = np.zeros(len(pages)), replace(pages.take(~new), prospects=None)
        owed = self._owed_in(pages.tick, visits)
        share = float(min(math.floor(owed + 1e-9), math.floor(visits), len(old)))
        expected[~new] = self._refreshing(old, share)
        self._asked = (self.price_, np.nan)  # that of finding, though it may have no visits now
        some = pages.take(new)
        assert some.prospects is not None
        expected[new] = self._finding(some, some.prospects, visits - share)
        self._left = (owed - share, pages.tick.number)
        return expected

    def _owed_in(self, tick: Tick, visits: float) -> float:
        """Visits that are due to known pages by a tick; what they could not get is kept for a day.
        Without that account finding would take more than its share: what it spends in one tick is
        missing in later ones, as no 24 hours hold more than the budget."""
        assert self.finding is not None
        a_tick = (1.0 - self.finding) * (visits if math.isnan(self.pace_) else self.pace_)
        owed, number = self.owed_
        ticks = 1.0 if math.isnan(number) else max(tick.number - number, 1.0)
        return min(owed + a_tick * ticks, a_tick * max(1.0 / tick.days, 1.0))

    def _finding(self, pages: Pages, prospects: Prospects, visits: float) -> Floats:
        """The same where new pages are to be found: a source takes up its own visit, and those to
        the pages on it that will be worth the price."""
        if visits <= 0.0:
            return np.zeros(len(pages))
        worth, alone = self.worth(pages)
        self._asked_each = each = page_worth(prospects.harvest)
        burden = _burden(pages, prospects, level := self._level(each))
        order = np.lexsort((pages.ids, -alone, -worth))
        wanted = np.cumsum(burden[order])
        if not math.isfinite(self.price_) and len(order):
            enough = min(int(np.searchsorted(wanted, _CHOICE * visits)), len(order) - 1)
            level = min(level, float(worth[order[enough]]))
        many = int(np.count_nonzero(worth >= level))
        at_once = np.count_nonzero(np.isnan(prospects.remaining[order[:many]]))
        asked = float(at_once + (wanted[many - 1] - at_once) / _CHOICE) if many else 0.0
        self._asked = (self._next_price(level, asked, visits, pages.tick), np.nan)
        self._days = pages.tick.days
        order = order[: max(many, self._overdue(wanted, pages.tick, visits))]
        if len(tried := untried(pages, visits)):
            order = np.concatenate([tried, order[~np.isin(order, tried)]])
        coming = float(in_turn(order, burden, visits) @ (burden - 1.0))
        kept = min(_SPARE * math.sqrt(coming), 0.5 * visits)
        return in_turn(order, burden, visits - kept)

    def _overdue(self, wanted: Floats, tick: Tick, visits: float) -> int:
        """How many of those in order take up the visits that were kept for long enough; `wanted`
        are the visits to each and all before it."""
        part = 1.0 if self.finding is None else self.finding
        kept = part * self.pace_ / tick.days * _WAITS
        lost = 0.0 if math.isnan(kept) else visits - max(kept, 1.0)
        return min(int(np.searchsorted(wanted, lost)) + 1, len(wanted)) if lost > 0.0 else 0

    def _next_price(self, price: float, wanted: float, visits: float, tick: Tick) -> float:
        """The price for the next tick: higher if more than the visits were wanted at this one,
        lower if less; slow, so that it is the same by day and by night, but not at first, when
        pages that were never visited have made it high."""
        off = math.log((_CHOICE * wanted + 1.0) / (_CHOICE * visits + 1.0))
        pace = max(_FOLLOWS, _LEARNS / max(self.days_, _WAITS))
        return price * math.exp(pace * tick.days * min(max(off, -_SWAY), _SWAY))

    def _level(self, each: float) -> float:
        """The visit price as it has been lately, if new pages are worth so much on average; it
        grows with that, which is known badly at first."""
        if not math.isfinite(self.price_):
            return _FIRST * each
        grown = each / self._each if self._each > 0.0 else 1.0
        return max(self.price_ * grown, _LEAST * each)

    def _note_price(self, order: Floats, then: Floats, expected: Floats) -> None:
        """The last page in the order that is chosen tells the price."""
        chosen = np.flatnonzero(expected > 0.0)
        if not len(chosen):
            return
        if expected.min() >= 1.0:  # visits for all: they cost nothing
            self._asked = (0.0, 0.0)
            return
        cut = float(order[chosen].max())
        tied = chosen[order[chosen] == cut] if cut == 0.0 else chosen[:0]
        self._asked = (-cut + 0.0, -float(then[tied].max(initial=-np.inf)))

    def begin(self, pages: Pages) -> None:
        """Nothing is left from the last tick."""
        self._asked, self._left = (self.price_, self.unread_price_), None
        self._days = 0.0

    def adopt(self) -> None:
        """The price of the last answer is that of the plan."""
        self.price_, self.unread_price_ = self._asked
        self.owed_ = self._left or self.owed_
        self._each = self._asked_each
        self.days_ += self._days

    def reached(self, worth: Floats, alone: Floats) -> Bools:
        """Which pages are worth a visit, by V per cost and by V without demand."""
        if self.price_ > 0.0:
            return worth >= self.price_
        return (worth > 0.0) | (alone >= self.unread_price_)

    def expected_by_host(self, pages: Pages, room: Floats) -> Floats:
        return by_host(*self.worth(pages), pages.host, room)

    def worth(self, pages: Pages) -> tuple[Floats, Floats]:
        """V of every page per visit of cost, and V without demand; with what sources and new pages
        promise."""
        demand = known("demand", pages.demand, pages.ids)
        now, since = instant(pages.tick.start), pages.unanswered_since()
        last = since.view(np.int64)
        ages = _ages(last, int(now.astype(np.int64)), _YEAR)
        alone = known("change rate", _index(pages.survival, ages, pages.tick.days), pages.ids)
        failed = np.flatnonzero(pages.last_visit > since)  # all others answer for certain
        if len(failed):
            alone[failed] *= self.failures_.answering(pages, now, failed)
        cost = known("cost", pages.cost, pages.ids)
        worth = alone * (demand / cost)
        if pages.prospects is not None:
            rows, promised = self._promised(pages, pages.prospects)
            new = ~np.isnan(pages.prospects.remaining[rows])  # what fresh copies are worth, too
            worth[rows] = np.where(new, 0.0, worth[rows]) + promised / cost[rows]
            alone[rows] = np.where(new, 0.0, alone[rows]) + promised
        return worth, alone

    def _promised(self, pages: Pages, prospects: Prospects) -> tuple[Ints, Floats]:
        """Clicks that visits to sources and to new pages bring, on top of what freshness is worth;
        the rows of these, and how many."""
        level = self._level(page_worth(prospects.harvest))
        sources = np.flatnonzero(prospects.row >= 0)
        found, _ = source_worth(prospects, sources, unseen_for(pages, sources), level)
        new = np.flatnonzero(~np.isnan(prospects.remaining))
        rows = np.concatenate([sources, new])
        more = np.concatenate([found, prospects.remaining[new]])
        return rows, more * pages.answering(instant(pages.tick.start), rows)

    def _hasty(self, pages: Pages) -> Ints:
        """The pages visited last: so many that `few` of all among them cannot get beyond `most`."""
        n = len(pages)
        if not n:
            return np.empty(0, dtype=np.int64)
        newest = ~pages.last_visit.view(np.int64)  # the other way round, never visited at the end
        return np.flatnonzero(newest < ranked(newest, min(int(self.few / self.most * n), n - 1)))

    def state(self) -> State:
        return {
            "price": np.array([self.price_, self.unread_price_]),
            "each": np.array(self._each),
            "owed": np.array(self.owed_),
            "days": np.array(self.days_),
            **{f"failures_{name}": column for name, column in self.failures_.state().items()},
        }

    def restore(self, state: State) -> None:
        self.price_, self.unread_price_ = (float(price) for price in state["price"])
        self._each = self._asked_each = float(state.get("each", 0.0))
        self.days_ = float(state.get("days", math.inf))
        owed, number = state.get("owed", np.array(self.owed_)).tolist()
        self.owed_ = owed, number
        if "failures_ids" in state:  # an older crawl did not count them
            self.failures_.restore(part_of(state, "failures_"))


def _burden(pages: Pages, prospects: Prospects, price: float) -> Floats:
    """Visits that each page takes up: its own, and to what will be found on it."""
    rows, burden = np.flatnonzero(prospects.row >= 0), np.ones(len(pages))
    burden[rows] += source_worth(prospects, rows, unseen_for(pages, rows), price)[1]
    return burden


def _index(survival: Survival | None, ages: Floats, step: float) -> Floats:
    """V(τ) without demand, days; on a curve that does not know it, from the curve itself."""
    if survival is None:
        return ages * 1.0
    if isinstance(survival, Valued):
        return np.asarray(survival.worth(ages, step))
    still = survival.unchanged(ages)
    return np.maximum(survival.integral(ages) - ages * still + 0.5 * step * (1.0 - still), 0.0)


@compiled
def _ages(last: Ints, now: int, never: float) -> Floats:
    """Days since each last answer; `never` if there was no visit."""
    ages = np.full(len(last), never)
    for k in range(len(last)):
        if last[k] != _NEVER:
            ages[k] = (now - last[k]) / _DAY_US
    return ages


def by_host(worth: Floats, alone: Floats, host: Ints, room: Floats) -> Floats:
    """The best pages of every host, `room[host]` visits each; pages of equal worth go by `alone`,
    and those that are equal in that too share.

    The same as `share.first` for each host alone, highest first, for all hosts at once. Cost:
    linear.

    >>> worth, host = np.array([3.0, 1.0, 2.0, 5.0]), np.array([0, 0, 0, 1])
    >>> by_host(worth, np.ones(4), host, np.array([1.5, 9.0]))
    array([1. , 0. , 0.5, 1. ])
    """
    return _by_host(worth, alone, *rows_by_host(host, len(room)), room)


@compiled
def _by_host(worth: Floats, alone: Floats, rows: Ints, begin: Ints, room: Floats) -> Floats:
    out = np.zeros(len(worth))
    for h in range(len(room)):
        tied, left = _take(worth, rows[begin[h] : begin[h + 1]], room[h], out)
        tied, left = _take(alone, tied, left, out)
        out[tied] = left / max(1, len(tied))
    return out


@compiled
def _take(worth: Floats, rows: Ints, visits: float, out: Floats) -> tuple[Ints, float]:
    """The best of some rows, into `out`; the rows at their price, and the visits left for these."""
    if visits >= len(rows):
        out[rows] = 1.0
    if visits >= len(rows) or visits <= 0.0:
        return rows[:0], 0.0
    mine = -worth[rows]
    price = np.partition(mine, math.ceil(visits) - 1)[math.ceil(visits) - 1]
    out[rows[mine < price]] = 1.0
    return rows[mine == price], visits - np.count_nonzero(mine < price)
