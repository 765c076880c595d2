"""How counters become features: one division, or logarithm, of integers each; and the calendar."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from salticus.features import kernels as at
from salticus.features.kernels import LAGS, MONDAY, MONTH, WEEK_H, Tables
from salticus.types import Floats, Floats32, Ints, Ints32
from salticus.types.compiled import compiled

DEMAND_AT, CATEGORY_AT, GROUPS_AT, LATELY_AT, WEEK_AT = 16, 24, 28, 43, 50  # after the page's own
_WINDOWS = (2, 3, 5)  # day, week and month among the lags
_EPOCH = date(1970, 1, 1)
UNKNOWN_ZONE = np.iinfo(np.int32).min


Places = NDArray[np.int16]


class Cached(NamedTuple):
    """Features that all pages of a group share in an hour."""

    stamp: Ints  # in which hour they were made
    lately: Floats32  # groups × (day, week, month, mean hours since the last change)
    week: Floats32  # groups with a week × (weekday, hour, what is ahead at each of `edges`)
    edges: Ints
    walk: Floats  # room for work


class Day(NamedTuple):
    """Of a UTC day: minutes that zones are ahead, holidays, and the zone and country of pages."""

    shift: Ints32
    feast: Floats32
    place: Places
    asked: Ints  # whether there is demand


@compiled
def read_rows(s: Tables, cached: Cached, day: Day, page: Ints, out: Floats32) -> None:
    """Features of pages in the hour up to which `s` was advanced."""
    edges, now = len(cached.edges), s.facts[2]
    rows, group, stamp, lately, weeks = s.rows, s.group, cached.stamp, cached.lately, len(s.turn)
    for i in range(len(page)):
        p, row = page[i], out[i]
        row[:] = np.nan
        for family in range(rows.shape[1]):
            g = rows[p, family]
            if g >= 0 and stamp[g] != now:
                stamp[g] = now
                _refresh(group, lately, g, now)
                if g < weeks:
                    _refresh_week(s.cells[g], cached.week[g], cached.edges, cached.walk, now)
        if s.own[p, at.BORN_AT] >= 0:
            _own(s, p, now, row)
            if day.asked[0]:
                _demand(s, p, now, row)
            if not s.facts[0] and s.own[p, at.ANSWER] >= 0:
                _found(s, p, row)
        _groups(s, cached, p, row)
        _clock(day, p, now, row[WEEK_AT + 2 + 2 * edges :])


@compiled
def _seen(own: Ints32, now: int, window: int) -> int:
    """Hours of the page's life in the window before `now`."""
    end = min(now, own[at.GONE_AT])
    return int(max(0, end - max(own[at.BORN_AT], now - window)))


@compiled
def _ratio(count: float, of: float) -> float:
    return count / of if of > 0 else np.nan


@compiled
def _own(s: Tables, p: int, now: int, row: Floats32) -> None:
    own, held = s.own[p], s.held[p]
    for k, lag in enumerate((1, 2, 3, 5)):
        row[k] = _ratio(own[at.CHANGES] - own[at.CHANGES + lag], _seen(own, now, LAGS[lag]))
    row[4] = _ratio(own[at.CHANGES], _seen(own, now, now))
    row[5] = now - own[at.SINCE]
    if own[at.CHANGES] >= 2:
        row[6] = own[at.GAP]
    row[7] = own[at.CHANGES]
    row[8] = now - own[at.BORN_AT]
    _watched(s, p, now, row)
    if held[at.PRICE] > 0:
        row[12] = np.log(held[at.PRICE])
        row[13] = np.log(held[at.PRICE] * own[at.PRICES] / held[at.PRICE_SUM])
    row[14] = held[at.MOVE]
    row[15] = held[at.STOCK]


@compiled
def _watched(s: Tables, p: int, now: int, row: Floats32) -> None:
    """How much was seen in a month, and the rate that it tells whatever the spacing of visits was
    (Cho and Garcia-Molina 2003, section 4.2, over n comparisons of mean spacing T/n)."""
    own = s.own[p]
    found = own[at.CHANGES] - own[at.CHANGES + MONTH]
    if s.facts[0]:
        n = _seen(own, now, LAGS[MONTH])
        hours = float(n)
        row[9], row[10] = n, 0.0
    else:
        n = own[at.COMPARED] - own[at.COMPARED + 1]
        hours = (own[at.MINUTES] - own[at.MINUTES + 1]) / 60.0
        row[9] = own[at.VISITS] - own[at.VISITS + 1]
        if own[at.ANSWER] >= 0:
            row[10] = now - own[at.ANSWER]
    if n > 0 and hours > 0:
        row[11] = np.log((n + 0.5) / (n - min(found, n) + 0.5)) * n / hours


@compiled
def _demand(s: Tables, p: int, now: int, row: Floats32) -> None:
    own, wanted = s.own[p], s.wanted[p]
    for k, lag in enumerate((2, 3, 4, 5)):
        hours = _seen(own, now, LAGS[lag])
        clicks = wanted[at.CLICKS] - wanted[at.CLICKS + lag]
        row[DEMAND_AT + k] = _ratio(24.0 * clicks, hours)
        if s.facts[1]:
            shown = wanted[at.SHOWN] - wanted[at.SHOWN + lag]
            row[DEMAND_AT + 4 + k] = _ratio(24.0 * shown, hours)


@compiled
def _found(s: Tables, p: int, row: Floats32) -> None:
    """Answers of the merchant, of the host and of all since the page's own last, by hours."""
    for place, family in ((2, at.MERCHANT), (4, at.HOST), (6, at.ALL)):
        group = s.rows[p, family]
        if group < 0:
            continue
        answers = int(np.int32(s.group[group, at.ANSWERS] - s.own[p, at.SNAP + 2 * family]))
        found = int(np.int32(s.group[group, 0] - s.own[p, at.SNAP + 2 * family + 1]))
        row[LATELY_AT + place] = _ratio(found, answers)
        if family != at.ALL:
            row[LATELY_AT + place + 1] = answers


@compiled
def _groups(s: Tables, cached: Cached, p: int, row: Floats32) -> None:
    if s.rows[p, at.CATEGORY] >= 0:
        row[CATEGORY_AT : CATEGORY_AT + 4] = cached.lately[s.rows[p, at.CATEGORY]]
    for k, family in enumerate((at.MERCHANT, at.HOST, at.BRAND, at.SHELF, at.ALL)):
        group = s.rows[p, family]
        if group >= 0:
            start = GROUPS_AT + 3 * k
            row[start : start + 3] = cached.lately[group, :3]
    edges, merchant = len(cached.edges), s.rows[p, at.MERCHANT]
    row[WEEK_AT + 2 + edges : WEEK_AT + 2 + 2 * edges] = cached.week[0, 2:]
    if merchant < 0:
        return
    row[WEEK_AT : WEEK_AT + 2 + edges] = cached.week[merchant]
    for k, column in enumerate((at.LATEST, at.BATCH)):
        if s.group[merchant, column] >= 0:
            row[LATELY_AT + k] = s.facts[2] - s.group[merchant, column]


@compiled
def _clock(day: Day, p: int, now: int, row: Floats32) -> None:
    row[0] = ((now + MONDAY) // 24) % 7
    row[1] = now % 24
    zone, country = day.place[p, 0], day.place[p, 1]
    local = now
    if zone >= 0 and day.shift[zone, now % 24] != UNKNOWN_ZONE:
        local = (60 * now + day.shift[zone, now % 24]) // 60
        row[2] = ((local + MONDAY) // 24) % 7
        row[3] = local % 24
    if country >= 0:
        row[4] = day.feast[country, 1 + local // 24 - now // 24]


# ----------------------------------------------------------------------------------------- groups


@compiled
def _refresh(group: Ints, lately: Floats32, g: int, now: int) -> None:
    """Make the features of a group anew."""
    changes, alive, born = group[g, 0], group[g, 1], group[g, 2]
    for k, lag in enumerate(_WINDOWS):
        then = group[g, 3 * lag + 1] * (now - LAGS[lag]) - group[g, 3 * lag + 2]
        lately[g, k] = _ratio(changes - group[g, 3 * lag], alive * now - born - then)
    lately[g, 3] = _ratio(alive * now - group[g, at.LAST_SUM], alive)


@compiled
def _refresh_week(cells: Ints32, week: Floats32, edges: Ints, walk: Floats, now: int) -> None:
    """Make what the week of a group tells anew."""
    cell = (now + MONDAY) % WEEK_H
    changes, hours = cells[0], cells[1]
    week[:] = np.nan
    if hours.sum() <= 0:
        return
    _walk(cells, cell, changes.sum() / hours.sum(), walk)
    day = slice(cell // 24 * 24, cell // 24 * 24 + 24)
    week[0] = _ratio(24.0 * changes[day].sum(), hours[day].sum())
    week[1] = _ratio(changes[cell % 24 :: 24].sum(), hours[cell % 24 :: 24].sum())
    before = 0.0
    for k in range(len(edges)):
        reached = edges[k] // WEEK_H * walk[WEEK_H] + walk[edges[k] % WEEK_H]
        week[2 + k] = reached - before
        before = reached


@compiled
def _walk(cells: Ints32, start: int, mean: float, walk: Floats) -> None:
    """Changes a page to be expected in the first k hours from a cell on, for each k of a week."""
    walk[0] = 0.0
    cell = start
    for k in range(WEEK_H):
        hours = cells[1, cell]
        walk[k + 1] = walk[k] + (cells[0, cell] / hours if hours > 0 else mean)
        cell = cell + 1 if cell + 1 < WEEK_H else 0


# ---------------------------------------------------------------------------------------- calendar


def day_shifts(zones: tuple[str, ...], day: int) -> Ints32:
    """Minutes that each zone is ahead of UTC, in each UTC hour of a day (days since 1970).

    >>> day_shifts(("Europe/Berlin",), 17617)[0, :3]  # 2018-03-26, the day after the clocks moved
    array([120, 120, 120], dtype=int32)
    """
    shifts = np.empty((len(zones), 24), dtype=np.int32)
    for row, zone in enumerate(zones):
        first, after = _shift(zone, 24 * day), _shift(zone, 24 * day + 24)
        shifts[row] = first
        if first != after:
            shifts[row] = [_shift(zone, 24 * day + hour) for hour in range(24)]
    return shifts


@lru_cache(maxsize=4096)
def _shift(zone: str, hour: int) -> int:
    from zoneinfo import ZoneInfo

    try:
        place = ZoneInfo(zone)
    except (ValueError, OSError, KeyError):  # no such zone
        return UNKNOWN_ZONE
    ahead = datetime.fromtimestamp(3600 * hour, UTC).astimezone(place).utcoffset()
    return UNKNOWN_ZONE if ahead is None else int(ahead.total_seconds()) // 60


def feasts(countries: tuple[str, ...], day: int) -> Floats32:
    """Whether the day before, the day and the day after are public holidays, for each country: 1
    or 0, NaN for a country that is not known.

    >>> feasts(("DE", "??"), 17652)  # 2018-05-01 is the second of these three
    array([[ 0.,  1.,  0.],
           [nan, nan, nan]], dtype=float32)
    """
    found = np.full((len(countries), 3), np.nan, dtype=np.float32)
    for row, country in enumerate(countries):
        for place, near in enumerate((day - 1, day, day + 1)):
            when = _EPOCH + timedelta(days=near)
            dates = _holidays(country, when.year)
            if dates is not None:
                found[row, place] = when in dates
    return found


@lru_cache(maxsize=1024)
def _holidays(country: str, year: int) -> frozenset[date] | None:
    import holidays

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of years for which not every holiday is known
        try:
            return frozenset(holidays.country_holidays(country.upper(), years=year))
        except NotImplementedError:
            return None
