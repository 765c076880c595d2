"""The reasons for a page's visits: what is known, what holds one back or forces it, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
import numpy as np

from salticus.allocate.capacity import optional
from salticus.allocate.limits import deadlines
from salticus.config import Rule
from salticus.crawl.standing import Standing
from salticus.store.nouns import AlertState, PageState
from salticus.types import Pages, Times, moment
from salticus.types.state import later
from salticus.views.fresh import NextVisit
from salticus.views.promises import FoundPage, Promise
from salticus.views.times import when

_BINDS = {
    "none": "nothing holds it back",
    "pause": "it is paused",
    "rest": "it rests",
    "pin": "its rule fixes the interval, and that is not over yet",
    "hours": "its rule leaves it alone at this hour",
    "min_interval": "its minimum interval is not over yet",
    "host": "its host can take no more visits in the coming tick",
    "price": "a visit does not buy enough yet",
    "budget": "it is worth a visit, but the budget of the coming tick goes to others",
    "policy": "the policy spends the coming tick's visits on others",
}
_CAUSES = {
    "max_interval": "its maximum interval ends",
    "pin": "its fixed interval ends",
    "explore": "the lot falls on it",
    "first visit": "nothing is held of it yet, and no visit to it buys more than the first",
    "price": "what a visit buys has then reached the visit price",
    "policy": "the policy spends a visit on it",
    "panel": "it is in the panel",
    "insta": "a click asked for it",
    "manual": "it was asked for by hand",
    "discover": "a source has shown it, and it is worth a visit at once",
}
_ORIGINS = {
    "uniform": "nothing is known, so the same for all",
    "by hand": "given by hand",
    "clicks": "from what was counted of this page and of all, older counts for less",
    "impressions": "from how often it was shown, older counts for less",
}


class PageDemand(msgspec.Struct, frozen=True, rename={"origin": "from"}):
    """Clicks a day as the policy counts them, and where they come from; `clicks` and `impressions`
    are those counted of the page, older ones for less. `counts` is what they say a day, `model`
    what a model says, and `weight` how far that is trusted; None if none does."""

    a_day: float
    origin: str
    clicks: float
    impressions: float
    importance: float
    counts: float
    model: float | None
    weight: float | None


class CopyAge(msgspec.Struct, frozen=True):
    """How old the copy is, and how likely it is out of date, now and in so many days."""

    last_visit: datetime | None
    last_answer: datetime | None
    changed_by_now: float
    changed_in_days: dict[str, float]


class PageRecord(msgspec.Struct, frozen=True):
    """What was seen of the page itself."""

    visits: int
    changes: int
    days: float


class RateParts(msgspec.Struct, frozen=True):
    """What a rate is made of: its prior, and the page's own evidence."""

    prior_changes_a_day: float
    prior_share: float
    own_share: float
    own_changes: float
    own_days: float


class WeekHours(msgspec.Struct, frozen=True):
    """How the hours of the week matter: pace now, pace of the next day, the busiest hour."""

    now: float
    next_day: float
    busiest: str
    busiest_pace: float


class RateEstimate(msgspec.Struct, frozen=True):
    """How often the page changes, and what that rests on."""

    predictor: str
    changes_a_day: float
    seen: PageRecord
    parts: RateParts | None
    hours: WeekHours | None
    features: list[tuple[str, float]] | None
    traits: str | None = None


class PriceView(msgspec.Struct, frozen=True):
    """The visit price, and what a visit in the coming tick is worth, in demand-weighted fresh days
    per visit of cost."""

    visit_price: float
    needed: float
    worth: float
    cost: float
    reached: bool | None
    demand_factor: float


class Bound(msgspec.Struct, frozen=True):
    """Something that bears on when a page is visited."""

    name: str
    says: str


class Why(msgspec.Struct, frozen=True):
    """Why a page is visited when it is. `price` is None if the policy knows none; `promise` is
    that of a source, which may be `retired`, `found` of a page that waits for its first visit."""

    url: str
    state: str
    rule: str | None
    demand: PageDemand
    copy: CopyAge
    estimate: RateEstimate
    price: PriceView | None
    explore_chance: float
    next_visit: NextVisit | None
    coming_tick: int
    horizon_days: int
    binds: str
    brought_by: str | None
    bounds: list[Bound]
    promise: Promise | None = None
    found: FoundPage | None = None
    retired: AlertState | None = None


# ------------------------------------------------------------------------ what holds a visit back


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
    found = [_resting(case), _host(standing, case)]
    if rule is not None and rule.hours is not None:
        opens = rule.hours.opening(pages.tick.start)
        said = "open" if pages.open[0] else f"next open at {when(opens)}"
        found.append(("hours", f"visited only in the hours of its rule; {said}"))
    if not np.isnan(pages.interval[0]):
        ends = _ends(later(pages.last_visit, pages.interval), "at once")
        often = timedelta(days=float(pages.interval[0]))
        found.append(("pin", f"visited every {often} by its rule: {ends}"))
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
    paused = case.page.state == "paused" or (case.rule is not None and case.rule.pause)
    reasons = (
        ("none", visit is not None and (visit.planned or visit.tick == standing.coming.number)),
        ("pause", case.rests and paused),
        ("rest", case.rests),
        ("pin", not np.isnan(pages.interval[0])),
        ("hours", not pages.open[0]),
        ("min_interval", not optional(pages)[0]),
        ("host", pages.capacity[pages.host[0]] <= 0),
        ("price", case.reached is False),
        ("host", case.full),
        ("policy", case.reached is None),
    )
    return next((name for name, holds in reasons if holds), "budget")


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


def _resting(case: Case) -> tuple[str, str] | None:
    page = case.page
    if not case.rests:
        return None
    if page.state == "paused":
        return "pause", "paused by hand; `salticus pages URL --resume` ends that"
    if case.rule is not None and case.rule.pause:
        return "pause", f"paused by the rule of {case.rule.named}"
    if page.state in ("moved", "unlisted"):
        return "rest", f"{page.state}; not visited"
    if page.is_dropped:
        return "rest", "dropped: there was nothing to come back for; `salticus add` revives it"
    said = "robots.txt forbids it" if page.status == "disallowed" else "there was nothing there"
    return "rest", f"{said} {page.idle} times in a row; it rests longer every time, up to 30 days"


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


# --------------------------------------------------------------------------------------- in words


def in_words(told: Why) -> Iterator[tuple[str, str]]:
    """Heading and text of each paragraph."""
    yield "next visit", _next(told)
    yield "what holds it back", _BINDS[told.binds]
    yield "demand", _demand(told)
    if told.retired is not None:
        yield "retired", f"since {when(told.retired.since)}: {told.retired.fault}"
    if told.promise is not None:
        yield "new pages", told.promise.words()
    if told.found is not None:
        yield "a new page", told.found.words()
    yield "the copy", _copy(told.copy)
    yield "the estimate", _estimate(told.estimate)
    if told.price is not None:
        yield "the visit price", _price(told, told.price)
    yield "exploration", f"a chance of {_share(told.explore_chance)} a tick"
    for bound in told.bounds:
        yield bound.name, bound.says


def _next(told: Why) -> str:
    visit = told.next_visit
    if visit is None:
        return f"none within {told.horizon_days} days"
    sure = "planned" if visit.planned else "foreseen"
    span = f"{when(visit.start)} to {when(visit.end)}"
    return f"{sure} for tick {visit.tick}, {span}, because {_CAUSES[told.brought_by or '']}"


def _demand(told: Why) -> str:
    demand = told.demand
    said = f"{demand.a_day:.3g} clicks a day ({_ORIGINS[demand.origin]}"
    if demand.origin in ("clicks", "impressions"):
        said += f": {demand.clicks:.3g} clicks, {demand.impressions:.3g} impressions"
    if demand.model is not None and demand.weight is not None:
        said += (
            f"; counts say {demand.counts:.3g}, a model {demand.model:.3g}, "
            f"which weighs {_share(demand.weight)}"
        )
    if demand.importance != 1.0:
        said += f", times {demand.importance:g} for {told.rule}"
    return said + ")"


def _copy(copy: CopyAge) -> str:
    if copy.last_answer is None:
        return "there is none yet"
    ahead = ", ".join(f"{_share(p)} in {d} d" for d, p in copy.changed_in_days.items())
    now = _share(copy.changed_by_now)
    return f"of {when(copy.last_answer)}; the chance that it is out of date is {now} now, {ahead}"


def _estimate(found: RateEstimate) -> str:
    seen, parts, hours = found.seen, found.parts, found.hours
    said = [
        f"{found.changes_a_day:.3g} changes a day ({found.predictor}); seen: "
        f"{seen.changes} changes in {seen.visits} visits over {seen.days:.3g} days"
    ]
    if parts is not None:
        said.append(
            f"{_share(parts.own_share)} of it is the page's own record, "
            f"{_share(parts.prior_share)} the prior of pages like it "
            f"({parts.prior_changes_a_day:.3g} a day)"
        )
    if hours is not None:
        said.append(
            f"at this hour such pages change {hours.now:.2g} times as often as on average, "
            f"most on {hours.busiest} ({hours.busiest_pace:.2g} times)"
        )
    if found.traits:
        said.append(f"fitted to the visits of the crawl: {found.traits}")
    if found.features:
        most = ", ".join(f"{name} {part:+.3g}" for name, part in found.features[:8])
        said.append(f"what features add to the model's score: {most}")
    return "; ".join(said)


def _price(told: Why, price: PriceView) -> str:
    what = "clicks" if told.promise or told.found else "demand-weighted days of freshness"
    said = (
        f"a visit must buy {price.visit_price:.3g} {what} per visit "
        f"of cost, and buys {price.worth:.3g} in the coming tick at a cost of {price.cost:g}"
    )
    if price.needed > price.visit_price:
        said += f"; the budget of the coming tick ends at visits that buy {price.needed:.3g}"
    if told.binds not in ("price", "budget"):
        return said
    if told.promise or told.found:
        return said
    if not told.demand.a_day:
        return f"{said}; nobody reads it: it has to wait for what the others leave, or for the lot"
    if math.isinf(price.demand_factor):
        return f"{said}; no demand would bring it forward: it pays to wait"
    said += f"; demand {price.demand_factor:.3g} times as high"
    if told.binds == "price" and price.needed == price.visit_price:
        said += f", or a visit price of {price.worth:.3g},"
    return f"{said} would bring the visit into the coming tick"


def _share(chance: float) -> str:
    """A probability in per cent.

    >>> _share(0.5), _share(0.00123)
    ('50 %', '0.12 %')
    """
    return f"{100 * chance:.2g} %" if chance < 0.995 else f"{100 * chance:.4g} %"
