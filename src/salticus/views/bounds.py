"""What holds a page's visit back, or forces it: the settings, the host, the price, the budget."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import msgspec
import numpy as np

from salticus.allocate.capacity import optional
from salticus.allocate.limits import deadlines
from salticus.config import Rule
from salticus.crawl.standing import Standing
from salticus.store.nouns import DROPPED, PageState
from salticus.types import Pages, Times, moment
from salticus.types.state import later
from salticus.views.standing import NextVisit
from salticus.views.times import when


class Bound(msgspec.Struct, frozen=True):
    """Something that bears on when a page is visited."""

    name: str
    says: str


@dataclass(frozen=True, slots=True)
class Case:
    """A page in the coming tick: its state, its rule, its columns (one row), whether it rests,
    whether it is worth a visit at the price (None = the policy has no price), its next visit, and
    whether its host is full."""

    page: PageState
    rule: Rule | None
    pages: Pages
    rests: bool
    reached: bool | None
    visit: NextVisit | None
    full: bool


def bounds(standing: Standing, case: Case) -> list[Bound]:
    """Everything that bears on when the page is visited, each with what it says."""
    pages, rule = case.pages, case.rule
    found = [_resting(standing, case), _host(standing, case)]
    if rule is not None and rule.hours is not None:
        opens = rule.hours.opening(pages.tick.start)
        said = "open" if pages.open[0] else f"next open at {when(opens)}"
        found.append(("hours", f"visited only in the hours of its rule; {said}"))
    if not np.isnan(pages.interval[0]):
        ends = _ends(later(pages.last_visit, pages.interval), "at once")
        found.append(("pin", f"visited every {_span(pages.interval[0])} by its rule: {ends}"))
    if np.isfinite(pages.max_interval[0]):
        ends = _ends(deadlines(pages), "at once")
        found.append(("max_interval", f"visited at the latest {ends}"))
    if pages.min_interval[0] > 0:
        ends = _ends(later(pages.last_visit, pages.min_interval), "any time")
        found.append(("min_interval", f"left alone by policy and lot: {ends} at the earliest"))
    return [Bound(*one) for one in found if one]


def binding(standing: Standing, case: Case) -> str:
    """What keeps the page from being visited in the coming tick; "none" if nothing does."""
    pages, visit = case.pages, case.visit
    if visit is not None and (visit.planned or visit.tick == standing.coming.number):
        return "none"
    if case.rests:
        return "pause" if _paused(case) else "rest"
    if not np.isnan(pages.interval[0]):
        return "pin"
    if not pages.open[0]:
        return "hours"
    if not optional(pages)[0]:
        return "min_interval"
    if pages.capacity[pages.host[0]] <= 0:
        return "host"
    if case.reached is False:
        return "price"
    if case.full:
        return "host"
    return "policy" if case.reached is None else "budget"


def cause(case: Case) -> str | None:
    """What brings the next visit."""
    if case.visit is None:
        return None
    if case.visit.purpose == "limit":
        return "max_interval" if np.isnan(case.pages.interval[0]) else "pin"
    if case.visit.purpose != "policy":
        return case.visit.purpose
    if np.isnat(case.pages.last_visit[0]):
        return "first visit"
    return "policy" if case.reached is None else "price"


def _resting(standing: Standing, case: Case) -> tuple[str, str] | None:
    page = case.page
    if not case.rests:
        return None
    if page.state == "paused":
        return "pause", "paused by hand; `salticus pages URL --resume` ends that"
    if case.rule is not None and case.rule.pause:
        return "pause", f"paused by the rule of {case.rule.named}"
    if page.state in ("moved", "unlisted"):
        return "rest", f"{page.state}; not visited"
    if page.idle >= DROPPED:
        return "rest", "dropped: there was nothing to come back for; `salticus add` revives it"
    said = "robots.txt forbids it" if page.status == "disallowed" else "there was nothing there"
    return "rest", f"{said} {page.idle} times in a row; it rests longer every time"


def _paused(case: Case) -> bool:
    return case.page.state == "paused" or (case.rule is not None and case.rule.pause)


def _host(standing: Standing, case: Case) -> tuple[str, str]:
    host = standing.hosts.at(case.page.host)
    room = float(case.pages.capacity[case.pages.host[0]])
    many = "any number of visits" if np.isinf(room) else f"{room:,.0f} visits"
    if room < 10:
        many = f"{room:.2g} visits"
    said = f"{host.name} can take {many} in the coming tick (a request every {host.delay:g} s)"
    hours = standing.config.hours(host.name)
    if room <= 0 and hours is not None:
        said += f"; its hours begin at {when(hours.opening(case.pages.tick.start))}"
    if host.strikes:
        said += f"; it failed {host.strikes} times in a row and is left alone for a while"
    return "host", said


def _ends(times: Times, never: str) -> str:
    return never if np.isnat(times[0]) else when(moment(times[0]))


def _span(days: float) -> str:
    return str(timedelta(days=float(days)))
