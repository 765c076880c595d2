"""The explanation of a page's visits in words."""

from __future__ import annotations

import math
from collections.abc import Iterator

from salticus.views.times import when
from salticus.views.why import CopyAge, PriceView, RateEstimate, Why

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
    "first visit": "it was never visited, and such pages come first",
    "price": "what a visit buys has then reached the visit price",
    "policy": "the policy spends a visit on it",
    "panel": "it is in the panel",
    "insta": "a click asked for it",
    "manual": "it was asked for by hand",
    "discover": "it names pages, and was named by another source",
}


_ORIGINS = {
    "uniform": "nothing is known, so the same for all",
    "by hand": "given by hand",
    "clicks": "from what was counted of this page and of all, older counts for less",
    "impressions": "from how often it was shown, older counts for less",
}


def in_words(told: Why) -> Iterator[tuple[str, str]]:
    """Heading and text of each paragraph."""
    yield "next visit", _next(told)
    yield "what holds it back", _BINDS[told.binds]
    yield "demand", _demand(told)
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
    if found.features:
        most = ", ".join(f"{name} {part:+.3g}" for name, part in found.features[:8])
        said.append(f"what features add to the model's score: {most}")
    return "; ".join(said)


def _price(told: Why, price: PriceView) -> str:
    if math.isinf(price.visit_price):
        return "at present all visits go to pages that were never visited"
    if math.isinf(price.worth):
        return "a first visit is worth any price"
    said = (
        f"a visit must buy {price.visit_price:.3g} demand-weighted days of freshness per visit "
        f"of cost, and buys {price.worth:.3g} in the coming tick at a cost of {price.cost:g}"
    )
    if price.needed > price.visit_price:
        said += f"; the budget of the coming tick ends at visits that buy {price.needed:.3g}"
    if told.binds not in ("price", "budget"):
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
