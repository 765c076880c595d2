"""Intervals set by the user: the hard maximum, kept so that no visit comes too late, and the fixed.

A page with a maximum interval is a job with a deadline, renewed by every visit. The demand that
falls due within the next k ticks tells how many jobs cannot wait: what exceeds the visits of the
later ticks must be made in this one. Jobs with unlike intervals are a pinwheel scheduling problem;
a budget a fifth above the sum of the rates leaves room for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from salticus.allocate.capacity import fitting, less
from salticus.errors import Infeasible
from salticus.types import Draw, Grant, Pages, Purpose, Tick
from salticus.types.arrays import Bools, Columns, Floats, Ints, Times, days_between, instant
from salticus.types.state import later

_HORIZON = 10_000  # ticks; two years of two-hour ticks
_SLACK = 6 / 5  # unlike intervals fit together only up to 5/6 of the visits (Kawamura 2024)


class Limits:
    """Visits pages before their maximum interval ends, as late as budget and hosts allow."""

    purpose = Purpose.LIMIT

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        still = pages.open.copy()
        still[grant.taken] = False
        rest = replace(less(pages, grant.taken), open=still)
        return Draw.sure(forced(rest, grant.left(pages), grant.per_tick, tick))


class Pins:
    """Visits the pinned pages that fall due in the tick.

    A page never visited is due at once. If hosts or visits do not suffice for all, those that have
    been due longest come first, and the others in a later tick: politeness > budget > maximum
    interval > pins.

    >>> from dataclasses import replace
    >>> from salticus.testing import a_grant, a_tick, blank_pages
    >>> pages = replace(blank_pages(3), interval=np.array([0.5, np.nan, 7.0]))
    >>> Pins().draw(pages, a_grant(9, taken=np.array([2])), a_tick()).rows
    array([0])
    """

    purpose = Purpose.LIMIT

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        pinned = pages.open & ~np.isnan(pages.interval)
        pinned[grant.taken] = False
        rows = np.flatnonzero(pinned)
        due = later(pages.last_visit[rows], pages.interval[rows])
        rows, due = rows[(now := ~(due >= instant(tick.end)))], due[now]
        rows = rows[np.lexsort((pages.ids[rows], due, ~np.isnat(due)))]
        return Draw.sure(fitting(pages, rows, grant.visits, grant.taken))


def forced(pages: Pages, visits: int, per_tick: float, tick: Tick) -> Ints:
    """Rows to visit in this tick for their maximum interval, the most pressing first.

    They cost at most `visits`, and no host goes beyond its capacity: politeness > budget > maximum
    interval. A page that is not open comes as soon as it is. `per_tick` is what later ticks may
    spend.
    """
    limited = np.flatnonzero(np.isfinite(pages.max_interval))
    if not len(limited) or visits <= 0:
        return np.empty(0, dtype=np.int64)
    due = deadlines(pages.take(limited))
    jobs = Jobs(ticks_left(due, tick), renewal(pages.max_interval[limited], tick.days))
    must = _cannot_wait(jobs, per_tick) | _forced_by_host(pages, limited, jobs)
    pressing = np.lexsort((due, jobs.wait))
    chosen = limited[pressing[must[pressing]]]
    return fitting(pages, chosen[pages.open[chosen]], visits, chosen[:0])


def deadlines(pages: Pages) -> Times:
    """When each page must have been visited again; counted from its addition if never visited."""
    since = np.where(np.isnat(pages.last_visit), pages.added, pages.last_visit)
    return later(since, pages.max_interval)


def ticks_left(due: Times, tick: Tick) -> Ints:
    """Whole ticks after this one that end by the deadline; 0 = it is now or never."""
    left = np.floor(days_between(instant(tick.end), due) / tick.days + 1e-9)
    return np.asarray(left.clip(0, _HORIZON), dtype=np.int64)


def renewal(max_interval: Floats, tick_days: float) -> Ints:
    """Ticks after which a visit made anywhere in a tick must be repeated, at the latest."""
    whole = np.floor(max_interval / tick_days + 1e-9) - 1
    return np.asarray(np.clip(whole, 1, _HORIZON), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Jobs(Columns):
    """Visits with a deadline: later ticks that they can wait, and ticks until they recur."""

    wait: Ints
    renew: Ints


def _cannot_wait(jobs: Jobs, per_tick: float) -> Bools:
    """Which jobs must be done now, because the later ticks cannot take them all.

    What falls due by the k-th later tick, less what those ticks can take, is done now: of the jobs
    due by then, those with the smallest share of their interval left.

    >>> _cannot_wait(Jobs(np.array([0, 1, 1, 1]), np.array([9, 9, 9, 9])), per_tick=2.0).sum()
    np.int64(2)
    """
    must = np.zeros(len(jobs), dtype=np.bool_)
    spare = np.floor(per_tick * np.arange(_horizon(jobs)) + 1e-9)
    excess = np.maximum.accumulate(_demand(jobs) - spare)
    done = 0
    for k in np.flatnonzero(np.diff(excess, prepend=0.0) > 0):
        due = np.flatnonzero((jobs.wait <= k) & ~must)
        more = int(excess[k]) - done
        if more > 0:
            least = np.argsort(jobs.wait[due] / jobs.renew[due], kind="stable")[:more]
            must[due[least]] = True
            done = int(excess[k])
    return must


def _horizon(jobs: Jobs) -> int:
    return int(max(jobs.wait.max(), 2 * jobs.renew.max())) + 1


def _demand(jobs: Jobs) -> Floats:
    """Visits that fall due by each of the next ticks, recurrences included."""
    horizon = _horizon(jobs)
    demand = np.zeros(horizon)
    for period in np.unique(jobs.renew):
        first = np.cumsum(np.bincount(jobs.wait[jobs.renew == period], minlength=horizon))
        for start in range(0, horizon, int(period)):
            demand[start:] += first[: horizon - start]
    return demand


def _forced_by_host(pages: Pages, limited: Ints, jobs: Jobs) -> Bools:
    """The same for each host whose limited pages do not fit into one tick of its capacity."""
    must = np.zeros(len(limited), dtype=np.bool_)
    host = pages.host[limited]
    crowded = np.bincount(host, minlength=len(pages.capacity)) > pages.capacity
    for name in np.flatnonzero(crowded):
        mine = np.flatnonzero(host == name)
        must[mine] = _cannot_wait(jobs.take(mine), float(pages.capacity[name]))
    return must


def check_feasible(
    pages: Pages, per_day: float, tick: Tick, hosts: Sequence[str] | None = None
) -> None:
    """Refuse maximum and fixed intervals that the budget or a host's delay cannot keep.

    Raises Infeasible with the budget that would be needed, in visits a day. `hosts` are the names
    of the hosts by number, for the message. Pages that are not open at all hours count like others.
    """
    _check_ticks(pages, tick)
    each = _needed(pages, tick.days)
    needed = float((each * pages.cost).sum())
    limited, fixed = np.isfinite(pages.max_interval).any(), not np.isnan(pages.interval).all()
    named = " and ".join(["maximum"] * bool(limited) + ["fixed"] * fixed) + " intervals"
    settings = " or ".join(["`max_interval`"] * bool(limited) + ["`interval`"] * fixed)
    if needed > per_day * (1 + 1e-9):
        raise Infeasible(
            f"the {named} need a budget of at least {np.ceil(needed):.0f} visits a day, "
            f"but the budget is {per_day:g}; raise `budget` or {settings}",
            needed=needed,
        )
    load = np.bincount(pages.host, weights=each * tick.days, minlength=len(pages.capacity))
    if np.any(load > pages.capacity * (1 + 1e-9)):
        worst = int(np.argmax(load - pages.capacity))
        name = hosts[worst] if hosts else f"host {worst}"
        raise Infeasible(
            f"{name} can take {pages.capacity[worst] / tick.days:.0f} visits a day, "
            f"but the {named} of its pages need {load[worst] / tick.days:.0f}; "
            f"raise {settings} or lower the host's `delay`"
        )


def _check_ticks(pages: Pages, tick: Tick) -> None:
    """A page is visited once a tick at most, and that may be at the tick's end."""
    shortest = {
        "maximum": float(pages.max_interval.min(initial=np.inf)) / 2,
        "fixed": float(np.nanmin(pages.interval, initial=np.inf)),
    }
    for kind, days in shortest.items():
        if days < tick.days * (1 - 1e-9):
            raise Infeasible(
                f"a {kind} interval of {days * 24 * (1 + (kind == 'maximum')):g} h needs ticks of "
                f"at most {days * 24:g} h, not {tick.days * 24:g} h; set `tick`"
            )


def _needed(pages: Pages, tick_days: float) -> Floats:
    """Visits a day that the maximum and fixed intervals of each page need."""
    limited = np.isfinite(pages.max_interval)
    renew = renewal(pages.max_interval[limited], tick_days)
    each = np.nan_to_num(1.0 / pages.interval)
    limits = _SLACK ** (len(np.unique(renew)) > 1) / (renew * tick_days)
    each[limited] = np.maximum(each[limited], limits)
    return each
