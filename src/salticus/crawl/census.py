"""All pages of a live store as columns in memory, kept in step with the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from salticus.config import Rule
from salticus.crawl.scout import Scout
from salticus.predict.base import Predictor
from salticus.predict.followed import Followed
from salticus.predict.modelled_demand import CountedDemand, ModelledDemand
from salticus.signals.demand import UNSAID, Demand
from salticus.store.base import PageTable, Store
from salticus.store.nouns import DROPPED
from salticus.types import KINDS, Outcomes, Pages, Status, Tick
from salticus.types.arrays import DAY, Bools, Codes, Floats, Ints, Times, instant
from salticus.types.state import places

_DAY = timedelta(days=1)
_LONGEST = 30  # days that such a page rests at most
_IDLE = (Status.GONE, Status.SOFT_404, Status.DISALLOWED, Status.UNSAFE)
_SOURCE = KINDS.index("source")
_ANSWERED = (Status.OK, Status.NOT_MODIFIED)


class Census:
    """The columns of all pages: read once, then only what was added or edited.

    Hosts are numbered in the order in which they are met. A page without a maximum interval of
    its own gets that of its rule, and without one `max_interval` (days). Pages that rest, and those
    that a rule pauses, are left out, for as long as they do.
    """

    def __init__(
        self,
        store: Store,
        *,
        max_interval: float = np.inf,
        rules: Sequence[Rule] = (),
        scout: Scout | None = None,
    ) -> None:
        self.store = store
        self.max_interval = max_interval
        self.numbered = tuple(rules)
        self.demand = Demand()
        self.clicks: ModelledDemand | None = None
        self.impressions: ModelledDemand | None = None
        self.followed: Followed | None = None
        self.scout = scout or Scout(store)
        self.hosts: list[str] = []
        self._number: dict[str, int] = {}
        self._host: Ints = np.empty(0, dtype=np.int64)
        self._rule: Ints = np.empty(0, dtype=np.int64)
        self._table: PageTable | None = None

    def forked(self) -> Census:
        """The same columns, to look ahead with: what visits change is a copy."""
        other = copy(self)
        if self._table is not None:
            other._table = replace(
                self._table,
                last_visit=self._table.last_visit.copy(),
                last_answer=self._table.last_answer.copy(),
                idle=self._table.idle.copy(),
            )
        return other

    async def costs(self, ids: Ints) -> Floats:
        """What a visit to each page costs by now; 1 for those not known."""
        await self.refresh()
        if self._table is None:
            return np.ones(len(ids))
        rows, known = places(self._table.ids, ids)
        cost = np.ones(len(ids))
        cost[known] = self._table.cost[rows[known]]
        return cost

    async def refresh(self) -> None:
        """Take up what was added or edited since the last time."""
        after = -1 if self._table is None else self._table.revision
        edited = await self.store.table(after)
        if self._table is None or len(edited.ids):
            rule = await self._found_rules(edited.ids)
            taken = await asyncio.to_thread(self._taken, edited, rule)
            self._table, self._host, self._rule = taken
        await self.scout.refresh()

    def has_source(self, pages: Ints) -> bool:
        """Whether any of these pages is a source."""
        if self._table is None:
            return False
        rows, known = places(self._table.ids, pages)
        return bool((self._table.kind[rows[known]] == _SOURCE).any())

    async def heed(self) -> None:
        """Take up what readers did since the last time, and which new pages still stand."""
        if self._table is not None:
            await self.scout.stand(self._table.ids[np.isnat(self._table.last_visit)])
        while len(counted := await self.store.counts(self.demand.mark_)):
            for part in (self.followed, self.clicks, self.impressions):
                if part is not None:
                    await asyncio.to_thread(part.count, counted)
            await asyncio.to_thread(self.demand.learn, counted)
            if self._table is not None:
                self.scout.heed(counted, self._table.ids, self._table.last_answer)

    def serve(self, followed: Followed | None, *demand: ModelledDemand | None) -> None:
        """Let these be told what is counted, and models of clicks and impressions speak."""
        self.followed, (self.clicks, self.impressions) = followed, demand

    def foretell(self, now: datetime) -> None:
        """Let models say how often pages will be clicked and shown."""
        if self._table is None:
            return
        table, pages = self._table, self._table.kind != _SOURCE
        some = slice(None) if pages.all() else np.flatnonzero(pages)  # no copy of all of them
        columns = table.ids[some], table.added[some], table.demand[some]
        for which, served in enumerate((self.clicks, self.impressions)):
            if served is not None:
                served.meet(columns[0], now, partial(self._counted, columns, now, which))

    def _counted(
        self, columns: tuple[Ints, Times, Floats], now: datetime, which: int
    ) -> CountedDemand:
        """What counts say of pages at a time: clicks (0) or impressions (1) a day."""
        rates = self.demand.rates(*columns, instant(now))[which]
        known = np.rint(self.demand.counted(columns[0], instant(now))[which]).astype(np.int64)
        return CountedDemand(rates, known)

    def clicks_told(self, page: int, now: datetime) -> tuple[float, tuple[float, float] | None]:
        """Clicks a day of a page by counts; and what a model says, with its weight, if one does."""
        table = self._table
        assert table is not None
        row = int(np.searchsorted(table.ids, page))
        counts, known = self._counted((table.ids, table.added, table.demand), now, 0)
        by_hand = table.demand[row] != UNSAID
        if self.clicks is None or by_hand:
            return float(counts[row]), None
        return float(counts[row]), self.clicks.parts(page, int(known[row]))

    def _taken(self, edited: PageTable, rule: Ints) -> tuple[PageTable, Ints, Ints]:
        """The table with these pages in place of what was known of them, their hosts and rules."""
        old = edited.ids[:0] if self._table is None else self._table.ids
        table = edited if self._table is None else _merge(self._table, edited)
        rules = np.broadcast_to(np.int64(-1), len(table.ids))  # no memory where there are none
        if self.numbered:
            rules = _placed(table.ids, (old, self._rule), (edited.ids, rule))
        return table, self._numbers(table.host), rules

    def pages(self, tick: Tick, capacity: Callable[[str], float]) -> Pages:
        """The columns, with what each host can take in `tick`."""
        pages, up = self._columns(tick, capacity), self.up(tick)
        return self._wanted(pages if up.all() else pages.take(up))

    def everyone(self, tick: Tick, capacity: Callable[[str], float]) -> Pages:
        """The columns of all pages, also of those that rest."""
        return self._wanted(self._columns(tick, capacity))

    def copies(
        self, ids: Ints, predictor: Predictor, at: datetime, answered: Times | None = None
    ) -> Pages:
        """These pages, which must be there, with curves as the predictor draws them at a time.
        Whoever has just read when they were `answered` last knows it better."""
        pages = self._columns(Tick(0, at, at), lambda _: 0.0)
        pages = pages.take(pages.rows(ids))
        if answered is not None:
            pages = replace(pages, last_answer=answered)
        return replace(pages, survival=predictor.survival(pages, at))

    def up(self, tick: Tick) -> Bools:
        """Which pages may be visited in a tick as far as they do not rest."""
        if self._table is None:
            raise RuntimeError("refresh the census first")
        rests = self._table.rests | self._said("pause", self._rule, False)
        kept = np.where(self._table.kind == _SOURCE, DROPPED - 1, DROPPED)  # no source is dropped
        idle = np.minimum(self._table.idle, kept)
        return np.asarray(~rests & awake(idle, self._table.last_visit, tick))

    def _wanted(self, pages: Pages) -> Pages:
        """The pages with what readers want of them by now, and their rules think of it."""
        now = instant(pages.tick.start)
        demand, impressions = self._rates(pages)
        pages = replace(pages, demand=demand, impressions=impressions)
        source = pages.kind == _SOURCE
        if source.any():
            others = demand[~source]
            usual = float(others.mean()) if len(others) else 1.0
            self.scout.meet(pages.ids[source], pages.host[source], usual)
        if (prospects := self.scout.prospects(pages)) is not None:
            demand = self.scout.fading(pages, self.demand.counted(pages.ids, now)[0])
            demand = np.where(source, 0.0, demand)  # people read what a source shows
        if self.numbered:
            demand = demand * self._said("importance", pages.rule, 1.0)
        return replace(pages, demand=demand, prospects=prospects)

    def _rates(self, pages: Pages) -> tuple[Floats, Floats]:
        """Clicks and impressions a day, by counts and models; what was given by hand stays."""
        now, given = instant(pages.tick.start), pages.demand
        clicks, shown = self.demand.rates(pages.ids, pages.added, given, now)
        if self.clicks is None or self.impressions is None:
            return clicks, shown
        known = np.rint(self.demand.counted(pages.ids, now)).astype(np.int64)
        told = self.clicks.rates(pages.ids, CountedDemand(clicks, known[0]))
        shown = self.impressions.rates(pages.ids, CountedDemand(shown, known[1]))
        return np.where(given == UNSAID, told, clicks), shown

    def _columns(self, tick: Tick, capacity: Callable[[str], float]) -> Pages:
        if self._table is None:
            raise RuntimeError("refresh the census first")
        table = self._table
        rule = self._rule if self.numbered else np.broadcast_to(-1, len(table.ids))
        own = np.isfinite(table.max_interval)
        longest = self._said("max_interval", rule, self.max_interval)
        return Pages(
            tick=tick,
            ids=table.ids,
            host=self._host,
            kind=table.kind,
            rule=rule,
            merchant=self._host,
            category=table.kind,  # articles do not change as their sources do
            added=table.added,
            last_visit=table.last_visit,
            last_answer=table.last_answer,
            demand=table.demand,
            impressions=np.broadcast_to(0.0, len(table.ids)),
            cost=table.cost,
            max_interval=np.where(own, table.max_interval, longest) if own.any() else longest,
            interval=self._said("interval", rule, np.nan),
            min_interval=self._said("min_interval", rule, 0.0),
            open=self._open(rule, tick),
            found=table.found,
            capacity=np.array([capacity(name) for name in self.hosts], dtype=np.float64),
        )

    def learn(self, outcomes: Outcomes) -> None:
        if self._table is None:
            return
        made = outcomes.take(outcomes.made)
        rows, known = places(self._table.ids, made.page)
        rows, made = rows[known], made.take(known)
        answered = made.answered
        self._table.last_visit[rows] = made.at
        self._table.last_answer[rows[answered]] = made.at[answered]
        self._table.idle[rows] = _idle(self._table.idle[rows], made.status)

    async def rules(self, ids: Ints) -> Ints:
        """The rule of each page, by its place in the settings; -1 = none. The store is asked only
        for pages that were added since the last refresh."""
        known = np.empty(0, dtype=np.int64) if self._table is None else self._table.ids
        rows, met = places(known, ids)
        rule = np.full(len(ids), -1, dtype=np.int64)
        rule[met] = self._rule[rows[met]]
        rule[~met] = await self._found_rules(ids[~met])
        return rule

    async def _found_rules(self, ids: Ints) -> Ints:
        if not self.numbered or not len(ids):
            return np.full(len(ids), -1, dtype=np.int64)
        return await self.store.fitting(ids, self.numbered)

    def _said(self, name: str, rule: Ints, otherwise: float) -> NDArray[Any]:
        """What each page's rule says under a name, spans in days; `otherwise` without a word."""
        said = [getattr(each, name) for each in self.numbered]
        return _by_number(
            [s / _DAY if isinstance(s, timedelta) else s for s in said], rule, otherwise
        )

    def _open(self, rule: Ints, tick: Tick) -> Bools:
        """Which pages may be visited at any moment of the tick.

        A page is not visited in a tick that begins before its hours do or ends after them: so it
        need not be known when in the tick its turn comes.
        """
        hours = [r.hours is None or r.hours.spans(tick.start, tick.end) for r in self.numbered]
        return _by_number(hours, rule, True)

    def _numbers(self, names: list[str]) -> Ints:
        for name in names:
            if name not in self._number:
                self._number[name] = len(self.hosts)
                self.hosts.append(name)
        return np.fromiter((self._number[name] for name in names), np.int64, len(names))


def awake(idle: Ints, last_visit: Times, tick: Tick) -> Bools:
    """Which pages may be visited in a tick, judged by how often there was nothing to come back for.

    The first time may be a mishap. After the second a page rests for a day, then for two, four, up
    to thirty; after the ninth it is dropped.

    >>> from salticus.testing import a_tick
    >>> now = np.repeat(instant(a_tick().start), 3)
    >>> awake(np.array([0, 1, 2]), now, a_tick()).tolist()
    [True, True, False]
    """
    if not idle.any():
        return np.ones(len(idle), dtype=np.bool_)
    days = np.minimum(2.0 ** np.clip(idle - 2, 0, 10), _LONGEST) * (idle > 1)
    until = last_visit + (days * DAY.astype(np.int64)).astype("m8[us]")
    return np.asarray((idle < DROPPED) & ~(until >= instant(tick.end)))


def _by_number(values: Sequence[Any], rule: Ints, otherwise: float) -> NDArray[Any]:
    """The value of each page's rule; -1 stands for pages without one.

    >>> _by_number([0.25, None], np.array([0, 1, -1]), np.nan)
    array([0.25,  nan,  nan])
    """
    given = [otherwise if value is None else value for value in values]
    if given.count(otherwise) == len(given):
        return np.broadcast_to(otherwise, len(rule))
    return np.array([*given, otherwise])[rule]


def _idle(before: Ints, status: Codes) -> Ints:
    """Visits in a row with nothing to come back for; a failure of the network says nothing."""
    return np.where(np.isin(status, _ANSWERED), 0, before + np.isin(status, _IDLE))


def _placed(ids: Ints, *parts: tuple[Ints, Ints]) -> Ints:
    """The values of some ids each, in the order of all `ids`; the later part wins."""
    placed = np.full(len(ids), -1, dtype=np.int64)
    for some, values in parts:
        placed[np.searchsorted(ids, some)] = values
    return placed


def _merge(old: PageTable, new: PageTable) -> PageTable:
    """The rows of both, ordered by id; the newer wins."""
    keep = np.flatnonzero(~np.isin(old.ids, new.ids))
    order = np.argsort(np.concatenate([old.ids[keep], new.ids]), kind="stable")
    columns = {}
    for field in fields(PageTable):
        if field.name not in ("host", "revision"):
            both = [getattr(old, field.name)[keep], getattr(new, field.name)]
            columns[field.name] = np.concatenate(both)[order]
    names = [old.host[row] for row in keep] + new.host
    return PageTable(host=[names[row] for row in order], revision=new.revision, **columns)
