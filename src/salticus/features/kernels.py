"""How events enter the counters of pages and groups: once at every lag, hour after hour.

Every counter is an integer. A count over a window is the counter at lag 0 less the one at the lag
of the window, and so exact however the events came in. What has been counted at lag 0 is packed
until all lags have passed it: of a visit a month later no more is needed than its page and minutes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from salticus.features.names import SEASON
from salticus.features.packed import Octets, PackedEvents
from salticus.types import Codes, Floats, Floats32, Ints, Ints32
from salticus.types.compiled import compiled

LAGS = (0, 6, 24, 168, 336, 720, SEASON)  # hours
GROUPED = (True, False, True, True, False, True, False)  # at which of them groups are counted
COUNTED = len(LAGS) - 1  # lags with counters; at the last one the week alone is kept
MONTH = 5  # the place of 720 h
WEEK_H = 168
MONDAY = 72  # hours from a Monday's midnight to the start of 1970
NEVER_H = np.iinfo(np.int32).max
VOID = 9  # the kind of an event that does not count

# columns of `Tables.own`, int32
CHANGES = 0  # one for each lag
VISITS, COMPARED, MINUTES = 6, 8, 10  # at lag 0 and at a month
BORN_AT, GONE_AT, SINCE, GAP, ANSWER, PRICES = 12, 13, 14, 15, 16, 17
SNAP = 18  # answers and finds of all, of the merchant and of the host at the page's last answer
OWN_SIZE = 24

# columns of `Tables.wanted`, int32, one for each lag
CLICKS, SHOWN = 0, COUNTED
WANTED_SIZE = 2 * COUNTED

# columns of `Tables.held`
PRICE, PRICE_SUM, MOVE, STOCK = 0, 1, 2, 3

# columns of `Tables.group`, int64: for each lag changes, pages there, sum of their hours of birth
LAST_SUM, ANSWERS, BATCH, LATEST, LATEST_COUNT = 18, 19, 20, 21, 22
GROUP_SIZE = 24

# columns of `Tables.rows`: the group of each page in every family; the first two have a week
ALL, MERCHANT, HOST, BRAND, SHELF, CATEGORY = range(6)
FAMILIES = 6

_BORN, _CHANGE, _VISIT, _GONE, _DEMAND = range(5)  # as in events.Kind


class Tables(NamedTuple):
    """All that is kept: events in order that are still to be counted, the others packed, and the
    counters."""

    hour: Ints32
    page: Ints32
    kind: Codes
    first: Floats32
    second: Floats32
    third: Floats32
    waiting: Ints  # the first event that waits, and the number of events
    lives: PackedEvents  # births, changes and ends
    visits: PackedEvents
    demand: PackedEvents
    rows: Ints32
    own: Ints32
    wanted: Ints32  # without rows until demand is told
    held: Floats
    ring: Floats32
    group: Ints
    cells: Ints32  # groups with a week × (changes, page-hours) × hours of the week, of the season
    turn: Ints  # the hours up to which page-hours were added and taken, pages at the season's start
    facts: Ints  # full, whether impressions were ever told, and the hour reached


@compiled
def advance(s: Tables, now: int) -> None:
    """Let the counters of each lag know all events of hours before `now` less the lag."""
    s.facts[2] = now
    _advance_live(s, now)
    for lag in range(1, len(LAGS)):
        _late_lives(s, now - LAGS[lag], lag)
        if lag < COUNTED:
            _late_numbers(s.demand, s.wanted, now - LAGS[lag], lag, True)
    _late_numbers(s.visits, s.own, now - LAGS[MONTH], MONTH, False)
    _roll_all(s, 0, now)
    _roll_all(s, 1, now - SEASON)


# numba counts references to each array of a tuple whenever it is taken out, which costs more than
# the work on an event: so loops take the arrays out once, and what they call gets arrays.


@compiled
def _advance_live(s: Tables, now: int) -> None:
    """Events become known, hour by hour; the hour as a whole is judged once it is complete."""
    at, page, kind, own = s.hour, s.page, s.kind, s.own
    first, second, rows, group = s.first, s.second, s.rows, s.group
    i, n = s.waiting
    while i < n and at[i] < now:
        start, hour = i, at[i]
        while i < n and at[i] == hour:
            p = page[i]
            there = own[p, BORN_AT] >= 0 and own[p, GONE_AT] == NEVER_H
            if there == (kind[i] == _BORN):
                kind[i] = VOID  # told of a page that is not there, or born twice
            elif kind[i] == _VISIT:
                own[p, ANSWER] = hour
                _count_answer(rows, group, p)
                _tally_visit(own, p, _known(np.rint(60.0 * first[i])), 0)
                _note_price(own, s.held, (p, True), second[i], s.third[i])
            elif kind[i] == _DEMAND:
                s.facts[1] |= not np.isnan(second[i])
                _tally_demand(s.wanted, p, np.int32(first[i]), _known(second[i]), 0)
            else:
                _live(s, i)
            i += 1
        for k in range(start, i):
            if kind[k] == _VISIT:
                _take_snapshot(own, rows, group, page[k])
            elif kind[k] == _CHANGE:
                _judge_batch(rows, group, page[k])
        told = (page[start:i], kind[start:i], first[start:i], second[start:i])
        _pack(s.lives, told, hour, _CHANGE)
        _pack(s.visits, told, hour, _VISIT)
        _pack(s.demand, told, hour, _DEMAND)
    s.waiting[0] = i


@compiled
def _late_lives(s: Tables, end: int, lag: int) -> None:
    """Count at a lag the births, changes and ends of hours before `end`."""
    hours, ends, data, marks = s.lives.hour, s.lives.end, s.lives.data, s.lives.marks
    own, rows, group = s.own, s.rows, s.group
    while marks[lag] < marks[len(LAGS)] and hours[marks[lag]] < end:
        block, page = marks[lag], np.uint64(0)
        at, stop = ends[block - 1] if block else 0, ends[block]
        while at < stop:
            step, at = _unpacked(data, at)
            kind, at = _unpacked(data, at)
            page += step
            event: Any = (np.int64(page), np.int64(hours[block]), np.int64(kind))
            if lag == COUNTED:
                _tally_weeks(rows, group, s.cells, s.turn, (event, 1))
            else:
                _tally(own, rows, group, event, lag)
        marks[lag] += 1


@compiled
def _late_numbers(log: PackedEvents, own: Ints32, end: int, lag: int, demand: bool) -> None:
    """Count at a lag the demand, or else the visits, of hours before `end`."""
    hours, ends, data, marks = log.hour, log.end, log.data, log.marks
    while marks[lag] < marks[len(LAGS)] and hours[marks[lag]] < end:
        block, page = marks[lag], np.uint64(0)
        at, stop = ends[block - 1] if block else 0, ends[block]
        while at < stop:
            step, at = _unpacked(data, at)
            number, at = _unpacked(data, at)
            page += step
            if demand:
                shown, at = _unpacked(data, at)
                _tally_demand(own, np.int64(page), np.int64(number), np.int64(shown), lag)
            else:
                _tally_visit(own, np.int64(page), np.int64(number), 1)
        marks[lag] += 1


@compiled
def _pack(log: PackedEvents, told: Any, hour: int, which: int) -> None:
    """Add the events of an hour that belong to this log: of births, changes and ends (`which` is
    `_CHANGE`) the kind, of visits the minutes, of demand clicks and impressions."""
    page, kind, first, second = told
    data, marks = log.data, log.marks
    block, last = marks[len(LAGS)], 0
    begin = at = log.end[block - 1] if block else 0
    for i in range(len(page)):
        life = kind[i] == _BORN or kind[i] == _CHANGE or kind[i] == _GONE
        if not (life if which == _CHANGE else kind[i] == which):
            continue
        at = _packed(data, at, page[i] - last)
        last = page[i]
        if which == _CHANGE:
            at = _packed(data, at, kind[i])
        elif which == _VISIT:
            at = _packed(data, at, _known(np.rint(60.0 * first[i])))
        else:
            at = _packed(data, at, np.int64(np.int32(first[i])))
            at = _packed(data, at, _known(second[i]))
    if at > begin:
        log.hour[block], log.end[block] = hour, at
        marks[len(LAGS)] += 1


@compiled
def _packed(data: Octets, at: int, number: Any) -> int:
    """Write a number; where the next one goes. Negative ones take ten bytes."""
    rest = np.uint64(number)
    while rest >= np.uint64(128):
        data[at] = np.uint8(rest & np.uint64(127)) | np.uint8(128)
        rest >>= np.uint64(7)
        at += 1
    data[at] = np.uint8(rest)
    return at + 1


@compiled
def _unpacked(data: Octets, at: int) -> tuple[np.uint64, int]:
    """Read a number, and where the next one is."""
    number, shift = np.uint64(0), np.uint64(0)
    while data[at] >= 128:
        number |= np.uint64(data[at] & np.uint8(127)) << shift
        shift += np.uint64(7)
        at += 1
    return number | (np.uint64(data[at]) << shift), at + 1


@compiled
def _known(number: float) -> Any:
    """One more than a number that is known; 0 = it is not."""
    return np.int64(0) if np.isnan(number) else np.int64(np.int32(number)) + 1


@compiled
def _live(s: Tables, i: int) -> None:
    """A birth, a change or an end becomes known."""
    page, hour, kind, own = s.page[i], s.hour[i], s.kind[i], s.own
    if kind == _CHANGE:
        _note_change(s, page, hour, s.second[i])
    elif kind == _GONE:
        own[page, GONE_AT] = hour
        _add_last(s.rows, s.group, page, -own[page, SINCE])
    else:
        if own[page, BORN_AT] < 0:
            own[page, BORN_AT] = hour
            own[page, SINCE] = hour
        own[page, GONE_AT] = NEVER_H
        _add_last(s.rows, s.group, page, own[page, SINCE])
    if kind != _GONE:
        _note_price(own, s.held, (page, False), s.first[i], s.third[i])
    _tally_weeks(s.rows, s.group, s.cells, s.turn, ((page, hour, kind), 0))
    _tally(own, s.rows, s.group, (page, hour, kind), 0)


@compiled
def _note_change(s: Tables, page: int, hour: int, move: float) -> None:
    own, ring, rows, group = s.own, s.ring, s.rows, s.group
    gap, count, depth = hour - own[page, SINCE], own[page, CHANGES], ring.shape[1]
    if depth:
        answer = own[page, ANSWER]
        span = float(hour - answer) if answer >= 0 else np.nan
        ring[page, count % depth, 0] = np.log1p(float(gap))
        ring[page, count % depth, 1] = 0.0 if s.facts[0] else np.log1p(span)
        ring[page, count % depth, 2] = move
    own[page, GAP] = gap if count else -1
    own[page, SINCE] = hour
    s.held[page, MOVE] = move
    _add_last(rows, group, page, gap)
    row = rows[page, MERCHANT]
    if row >= 0:
        again = group[row, LATEST] == hour
        group[row, LATEST_COUNT] = group[row, LATEST_COUNT] + 1 if again else 1
        group[row, LATEST] = hour


@compiled
def _note_price(
    own: Ints32, held: Floats, which: tuple[int, bool], price: float, stock: float
) -> None:
    """Keep the price and the stock of a page; a visit that finds the old price is no news."""
    page, visit = which
    if not np.isnan(stock):
        held[page, STOCK] = stock
    if np.isnan(price) or (visit and price == held[page, PRICE]):
        return
    held[page, PRICE] = price
    held[page, PRICE_SUM] += price
    own[page, PRICES] += 1


@compiled
def _count_answer(rows: Ints32, group: Ints, page: int) -> None:
    for family in (ALL, MERCHANT, HOST):
        row = rows[page, family]
        if row >= 0:
            group[row, ANSWERS] += 1


@compiled
def _add_last(rows: Ints32, group: Ints, page: int, hours: int) -> None:
    """Keep the sum, over the pages there, of the hour of the last change (else of birth)."""
    row = rows[page, CATEGORY]
    if row >= 0:
        group[row, LAST_SUM] += hours


@compiled
def _judge_batch(rows: Ints32, group: Ints, page: int) -> None:
    row = rows[page, MERCHANT]
    if row >= 0:
        count = group[row, LATEST_COUNT]
        if count >= 2 and 50 * count >= group[row, 1]:
            group[row, BATCH] = group[row, LATEST]


@compiled
def _take_snapshot(own: Ints32, rows: Ints32, group: Ints, page: int) -> None:
    for family in (ALL, MERCHANT, HOST):
        row = rows[page, family]
        if row >= 0:
            own[page, SNAP + 2 * family] = np.int32(group[row, ANSWERS])
            own[page, SNAP + 2 * family + 1] = np.int32(group[row, 0])


@compiled
def _tally_visit(own: Ints32, page: Any, minutes: Any, late: int) -> None:
    """A visit; the minutes are as `_known` gives them."""
    own[page, VISITS + late] += 1
    if minutes:
        own[page, COMPARED + late] += 1
        own[page, MINUTES + late] += np.int32(minutes - 1)


@compiled
def _tally_demand(wanted: Ints32, page: Any, clicks: Any, shown: Any, lag: int) -> None:
    """Clicks, and impressions as `_known` gives them."""
    wanted[page, CLICKS + lag] += np.int32(clicks)
    if shown:
        wanted[page, SHOWN + lag] += np.int32(shown - 1)


@compiled
def _tally(own: Ints32, rows: Ints32, group: Ints, event: tuple[int, int, int], lag: int) -> None:
    """Count a birth, a change or an end at one lag, for the page and all its groups."""
    page, hour, kind = event
    if kind == _CHANGE:
        own[page, CHANGES + lag] += 1
    if not GROUPED[lag]:
        return
    come = int(kind == _BORN) - int(kind == _GONE)
    for family in range(FAMILIES):
        row = rows[page, family]
        if row < 0:
            continue
        if come:
            group[row, 3 * lag + 1] += come
            group[row, 3 * lag + 2] += come * hour
        else:
            group[row, 3 * lag] += 1


@compiled
def _tally_weeks(
    rows: Ints32, group: Ints, cells: Ints32, turn: Ints, told: tuple[tuple[int, int, int], int]
) -> None:
    """An event enters the season, or (late) leaves it; before it counts for the group itself."""
    (page, hour, kind), late = told
    for family in (ALL, MERCHANT):
        week = rows[page, family]
        if week < 0:
            continue
        if kind == _CHANGE:
            cells[week, 0, (hour + MONDAY) % WEEK_H] += 1 - 2 * late
            continue
        _roll(group, cells, turn, (week, late, hour))
        if late:
            turn[week, 2] += int(kind == _BORN) - int(kind == _GONE)


@compiled
def _roll_all(s: Tables, late: int, hour: int) -> None:
    group, cells, turn = s.group, s.cells, s.turn
    cell = (hour - 1 + MONDAY) % WEEK_H
    for week in range(len(turn)):
        if turn[week, late] != hour - 1:
            _roll(group, cells, turn, (week, late, hour))
            continue
        turn[week, late] = hour
        cells[week, 1, cell] += -turn[week, 2] if late else group[week, 1]


@compiled
def _roll(group: Ints, cells: Ints32, turn: Ints, to: tuple[int, int, int]) -> None:
    """Add the page-hours of a week up to an hour, or (late) take them away."""
    week, late, hour = to
    since = turn[week, late]
    if hour <= since:
        return
    there = -turn[week, 2] if late else group[week, 1]
    turn[week, late] = hour
    if there == 0:
        return
    whole = (hour - since) // WEEK_H
    if whole:
        for k in range(WEEK_H):
            cells[week, 1, k] += there * whole
    for h in range(since + whole * WEEK_H, hour):
        cells[week, 1, (h + MONDAY) % WEEK_H] += there
