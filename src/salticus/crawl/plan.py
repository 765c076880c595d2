"""The plan of a tick: pure. It reads the parts and changes nothing; `apply` does what it says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from salticus.allocate.capacity import less
from salticus.crawl.parts import Parts
from salticus.freshness.note import foretell, gauge_of
from salticus.predict.base import Meets
from salticus.types import (
    Draw,
    Floats,
    Gauge,
    Grant,
    Pages,
    Plan,
    Sample,
    Tick,
    Times,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a tick is to do: its plan, and all that follows from it for the parts.

    `pages` are those of the tick, with survival curves. `draws` are what each proposer drew, in
    their order, and the purse that was set aside for it. `gauge` is what is noted of the tick for
    figures without bias, with the visits that explore.
    """

    tick: Tick
    pages: Pages
    grant: Grant
    draws: tuple[tuple[Draw, Times], ...]
    plan: Plan
    gauge: tuple[Gauge, Sample] | None


def meet(parts: Parts, pages: Pages) -> Pages:
    """Let the parts meet the pages of a tick; these as policy and predictor see them."""
    pages = parts.panel.veil(pages)
    if isinstance(parts.predictor, Meets):
        parts.predictor.meet(pages, pages.tick.start)
    if parts.stepwise is not None:
        parts.stepwise.begin(pages)
    return pages


def decide(parts: Parts, pages: Pages, *, gauged: bool = False) -> Decision:
    """What the tick of these pages is to do, and to note if it is `gauged`. Changes nothing."""
    tick = pages.tick
    pages = replace(pages, survival=parts.predictor.survival(pages, tick.start))
    whole = grant = parts.ledger.grant(pages, tick)
    open_pages, draws, chosen = pages, [], []
    for proposer in parts.all_proposers:
        draw = proposer.draw(open_pages, grant, tick)
        grant, purse = grant.less(draw.reserve, tick.number)
        draws.append((draw, purse))
        chosen.append((proposer.purpose, draw))
        if not proposer.purpose.charged:
            open_pages = less(open_pages, draw.rows)
        elif len(draw.rows):
            grant = replace(grant, taken=np.union1d(grant.taken, draw.rows))
    plan = parts.planner.plan(open_pages, chosen, tick, grant)
    plan = foretell(pages, plan, parts.panel.pages_)
    gauge = gauge_of(open_pages, plan, parts.panel.pages_) if gauged else None
    return Decision(tick, open_pages, whole, tuple(draws), plan, gauge)


def keep(parts: Parts, decision: Decision) -> None:
    """Let proposers remember what they drew; something of every page, so not in the event loop."""
    for place, proposer in parts.keeping.items():
        proposer.keep(decision.pages, decision.draws[place][0])


def advance(parts: Parts, decision: Decision) -> None:
    """Let budget and numbers be what they are once the plan is made."""
    parts.ledger.open(decision.grant, decision.tick)
    pages, plan = decision.pages, decision.plan
    charge(parts, plan, pages.cost[pages.rows(plan.page)])
    parts.planner.number(decision.plan)


def apply(parts: Parts, decision: Decision) -> None:
    """Let all parts know what was decided: from now on it is so."""
    advance(parts, decision)
    for place, proposer in parts.urgent.items():
        proposer.open(decision.pages, decision.draws[place][1])
    if parts.stepwise is not None:
        parts.stepwise.adopt()


def charge(parts: Parts, visits: Plan, cost: Floats) -> None:
    """Let the budget pay for visits, of so much each, as far as it has to."""
    paid = parts.ledger.pays(visits.purpose)
    parts.ledger.spend(visits.visit[paid], cost[paid])


def hurry(parts: Parts, plan: Plan, cost: Floats) -> None:
    """Let the budget pay for visits that no tick has planned; later ones get higher numbers."""
    for part in (parts.insta, parts.discover):
        part.made(plan.visit)
    charge(parts, plan, cost)
