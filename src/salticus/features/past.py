"""What is known of pages at a time: one machine, fed by a log or by a crawl as it goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from salticus.features import kernels as at
from salticus.features.events import EventKind, Events, in_order, runs
from salticus.features.groups import Groups, shelves
from salticus.features.kernels import (
    COUNTED,
    GROUPED,
    LAGS,
    WEEK_H,
    Tables,
    advance,
)
from salticus.features.names import EDGES, all_names
from salticus.features.packed import PackedEvents, nothing_packed, roomy, trimmed
from salticus.features.rows import Cached, Day, day_shifts, feasts, read_rows
from salticus.types import STEP, Floats32, Inputs, Ints, Ints32
from salticus.types.state import State

_BUFFER = ("hour", "page", "kind", "first", "second", "third")
_KEPT = ("own", "wanted", "held", "ring", "group", "cells", "turn", "facts")
_PACKED = {"lives": COUNTED, "visits": at.MONTH, "demand": at.MONTH}  # and their last lag
_OF_PAGES = ("own", "wanted", "held", "ring")
_EMPTY = np.empty(0, dtype=np.int32)
_STRANGER = np.zeros(at.OWN_SIZE, dtype=np.int32)
_STRANGER[[at.BORN_AT, at.ANSWER]], _STRANGER[at.GONE_AT] = -1, at.NEVER_H
_UNPRICED = np.array([np.nan, 0.0, np.nan, np.nan])
_ROOM = 1024  # events


class FeatureStream:
    """Learns events and tells the features of pages.

    Laws: however events are cut into chunks and reads lie between them, what is read is the same
    to the last bit; what happens in the hour of a reading or later does not touch it. What is told
    of a page before it is born or after it has gone does not count; being born again revives it.
    `full` tells that all changes are seen in their hour, so that there are no visits; without
    `demand`, clicks and impressions are not looked at.

    Cost: some 165 bytes a page (50 more with demand), and about 3 bytes for each answer of the last
    month, each change of the last eight weeks, and each count of demand of the last month.
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
        self.edges = edges
        self.full = full
        self.demand = demand
        self.depth = depth
        self.names = all_names(edges)
        self._tables = _empty(groups, full, demand, depth)
        self._calendar: Day
        self._settle(groups)

    def __len__(self) -> int:
        return len(self._place)

    def learn(self, events: Events) -> None:
        """Take events, in order of time; ValueError for hours that a reading already looked at."""
        if not self.demand and (told := events.kind == EventKind.DEMAND).any():
            events = events.take(~told)
        if not len(events):
            return
        if not in_order(events.hour, events.page, events.kind):
            events = events.ordered()
        start, end = self._tables.waiting.tolist()
        if end > start and _key(events, 0) < _key(self._tables, end - 1):
            events = self._with_waiting(events)
        reached = self._tables.facts[2]
        if events.hour[0] < reached:
            raise ValueError(f"hour {events.hour[0]} is before {reached}, read already")
        self._reserve(len(events))
        end = self._tables.waiting[1]
        for name in _BUFFER:
            getattr(self._tables, name)[end : end + len(events)] = getattr(events, name)
        self._tables.waiting[1] += len(events)

    def read(self, page: Ints, hour: Ints, into: Floats32 | None = None) -> Inputs:
        """The features of pages in the given hours, ascending, also `into` rows that there are."""
        rows = len(page)
        dense = np.empty((rows, len(self.names)), dtype=np.float32) if into is None else into
        steps = np.empty((rows, self.depth, len(STEP)), dtype=np.float32)
        if rows and (hour[0] < self._tables.facts[2] or (np.diff(hour) < 0).any()):
            raise ValueError("hours must ascend, from the last one that was read")
        for low, high in runs(hour):
            now = int(hour[low])
            self._advance(now)
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
        self._tables = _regrouped(self._tables, groups, self.demand)
        self._settle(groups)

    def with_demand(self) -> None:
        """Clicks are counted from now on, so that features of them are known."""
        self.demand, self._day = True, -1
        nothing = np.zeros((len(self), at.WANTED_SIZE), dtype=np.int32)
        self._tables = self._tables._replace(wanted=nothing)

    def known(self, page: Ints) -> Ints:
        """How many observations there were of each page by the hour last read: hours watched if
        all is seen, else answers."""
        own = self._tables.own
        if not self.full:
            return np.asarray(own[page, at.VISITS], dtype=np.int64)
        born, gone = own[page][:, [at.BORN_AT, at.GONE_AT]].astype(np.int64).T
        return np.where(born >= 0, np.minimum(gone, self._tables.facts[2]) - born, 0)

    def state(self) -> State:
        """What was learnt, not copied: it moves on with what is learnt later."""
        start, end = self._tables.waiting.tolist()
        kept = {name: getattr(self._tables, name) for name in _KEPT}
        kept |= {name: getattr(self._tables, name)[start:end] for name in _BUFFER}
        for log, passed in _PACKED.items():
            part = trimmed(getattr(self._tables, log), passed)
            kept |= {f"{log}_{name}": column for name, column in part._asdict().items()}
        return kept

    def restore(self, state: State) -> None:
        """Go on from what another `FeatureStream` of the same groups had learnt."""
        parts: dict[str, Any] = {name: np.array(state[name]) for name in (*_KEPT, *_BUFFER)}
        for log in _PACKED:
            columns = (np.array(state[f"{log}_{name}"]) for name in PackedEvents._fields)
            parts[log] = PackedEvents(*columns)
        waiting = np.array([0, len(parts["hour"])])
        self._tables = self._tables._replace(**parts, waiting=waiting)
        self._look_up()

    def _settle(self, groups: Groups) -> None:
        """Know where pages are, and begin anew with what is only kept to be quick."""
        self._place = np.stack([groups.zone, groups.country], axis=1).astype(np.int16)
        self._zones, self._countries = groups.zones, groups.countries
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
            shift, feast = day_shifts(self._zones, day), feasts(self._countries, day)
            self._calendar = Day(shift, feast, self._place, asked)

    # ---------------------------------------------------------------------------- the events kept

    def _advance(self, now: int) -> None:
        """Let the counters know what came before an hour; once counted, events are packed."""
        s = self._tables
        start, end = s.waiting.tolist()
        due = int(np.searchsorted(s.hour[start:end], s.hour.dtype.type(now)))
        if due:
            hours = int(s.hour[start + due - 1] - s.hour[start]) + 1
            room = due, min(due, hours)
            logs: Any = {
                log: roomy(getattr(s, log), passed, room) for log, passed in _PACKED.items()
            }
            self._tables = s._replace(**logs)
        advance(self._tables, now)

    def _with_waiting(self, events: Events) -> Events:
        """These events and those that wait from their first hour on, in order."""
        s = self._tables
        start, end = s.waiting.tolist()
        low = start + np.searchsorted(s.hour[start:end], s.hour.dtype.type(events.hour[0]))
        cut = {name: getattr(s, name)[low:end].copy() for name in _BUFFER}
        cut |= {name: cut[name].astype(np.int64) for name in ("hour", "page")}
        s.waiting[1] = low
        return Events(**cut).join(events).ordered()

    def _reserve(self, more: int) -> None:
        """Room for so many events behind those that wait, in place of those that are counted."""
        s = self._tables
        start, end = s.waiting.tolist()
        if end + more <= len(s.hour):
            return
        size = max(_ROOM, end - start + more)
        columns = {name: getattr(s, name)[start:end] for name in _BUFFER}
        grown: Any = {
            name: np.pad(column, (0, size - len(column))) for name, column in columns.items()
        }
        self._tables = s._replace(**grown, waiting=np.array([0, end - start]))


def _key(events: Events | Tables, row: int) -> tuple[int, int, int]:
    return int(events.hour[row]), int(events.page[row]), int(events.kind[row])


def _empty(groups: Groups, full: bool, demand: bool, depth: int) -> Tables:
    """Tables that know nothing yet."""
    n, rows, numbers = len(groups), _rows(groups), np.empty(0, dtype=np.float32)
    return Tables(
        hour=_EMPTY,
        page=_EMPTY,
        kind=np.empty(0, dtype=np.int8),
        first=numbers,
        second=numbers,
        third=numbers,
        waiting=np.zeros(2, dtype=np.int64),
        lives=nothing_packed(len(LAGS)),
        visits=nothing_packed(len(LAGS)),
        demand=nothing_packed(len(LAGS)),
        rows=rows,
        own=np.tile(_STRANGER, (n, 1)),
        wanted=np.zeros((n if demand else 0, at.WANTED_SIZE), dtype=np.int32),
        held=np.tile(_UNPRICED, (n, 1)),
        ring=np.full((n, depth, len(STEP)), np.nan, dtype=np.float32),
        facts=np.array([full, 0, 0], dtype=np.int64),
        **_empty_groups(rows),
    )


def _empty_groups(rows: Ints32) -> dict[str, Any]:
    weeks = 1 + int(rows[:, at.MERCHANT].max(initial=0))
    group = np.zeros((int(rows.max(initial=0)) + 1, at.GROUP_SIZE), dtype=np.int64)
    group[:, [at.BATCH, at.LATEST]] = -1
    cells = np.zeros((weeks, 2, WEEK_H), dtype=np.int32)
    return {"group": group, "cells": cells, "turn": np.zeros((weeks, 3), dtype=np.int64)}


def _regrouped(old: Tables, groups: Groups, demand: bool) -> Tables:
    """What was counted as it would have been counted by these groups, of the same pages and more.

    Merchants and hosts have weeks and batches, which cannot be taken apart again, so that a page
    stays with its own, and these keep their numbers; of brands, categories and shelves all is a sum
    over pages. ValueError if a page moves to another merchant or host, or one has gone.
    """
    rows = _rows(groups)
    before, after = _starts(old.rows), _starts(rows)
    for name, family in (("merchant", at.MERCHANT), ("host", at.HOST)):
        one, other = old.rows[:, family], rows[: len(old.rows), family]
        if (np.where(one >= 0, one + after[family] - before[family], one) != other).any():
            raise ValueError(f"a page cannot move to another {name}")
    if (old.own[:, at.GONE_AT] != at.NEVER_H).any():
        raise ValueError("a page that has gone cannot be counted anew")
    tables = old._replace(rows=rows, **_empty_groups(rows))
    if more := len(rows) - len(old.rows):
        new = _empty(groups.take(np.arange(more)), False, demand, old.ring.shape[1])
        longer: Any = {n: np.append(getattr(old, n), getattr(new, n), axis=0) for n in _OF_PAGES}
        tables = tables._replace(**longer)
    for name in ("cells", "turn"):
        getattr(tables, name)[: len(getattr(old, name))] = getattr(old, name)
    for family in (at.ALL, at.MERCHANT, at.HOST):
        theirs = old.group[before[family] : before[family + 1]]
        tables.group[after[family] : after[family] + len(theirs)] = theirs
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


def _starts(rows: Ints32) -> list[int]:
    """The first rows of the groups of all, of merchants, of hosts, and of what comes after."""
    starts = [0, 1]
    for family in (at.MERCHANT, at.HOST):
        starts.append(max(starts[-1], 1 + int(rows[:, family].max(initial=-1))))
    return starts
