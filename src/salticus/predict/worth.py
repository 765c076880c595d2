"""Compiled loops over all pages: own time, and the worth of a visit.

V(τ) = ∫₀^τ S − τS(τ) on any curve. Visits come once a tick, so sums over ticks take the place of
the integral (ALGORITHMS §0, the row of learnt hazards): with a step of h days V(τ) = h·Σ S(kh) −
τS(τ) over kh = 0 … τ − h. The sum exceeds the integral by (h/2)(1 − S(τ)), by (h²/12)(S'(τ) −
S'(0)) beyond that (Euler and Maclaurin), and by h(1 − S(τ)) at most. Without it, pages that are
visited at almost every tick would be held too cheap by half.

All of it is in one file, because compiled code is kept by the age of the file it is in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from salticus.types import Floats, Ints
from salticus.types.compiled import compiled
from salticus.types.dates import DAY_US, HOUR_US

Table = NDArray[np.float64]

WEEK_US = 7 * DAY_US
MONDAY_US = 4 * DAY_US  # 1970 began on a Thursday
_NEVER = np.iinfo(np.int64).min
_LOWEST, _RATIO, _GRID = math.log(1e-3), math.log(1.4), 32  # change rates from 0.001 to 34 a day


class Posterior(NamedTuple):
    """A Gamma(a, b) for the change rate of each page, and the row of its merchant."""

    a: Floats
    b: Floats
    row: Ints


class Ahead(NamedTuple):
    """The coming week of each merchant, at the ticks that may decide.

    Of tick k, the n-th of the `many[row]` that are kept, `slope[row, n]` is kh/Φ_k and
    `start[row, n]` is h·Σ_{j<k} Φ_j/Φ_k: Φ_k is the own time until then, h = `step` a tick in days.
    For change rates on a grid, `brings[row, rate, n]` is h·Σ_{j<k} e^(−λΦ_j), the fresh days that a
    visit now brings before tick k; after them come what the changes until k are worth. The last
    tick ends the week.
    """

    slope: Table
    start: Table
    many: Ints
    brings: Table
    step: float


@compiled
def gamma_worth_at(a: float, b: float, age: float, step: float) -> float:
    """V of a page with a Gamma(a, b) posterior, `age` days after its last answer, in days."""
    u = age / b
    if not u > 0.0:
        return u * 0.0
    if (a + 2.0) * u < 1e-3:  # ∫S and τS(τ) are too near to tell apart
        changed = a * u * (1.0 - (a + 1.0) * u / 2.0 + (a + 1.0) * (a + 2.0) * u * u / 6.0)
        sooner = (a + 1.0) * u * (1.0 - (a + 2.0) * u / 2.0)
        missed = a * b * u * u * (0.5 - (a + 1.0) * u / 3.0 + (a + 1.0) * (a + 2.0) * u * u / 8.0)
    else:
        still, area = _gamma_curve(a, b, age)
        changed, sooner = 1.0 - still, 1.0 - still / (1.0 + u)
        missed = area - age * still
    begun, rest = 0.0, 0.0
    if a / b * step >= 0.2:  # the first tick is a term of its own, the sum goes on from its end
        if age <= step:
            return age * changed
        still, area = _gamma_curve(a, b, step)
        begun, rest = 1.0 - still, step - area
        sooner -= 1.0 - still / (1.0 + step / b)
    more = 0.5 * step * (changed - begun) + step * step / 12.0 * (a / b) * sooner
    return missed + rest + min(more, step * changed)


@compiled
def _gamma_curve(a: float, b: float, age: float) -> tuple[float, float]:
    """S and its integral for a Gamma(a, b) posterior."""
    u = age / b
    grown = math.log1p(u)
    still, tail = math.exp(-a * grown), (a - 1.0) * grown
    part = 1.0 - tail / 2.0 + tail * tail / 6.0  # (1 − e^(−tail))/tail
    if abs(tail) > 1e-4:
        part = (1.0 - still * (1.0 + u)) / tail
    return still, b * grown * part


@compiled
def gamma_worth(a: Floats, b: Floats, ages: Floats, step: float) -> Floats:
    """`gamma_worth_at` for all pages."""
    worth = np.empty(len(ages))
    for k in range(len(ages)):
        worth[k] = gamma_worth_at(a[k], b[k], ages[k], step)
    return worth


@compiled
def poisson_worth(rate: Floats, ages: Floats, step: float) -> Floats:
    """V of pages that change at a known rate, days: the sum over ticks in closed form."""
    worth = np.empty(len(ages))
    for k in range(len(ages)):
        x = rate[k] * ages[k]
        if not x > 0.0:
            worth[k] = x * 0.0
            continue
        per_step = rate[k] * step
        more = 0.5 * per_step + per_step * per_step / 12.0
        if per_step > 0.05:
            more = per_step / -math.expm1(-per_step) - 1.0
        changed = -math.expm1(-x)
        missed = changed - x * (1.0 - changed)  # g(x)
        if x < 1e-3:
            missed = x * x * (0.5 - x / 3.0 + x * x / 8.0)
        worth[k] = (missed + more * changed) / rate[k]
    return worth


@compiled
def rhythm_worth(pages: Posterior, own: Floats, ahead: Ahead) -> Floats:
    """V with a look at the coming week, for all pages whose own age is `own`, in days.

    A visit now brings `gain` fresh days before tick k, beside a visit at k; made in place of one at
    k, it is as good as one to an evenly changing page of the age `due` = (kh·H + h·Σ Φ_j)/Φ_k. To
    put it off until k is out of the question if that loses more than the changes until k are worth.
    The least, over all k within a week, of the greater of both is what a visit is worth now.
    """
    worth, lines = np.empty(len(own)), ahead.slope.shape[1]
    for page in range(len(own)):
        a, b, row, age = pages.a[page], pages.b[page], pages.row[page], own[page]
        best, due = 0, age * ahead.slope[row, 0] + ahead.start[row, 0]
        for n in range(1, ahead.many[row]):
            other = age * ahead.slope[row, n] + ahead.start[row, n]
            if other < due:
                best, due = n, other
        stale, place = _stale(a, b, age, ahead.step), _place(a / b)
        gain = stale * _read(ahead, row, best, place)
        worth[page] = gamma_worth_at(a, b, due, ahead.step)
        if gain > worth[page] or gain >= _read(ahead, row, lines + best, place):
            worth[page] = _least(pages, page, ahead, age)
    return worth


@compiled
def _least(pages: Posterior, page: int, ahead: Ahead, age: float) -> float:
    """The same where the tick until which waiting looks best is not the one that decides."""
    a, b, row = pages.a[page], pages.b[page], pages.row[page]
    stale, place, lines = _stale(a, b, age, ahead.step), _place(a / b), ahead.slope.shape[1]
    least, gain = math.inf, 0.0
    for n in range(ahead.many[row]):
        gain = stale * _read(ahead, row, n, place)
        if gain < min(least, _read(ahead, row, lines + n, place)):
            due = age * ahead.slope[row, n] + ahead.start[row, n]
            least = min(least, max(gamma_worth_at(a, b, due, ahead.step), gain))
    week = max(-math.expm1(-7.0 * a / b), 1e-300)
    return least if least < math.inf else gain / week


@compiled
def _stale(a: float, b: float, age: float, step: float) -> float:
    """The chance that a page has changed; less within the first tick, to begin as V does."""
    return -math.expm1(-a * math.log1p(age / b)) * min(1.0, age / step)


@compiled
def _place(rate: float) -> float:
    """Where on the grid of rates a change rate is."""
    return min(max((math.log(rate) - _LOWEST) / _RATIO, 0.0), _GRID - 1.001)


@compiled
def _read(ahead: Ahead, row: int, n: int, place: float) -> float:
    """What is in column n at a place between two rates of the grid."""
    low = int(place)
    first, second = ahead.brings[row, low, n], ahead.brings[row, low + 1, n]
    return float(first + (second - first) * (place - low))


@compiled
def coming_week(table: Table, ends: Ints, step: float) -> Ahead:
    """What lies ahead of each merchant after the ticks that end at `ends`, µs since 1970.

    Ticks with a higher mean pace than any before are kept, and the last: others hardly ever decide.
    """
    n, ticks = len(table), len(ends)
    slope, start = np.empty((n, ticks)), np.empty((n, ticks))
    tick, many = np.zeros((n, ticks), dtype=np.int64), np.zeros(n, dtype=np.int64)
    for row in range(n):
        own, total, pace = 0.0, 0.0, 0.0
        for k in range(1, ticks):
            total += own * step
            own = max(own_days(table, row, ends[0], ends[k]), 1e-12)
            if own / k > pace * (1.0 + 1e-9) or k == ticks - 1:
                line, pace = many[row], max(pace, own / k)
                tick[row, line], many[row] = k, line + 1
                slope[row, line], start[row, line] = k * step / own, total / own
    lines = many.max()
    brings = _on_grid(table, ends, step, tick[:, :lines])
    return Ahead(slope[:, :lines].copy(), start[:, :lines].copy(), many, brings, step)


@compiled
def _on_grid(table: Table, ends: Ints, step: float, tick: Ints) -> Table:
    """Fresh days until each tick that is kept, then what is caught, for the rates of the grid."""
    lines = tick.shape[1]
    brings = np.zeros((len(table), _GRID, 2 * lines))
    own = np.zeros(len(ends))
    for row in range(len(table)):
        for k in range(1, len(ends)):
            own[k] = max(own_days(table, row, ends[0], ends[k]), 1e-12)
        for r in range(_GRID):
            rate = math.exp(_LOWEST + r * _RATIO)
            total, n, each = 0.0, 0, -math.expm1(-rate * step) / step
            for k in range(1, len(ends)):
                total += step * math.exp(-rate * own[k - 1])
                if n < lines and tick[row, n] == k:
                    brings[row, r, n] = total
                    brings[row, r, lines + n] = -math.expm1(-rate * own[k]) / each
                    n += 1
    return brings


@compiled
def own_ages(table: Table, row: Ints, last: Ints, ages: Floats) -> Floats:
    """Own time in so many days after the last answer; plain time if there was none, or in aeons."""
    own = np.empty(len(ages))
    for k in range(len(ages)):
        if last[k] == _NEVER or not ages[k] < 1e5:
            own[k] = ages[k]
        else:
            own[k] = own_days(table, row[k], last[k], last[k] + np.int64(ages[k] * DAY_US))
    return own


@compiled
def own_days(table: Table, row: int, start: int, end: int) -> float:
    """Days of own time from `start` to `end`, µs since 1970."""
    start, end = start - MONDAY_US, end - MONDAY_US
    weeks = end // WEEK_US - start // WEEK_US
    return 7.0 * weeks + _since_monday(table, row, end) - _since_monday(table, row, start)


@compiled
def _since_monday(table: Table, row: int, at: int) -> float:
    place = (at % WEEK_US) / HOUR_US
    hour = int(place)
    begun: float = table[row, hour]
    return begun + float(table[row, hour + 1] - begun) * (place - hour)


@compiled
def between(table: Table, row: Ints, start: Ints, end: Ints) -> Floats:
    """`own_days` for all spans."""
    own = np.empty(len(row))
    for k in range(len(row)):
        own[k] = own_days(table, row[k], start[k], end[k])
    return own
