"""What sources promise a running crawl: learnt from looks, new pages and clicks as they come."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import numpy as np

from salticus.allocate.base import Admits
from salticus.crawl.backlog import WAITS, backlog, left_of_old
from salticus.predict.finder import Finder
from salticus.predict.harvest import HeldPages
from salticus.predict.links import SourceVisits
from salticus.predict.overlap import Overlap
from salticus.store.base import ChangeStore, SourceStore
from salticus.types import (
    DAY,
    KINDS,
    NEVER,
    Bools,
    Columns,
    Counts,
    Floats,
    FoundPages,
    Instant,
    Ints,
    Looks,
    Pages,
    Prospects,
    Times,
    days_between,
    instant,
    usual_days,
)
from salticus.types.state import State, part_of, places, rank_within

if TYPE_CHECKING:
    from salticus.crawl.loop import Loop

RESOLUTION = 1 / 24  # days: clicks are counted by the hour
SHORTEST = 5 / 1440  # days between two looks at a source
_LATELY = 3.0  # days over which clicks on a found page are forgotten
FADES = 180.0  # days for which people's interest in a found page is that of its source's pages
RELEARN = timedelta(minutes=30)  # as in Lefortier et al. 2013, §5.3
_HOUR = np.timedelta64(1, "h")
_WEEK = 7 * DAY
_LEAST = 1e-6  # clicks a day
_OFFER = KINDS.index("offer")
_NONE: Ints = np.empty(0, dtype=np.int64)
_NO_TIME: Times = np.empty(0, dtype="M8[us]")


class ScoutStore(SourceStore, ChangeStore, Protocol):
    """What the store knows of sources: looks, finds, and the values that tell their formats."""


@dataclass(frozen=True, slots=True)
class Found(Columns):
    """New pages, ordered by id: the number of the source that showed each first, the look `at`
    which it was there and the one before, `since`, when its link was last `seen` before the page
    was visited, and the clicks on it `lately`."""

    page: Ints
    via: Ints
    at: Times
    since: Times
    seen: Times
    lately: Floats

    def stood(self) -> Floats:
        """Days for which each link stood until it was last seen, as far as that is known."""
        return days_between(self.at, self.seen) + 0.5 * days_between(self.since, self.at)


_NOTHING = Found(_NONE, _NONE, _NO_TIME, _NO_TIME, _NO_TIME, np.empty(0))


class Scout:
    """Keeps what is known of sources and new pages in step with the store.

    A source is known by its number once it was met. New pages count for the first source that
    showed them, for as long as people may want them; those that wait longer than 14 days are pages
    like any other. How often people click on them is learnt from the hours in which any clicks were
    counted. Until there are some, a new page is as wanted as the average page, and interest in it
    fades as the finder's prior says: where nobody counts clicks, every new page is worth the same.

    Law: restored from its state, it knows what it would have known. Cost: linear in looks, finds
    and counts; a kilobyte a source; all sources are worked out again once in `relearn`.
    """

    def __init__(
        self, store: ScoutStore, finder: Finder | None = None, *, relearn: timedelta = RELEARN
    ) -> None:
        self.store = store
        self.relearn = np.timedelta64(relearn)
        self.finder = finder or Finder(0, resolution=RESOLUTION, shortest=SHORTEST)
        self.overlap = Overlap()
        self.ids_: Ints = _NONE  # of sources, by number
        self.first_: Times = _NO_TIME  # looks at them
        self.news_: Times = _NO_TIME  # last looks that saw new links; NaT = never
        self.usual_: Floats = np.empty(0)  # days between visits by custom; NaN = not known yet
        self.found_ = _NOTHING
        self.unseen_: Floats = np.empty(0)  # days for which what the last look showed was
        self.looks_, self.finds_ = 0, 0  # numbers of the last ones learnt
        self.watched_: Instant = NEVER  # until when clicks were counted
        self.solved_: Instant = NEVER

    # --------------------------------------------------------------------------------- learning

    def meet(self, sources: Ints, host: Ints, demand: float) -> None:
        """These are all sources and their hosts, and other pages are wanted so often, in clicks a
        day."""
        self.overlap.place(self._numbers(sources), host)
        usual = max(demand, _LEAST) / self.finder.prior.decay
        if not 0.8 < usual / self.finder.prior.profit < 1.25:  # or all is worked out every tick
            self.finder.suppose(self.finder.prior._replace(profit=usual))
            self.solved_ = NEVER
        if np.isnat(self.solved_):
            self.finder.solve()

    async def refresh(self) -> Ints:
        """Take up looks and finds since the last time; the pages that were found."""
        found = _NONE
        while len(looks := await self.store.looks(self.looks_)):
            self.looked(looks)
            await self._recognize()
        while len(finds := await self.store.finds(self.finds_)):
            self.take(finds)
            found = np.concatenate([found, finds.page])
        return found

    async def stand(self, waiting: Ints) -> None:
        """Note which links still stand, of pages that wait for their first visit."""
        rows = np.flatnonzero(np.isin(self.found_.page, waiting))
        if len(rows):
            seen = self.found_.seen.copy()
            seen[rows] = np.fmax(seen[rows], await self.store.standing(self.found_.page[rows]))
            self.found_ = replace(self.found_, seen=seen)

    def looked(self, looks: Looks) -> None:
        """Learn what looks at sources saw, in order of time."""
        self.looks_ = looks.last
        numbers = self._numbers(looks.source)
        self.unseen_[numbers], shows = self.overlap.looked(numbers, looks)
        turn = rank_within(numbers)
        for round_ in range(int(turn.max(initial=-1)) + 1):
            some = np.flatnonzero(turn == round_)
            first = np.isnat(looks.since[some])
            self.finder.met(numbers[some[first]], looks.shown[some[first]].astype(np.float64))
            again = looks.take(some := some[~first])
            days = days_between(again.since, again.at)
            counts = (c.astype(np.float64) for c in (again.new, again.kept, again.gone))
            told = SourceVisits(numbers[some], days, *counts)
            self.finder.visited(told, again.at, shows[some])
        met = np.isnat(looks.since)
        self.first_[numbers[met]] = looks.at[met]
        self.first_ = np.where(np.isnat(self.first_), self.overlap.last_, self.first_)
        showed = ~met & (looks.shown > looks.kept)
        times = self.news_.view(np.int64)
        np.maximum.at(times, numbers[showed], looks.at[showed].view(np.int64))
        self._solve(looks.at.max())

    async def _recognize(self) -> None:
        """Learn what the sources that were looked at are: feeds, sitemaps or HTML pages."""
        for row in np.flatnonzero(np.isnan(self.usual_) & ~np.isnat(self.overlap.last_)).tolist():
            value = await self.store.value(int(self.ids_[row]))
            self.usual_[row] = usual_days(None if value is None else value.fields.get("format"))

    def take(self, finds: FoundPages) -> None:
        """Learn of new pages; those of long ago are pages like any other."""
        self.finds_ = finds.last
        via, since = self._numbers(finds.source), finds.since.copy()
        latest = np.flatnonzero(finds.at == self.overlap.last_[via])
        unseen = (self.unseen_[via[latest]] * DAY.astype(np.int64)).astype("m8[us]")
        since[latest] = np.maximum(since[latest], finds.at[latest] - unseen)
        new = Found(finds.page, via, finds.at, since, finds.at, np.zeros(len(via)))
        both = self.found_.join(new) if len(self.found_) else new
        _, first = np.unique(both.page, return_index=True)
        both = both.take(first)
        self.found_ = both.take(days_between(both.at, finds.at.max()) < FADES)

    def heed(self, counts: Counts, ids: Ints, answered: Times) -> None:
        """Learn how often people clicked on new pages that are held: all pages by their `ids`
        (ascending), and when each answered last."""
        if not len(self.found_) or not counts.clicks.any():
            return
        rows, known = places(ids, self.found_.page)
        held = np.full(len(rows), NEVER)
        held[known] = answered[rows[known]]
        for hour in np.unique(counts.at):
            self._watch(counts.take(counts.at == hour), hour + _HOUR, held)

    def _watch(self, counts: Counts, until: Instant, held: Times) -> None:
        """Learn the counts of an hour that ends then."""
        begin = until - _HOUR if np.isnat(self.watched_) else min(self.watched_, until)
        middle = until - (until - begin) / 2 if until > begin else until - _HOUR / 2
        rows = np.flatnonzero(held < until)
        pages = self.found_.take(rows)
        clicks, (at, known) = np.zeros(len(rows)), places(pages.page, counts.page)
        np.add.at(clicks, at[known], counts.clicks[known])
        self.finder.watch(
            HeldPages(
                source=pages.via,
                age=days_between(pages.at, middle) + 0.5 * days_between(pages.since, pages.at),
                standing=self.finder.yields.standing(pages.stood()),
                since=np.maximum(days_between(pages.seen, middle), 0.0),
                clicks=clicks,
            ),
            float(days_between(begin, until)),
        )
        lately = self.found_.lately * np.exp(-days_between(begin, max(begin, until)) / _LATELY)
        lately[rows] += clicks
        self.found_ = replace(self.found_, lately=lately)
        self.watched_ = max(begin, until)

    def _numbers(self, sources: Ints) -> Ints:
        """The number of each source; those not met before get one."""
        fresh = np.setdiff1d(sources, self.ids_)
        if len(fresh):
            self.ids_ = np.concatenate([self.ids_, fresh])
            self.unseen_ = np.pad(self.unseen_, (0, len(fresh)))
            self.overlap.grow(len(self.ids_))
            self.usual_ = np.concatenate([self.usual_, np.full(len(fresh), np.nan)])
            never = np.full(len(fresh), NEVER)
            self.first_, self.news_ = (
                np.concatenate([times, never]) for times in (self.first_, self.news_)
            )
            self.finder.grow(len(self.ids_))
            self.solved_ = NEVER
        order = np.argsort(self.ids_)
        return order[np.searchsorted(self.ids_[order], sources)]

    def _solve(self, now: Instant) -> None:
        """Work out all that was learnt, unless that was done just now."""
        if np.isnat(self.solved_) or now - self.solved_ >= self.relearn:
            self.finder.solve()
            self.solved_ = now

    # ------------------------------------------------------------------------------- promising

    def prospects(self, pages: Pages) -> Prospects | None:
        """What sources and new pages promise; None if no source was looked at."""
        rows, known = places(pages.ids, self.ids_)
        if not known.any():
            return None
        number = np.full(len(pages), -1)
        number[rows[known]] = np.flatnonzero(known)
        links, interest = self.finder.links_, self.finder.interest_
        entries, span = self._lately()
        remaining = self._remaining(pages)
        fades = not np.isnat(self.watched_)  # as far as is known
        old = backlog(pages, self.found_.page) if fades else np.zeros(len(pages), dtype=np.bool_)
        remaining[old] = left_of_old(pages, old, self.finder, rows, known)
        return Prospects(
            rate=_spread(number, links.rate),
            profit=_spread(number, interest.profit),
            decay=_spread(number, interest.decay),
            remaining=remaining,
            entries=_spread(number, entries),
            span=_spread(number, span),
            usual=_spread(number, np.nan_to_num(self.usual_, nan=usual_days(None))),
            looks=_spread(number, self.finder.looks()),
            row=number,
            unseen=_spread(number, self._unseen(pages, rows[known], known)),
            harvest=replace(self.finder.harvest_, until=instant(pages.tick.end)),
            backlog=old,
        )

    def _unseen(self, pages: Pages, rows: Ints, known: Bools) -> Floats:
        """Days for which what each source shows was seen nowhere; those `known` have these rows."""
        start, last = instant(pages.tick.start), pages.unanswered_since()[rows]
        ages, answering = np.full(len(known), np.inf), np.zeros(len(known))
        ages[known] = np.where(np.isnat(last), np.inf, np.maximum(days_between(last, start), 0.0))
        answering[known] = pages.answering(start, rows)
        return self.overlap.unseen(ages, answering, pages.tick.days)

    def worth(self, pages: Ints, now: Instant) -> Floats:
        """Clicks that each of these pages will get yet as a new one; NaN if it is none."""
        rows, known = places(self.found_.page, pages)
        some = self.found_.take(rows[known])
        since = np.maximum(days_between(some.seen, now), 0.0)
        worth = np.full(len(pages), np.nan)
        worth[known] = self.finder.remaining(some.via, some.stood(), since)
        return worth

    def fading(self, pages: Pages, clicks: Floats) -> Floats:
        """Demand of all pages, where `clicks` were counted of each; of found pages it fades as that
        of others of their source does, and their own clicks correct it.

        A page that would have got E clicks by now and got c is wanted (c + 1)/(E + 1) times as much
        as others of its age. After two weeks, by when most are forgotten, it is wanted at least as
        often as it was clicked of late. Offers are for sale until they are gone: theirs does not
        fade.
        """
        rows, known = places(pages.ids, self.found_.page)
        fades = known & (pages.kind[rows] != _OFFER) & ~np.isnat(pages.last_answer[rows])
        if np.isnat(self.watched_) or not fades.any():
            return pages.demand
        some, rows, now = self.found_.take(fades), rows[fades], instant(pages.tick.start)
        since = np.maximum(days_between(some.seen, now), 0.0)
        whole, left, later = (
            self.finder.remaining(some.via, some.stood(), days)
            for days in (0.0 * since, since, since + 1.0)
        )
        demand = pages.demand.copy()
        fading = (left - later) * (clicks[rows] + 1.0) / (whole - left + 1.0)
        ago = max(float(days_between(self.watched_, now)), 0.0)
        lasting = some.lately * math.exp(-ago / _LATELY) / _LATELY
        demand[rows] = np.maximum(fading, np.where(since > WAITS, lasting, 0.0))
        return demand

    def _remaining(self, pages: Pages) -> Floats:
        now, remaining = instant(pages.tick.start), np.full(len(pages), np.nan)
        rows, known = places(pages.ids, self.found_.page)
        young = days_between(self.found_.at, now) < WAITS
        rows = rows[known & young]
        rows = rows[np.isnat(pages.last_visit[rows])]
        remaining[rows] = self.worth(pages.ids[rows], now)
        return remaining

    def _lately(self) -> tuple[Floats, Floats]:
        """Of each source the new pages in the week before its last look, and over how many days
        they came."""
        many, found = len(self.ids_), self.found_
        week = found.take(found.at > self.overlap.last_[found.via] - _WEEK)
        at = week.at.view(np.int64).astype(np.float64)
        first, last = np.full(many, np.inf), np.full(many, -np.inf)
        np.minimum.at(first, week.via, at)
        np.maximum.at(last, week.via, at)
        entries = np.bincount(week.via, minlength=many).astype(np.float64)
        return entries, np.where(entries > 0, last - first, 0.0) / DAY.astype(np.int64)

    # --------------------------------------------------------------------------- being restored

    def state(self) -> State:
        found = {f"found_{name}": getattr(self.found_, name) for name in Found.__slots__}
        learnt = {f"finder_{name}": column for name, column in self.finder.state().items()}
        marks = np.array([self.looks_, self.finds_])
        times = np.array([self.watched_, self.solved_])
        known = {"ids": self.ids_, "unseen": self.unseen_, "marks": marks, "times": times}
        known |= {"usual": self.usual_, "first": self.first_, "news": self.news_}
        overlap = {f"overlap_{name}": column for name, column in self.overlap.state().items()}
        return known | found | learnt | overlap

    def restore(self, state: State) -> None:
        self.ids_ = state["ids"].copy()
        never = np.full(len(self.ids_), NEVER)
        self.usual_ = state.get("usual", np.full(len(self.ids_), np.nan)).copy()
        self.first_, self.news_ = (state.get(name, never).copy() for name in ("first", "news"))
        self.overlap.grow(len(self.ids_))
        if overlap := part_of(state, "overlap_"):
            self.overlap.restore(overlap)
            self.unseen_ = state["unseen"].copy()
        else:
            self.overlap.last_, self.unseen_ = state["last"].copy(), np.zeros(len(self.ids_))
        self.looks_, self.finds_ = state["marks"].tolist()
        self.watched_, self.solved_ = state["times"].astype("M8[us]")
        self.found_ = Found(*(state[f"found_{name}"].copy() for name in Found.__slots__))
        self.finder.restore(part_of(state, "finder_"))


def _spread(number: Ints, values: Floats) -> Floats:
    """The value of each page's source; 0 for pages that are none."""
    return np.append(values, 0.0)[number]


async def admit(loop: Loop, found: Ints, worth: Floats, now: Instant) -> None:
    """Visit pages found just now, as far as they are worth the visit price, in clicks, and the tick
    has visits left; the others wait for a plan."""
    policy, discover = loop.parts.policy, loop.parts.discover
    price = policy.price_ if isinstance(policy, Admits) else 0.0
    if loop.parts.planned:
        await loop.urge(lambda: discover.ask(found, worth, now, price=price))
