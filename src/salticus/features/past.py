"""What is known of pages at a time: one machine, fed by a log or by a crawl as it goes."""

from __future__ import annotations

import numpy as np

from salticus.features import kernels as at
from salticus.features.events import EventKind, Events, runs
from salticus.features.groups import Groups, shelves
from salticus.features.kernels import COUNTED, GROUPED, LAGS, WEEK_H, Tables, advance, in_order
from salticus.features.names import EDGES, all_names
from salticus.features.rows import Cached, Day, day_shifts, feasts, read_rows
from salticus.types import STEP, Floats32, Inputs, Ints, Ints32
from salticus.types.state import State

_BUFFER = ("hour", "page", "kind", "first", "second", "third")
_KEPT = ("own", "held", "ring", "group", "cells", "turn", "facts", "marks")
_ROOM = 1024  # events


class FeatureStream:
    """Learns events and tells the features of pages.

    Laws: however events are cut into chunks and reads lie between them, what is read is the same
    to the last bit; what happens in the hour of a reading or later does not touch it. What is told
    of a page before it is born or after it has gone does not count; being born again revives it.
    `full` tells that all changes are seen in their hour, so that there are no visits.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        edges: tuple[int, ...] = EDGES,
        full: bool,
        demand: bool,
        depth: int = 0,
    ) -> None:
        self.groups = groups
        self.edges = edges
        self.full = full
        self.demand = demand
        self.depth = depth
        self.names = all_names(edges)
        self._tables = _empty(groups, full, depth)
        self._calendar: Day
        self._look_up()

    def learn(self, events: Events) -> None:
        """Take events, in order of time; ValueError for hours that a reading already looked at."""
        if not len(events):
            return
        end = self._tables.marks[len(LAGS)]
        if not in_order(events.hour, events.page, events.kind):
            events = events.ordered()
        if end and _key(events, 0) < _key(self._tables, end - 1):
            events = self._with_waiting(events)
        reached = self._tables.facts[2]
        if events.hour[0] < reached:
            raise ValueError(f"hour {events.hour[0]} is before {reached}, read already")
        self._reserve(len(events))
        end = self._tables.marks[len(LAGS)]
        for name in _BUFFER:
            getattr(self._tables, name)[end : end + len(events)] = getattr(events, name)
        self._tables.marks[len(LAGS)] += len(events)

    def read(self, page: Ints, hour: Ints, into: Floats32 | None = None) -> Inputs:
        """The features of pages in the given hours, ascending, also `into` rows that there are."""
        rows = len(page)
        dense = np.empty((rows, len(self.names)), dtype=np.float32) if into is None else into
        steps = np.empty((rows, self.depth, len(STEP)), dtype=np.float32)
        if rows and (hour[0] < self._tables.facts[2] or (np.diff(hour) < 0).any()):
            raise ValueError("hours must ascend, from the last one that was read")
        for low, high in runs(hour):
            now = int(hour[low])
            advance(self._tables, now)
            self._turn_to(now // 24)
            read_rows(self._tables, self._cached, self._calendar, page[low:high], dense[low:high])
            if self.depth:
                steps[low:high] = self._steps(page[low:high])
        return Inputs(page, hour, dense, steps, self.names)

    @property
    def reached(self) -> int:
        """The hour last read."""
        return int(self._tables.facts[2])

    def regroup(self, groups: Groups) -> None:
        """Go on with these groups: those of the pages that there were, in their order, then more.

        Law: what is read is what it would be, had these groups been known from the first event on.
        Brand, category, zone and country of a page may be others than before; merchant and host
        may not, nor may pages have gone (ValueError).
        """
        empty = _empty(groups, self.full, self.depth)
        self._tables = _regrouped(self._tables, empty, self.groups, groups)
        self.groups = groups
        self._look_up()

    def known(self, page: Ints) -> Ints:
        """How many observations there were of each page by the hour last read: hours watched if
        all is seen, else answers."""
        own = self._tables.own
        if not self.full:
            return np.asarray(own[page, at.VISITS], dtype=np.int64)
        born, gone = own[page][:, [at.BORN_AT, at.GONE_AT]].astype(np.int64).T
        return np.where(born >= 0, np.minimum(gone, self._tables.facts[2]) - born, 0)

    def state(self) -> State:
        self._compact()
        end = self._tables.marks[len(LAGS)]
        kept = {name: getattr(self._tables, name).copy() for name in _KEPT}
        return kept | {name: getattr(self._tables, name)[:end].copy() for name in _BUFFER}

    def restore(self, state: State) -> None:
        """Go on from what another `FeatureStream` of the same groups had learnt."""
        parts = {name: np.array(state[name]) for name in (*_KEPT, *_BUFFER)}
        self._tables = self._tables._replace(**parts)
        self._look_up()

    def _look_up(self) -> None:
        """Begin anew with what is only kept to be quick."""
        group, turn = len(self._tables.group), len(self._tables.turn)
        self._cached = Cached(
            stamp=np.full(group, -1, dtype=np.int64),
            lately=np.empty((group, 4), dtype=np.float32),
            week=np.empty((turn, 2 + len(self.edges)), dtype=np.float32),
            edges=np.array(self.edges, dtype=np.int64),
            walk=np.empty(WEEK_H + 1),
        )
        self._day = -1

    def _steps(self, page: Ints) -> Floats32:
        """The last changes of each page, the latest last; NaN before the first."""
        count = self._tables.own[page, 0].astype(np.int64)[:, None]
        back = np.arange(self.depth)[None, :]
        found = self._tables.ring[page[:, None], (count + back) % self.depth]
        return np.where((back >= self.depth - count)[:, :, None], found, np.float32(np.nan))

    def _turn_to(self, day: int) -> None:
        if day != self._day:
            self._day = day
            asked = np.array([self.demand], dtype=np.int64)
            shift, feast = day_shifts(self.groups.zones, day), feasts(self.groups.countries, day)
            place = np.stack([self.groups.zone, self.groups.country], axis=1).astype(np.int32)
            self._calendar = Day(shift, feast, place, asked)

    # ---------------------------------------------------------------------------- the events kept

    def _with_waiting(self, events: Events) -> Events:
        """These events and those that wait from their first hour on, in order."""
        s, end = self._tables, int(self._tables.marks[len(LAGS)])
        first = np.searchsorted(s.hour[:end], s.hour.dtype.type(events.hour[0]))
        low = max(int(s.marks[0]), int(first))
        cut = {name: getattr(s, name)[low:end].copy() for name in _BUFFER}
        cut |= {name: cut[name].astype(np.int64) for name in ("hour", "page")}
        s.marks[len(LAGS)] = low
        return Events(**cut).join(events).ordered()

    def _reserve(self, more: int) -> None:
        """Room for so many events, if need be by forgetting those that nobody will need."""
        if self._tables.marks[len(LAGS)] + more <= len(self._tables.hour):
            return
        self._compact()
        end = int(self._tables.marks[len(LAGS)])
        size = max(_ROOM, 2 * end, end + more)
        columns = {name: getattr(self._tables, name)[:end] for name in _BUFFER}
        grown = {name: np.pad(column, (0, size - end)) for name, column in columns.items()}
        self._tables = self._tables._replace(**grown)

    def _compact(self) -> None:
        """Forget events that all lags have passed; visits and demand matter for a month only."""
        s, end = self._tables, int(self._tables.marks[len(LAGS)])
        lasting = np.isin(s.kind[:end], (EventKind.BORN, EventKind.CHANGE, EventKind.GONE))
        kept = np.arange(end) >= np.where(lasting, s.marks[COUNTED], s.marks[at.MONTH])
        place = np.concatenate([[0], np.cumsum(kept)])
        cut = {name: getattr(s, name)[:end][kept] for name in _BUFFER}
        self._tables = s._replace(**cut, marks=place[s.marks])


def _key(events: Events | Tables, row: int) -> tuple[int, int, int]:
    return int(events.hour[row]), int(events.page[row]), int(events.kind[row])


def _empty(groups: Groups, full: bool, depth: int) -> Tables:
    n, rows = len(groups), _rows(groups)
    size = int(rows.max(initial=0)) + 1
    weeks = 2 + int(groups.merchant.max(initial=-1))
    own = np.zeros((n, at.OWN_SIZE), dtype=np.int32)
    own[:, [at.BORN_AT, at.ANSWER]] = -1
    own[:, at.GONE_AT] = at.NEVER_H
    held = np.zeros((n, 4))
    held[:, [at.PRICE, at.MOVE, at.STOCK]] = np.nan
    group = np.zeros((size, at.GROUP_SIZE), dtype=np.int64)
    group[:, [at.BATCH, at.LATEST]] = -1
    hours, numbers = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
    return Tables(
        hour=hours,
        page=hours,
        kind=np.empty(0, dtype=np.int8),
        first=numbers,
        second=numbers,
        third=numbers,
        marks=np.zeros(len(LAGS) + 1, dtype=np.int64),
        rows=rows,
        own=own,
        held=held,
        ring=np.full((n, depth, len(STEP)), np.nan, dtype=np.float32),
        group=group,
        cells=np.zeros((weeks, 2, WEEK_H), dtype=np.int32),
        turn=np.zeros((weeks, 3), dtype=np.int64),
        facts=np.array([full, 0, 0], dtype=np.int64),
    )


def _regrouped(old: Tables, new: Tables, before: Groups, after: Groups) -> Tables:
    """What was counted by `before` as it would have been counted by `after`.

    `new` are empty tables of `after`, which has the pages of `before` and then more. Merchants and
    hosts have weeks and batches, which cannot be taken apart again, so that a page stays with its
    own, and these keep their numbers; of brands, categories and shelves all is a sum over pages.
    ValueError if a page moves to another merchant or host, or one has gone.
    """
    n = len(before)
    for name in ("merchant", "host"):
        if (getattr(before, name) != getattr(after, name)[:n]).any():
            raise ValueError(f"a page cannot move to another {name}")
    if (old.own[:, at.GONE_AT] != at.NEVER_H).any():
        raise ValueError("a page that has gone cannot be counted anew")
    kept = {name: getattr(old, name) for name in (*_BUFFER, "marks", "facts")}
    tables = new._replace(**kept)
    for name in ("own", "held", "ring", "cells", "turn"):
        column = getattr(old, name)
        getattr(tables, name)[: len(column)] = column
    merchants, hosts = (int(codes.max(initial=-1)) + 1 for codes in (before.merchant, before.host))
    first = 2 + int(after.merchant.max(initial=-1))  # row of the first host
    tables.group[: 1 + merchants] = old.group[: 1 + merchants]
    tables.group[first : first + hosts] = old.group[1 + merchants : 1 + merchants + hosts]
    for family in (at.BRAND, at.SHELF, at.CATEGORY):
        _recount(tables, family)
    return tables


def _recount(s: Tables, family: int) -> None:
    """Count a family of groups from the counters of its pages."""
    row, born = s.rows[:, family], s.own[:, at.BORN_AT]
    in_one = (row >= 0) & (born >= 0)
    for lag in range(COUNTED):
        if GROUPED[lag]:
            there = in_one & (born < s.facts[2] - LAGS[lag])
            _add(s, 3 * lag, row[in_one], s.own[in_one, at.CHANGES + lag])
            _add(s, 3 * lag + 1, row[there], np.ones(np.count_nonzero(there), dtype=np.int32))
            _add(s, 3 * lag + 2, row[there], born[there])
    if family == at.CATEGORY:
        _add(s, at.LAST_SUM, row[in_one], s.own[in_one, at.SINCE])


def _add(s: Tables, column: int, row: Ints32, many: Ints32) -> None:
    """Sums of whole numbers far below 2⁵³, so that floats hold them exactly."""
    sums = np.bincount(row, weights=many, minlength=len(s.group))
    s.group[:, column] += sums.astype(np.int64)


def _rows(groups: Groups) -> Ints32:
    """The row of each page's group of every family: all, merchants, hosts, … one after another."""
    families = (groups.merchant, groups.host, groups.brand, shelves(groups), groups.category)
    rows = np.zeros((len(groups), at.FAMILIES), dtype=np.int32)
    after = 1
    for k, codes in enumerate(families, start=1):
        rows[:, k] = np.where(codes >= 0, codes + after, -1)
        after += int(codes.max(initial=-1)) + 1
    return rows
