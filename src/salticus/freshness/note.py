"""What is foretold of every tick as it is planned, and noted.

The predictor's opinion of all pages is cheap and biased; what exploring visits find is neither.
Both are kept, so that the second can correct the first (see `freshness.estimate`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from salticus.allocate.explore import explorable
from salticus.freshness.estimate import SPAN, drift_alert, drift_of
from salticus.store.base import FreshnessStore
from salticus.types import Floats, Gauge, Ints, Pages, Plan, Purpose, Sample, instant


class Gauging:
    """Notes every tick, and sounds an alarm when predictor and world part.

    Without a keeper it does nothing, as most simulations may. Cost: the exploring visits of the
    last days are read again.
    """

    def __init__(self, keeper: FreshnessStore | None = None) -> None:
        self.keeper = keeper

    async def note(self, noted: tuple[Gauge, Sample] | None) -> None:
        """Keep what was predicted for a tick that was planned, if anything was."""
        if self.keeper is None or noted is None:
            return
        tick, sample = noted
        await self.keeper.gauge(tick, sample)
        drift = drift_of(*await self.keeper.gauged(tick.at - SPAN, tick.at))
        if (alert := drift_alert(drift, tick.at)) is not None:
            await self.keeper.sound([alert])


def foretell(pages: Pages, plan: Plan, panel: Ints) -> Plan:
    """The plan with what is foretold of its visits.

    Nothing is foretold of pages of the `panel`: what a visit will find depends on the panel's
    last visit, of which the curves do not know.
    """
    rows = pages.rows(plan.page)
    first = np.isnat(pages.last_answer[rows])
    chance = pages.outdated(plan.due, rows)
    chance[first | np.isin(plan.page, panel)] = np.nan
    return replace(plan, chance=chance)


def gauge_of(pages: Pages, plan: Plan, panel: Ints) -> tuple[Gauge, Sample]:
    """The sums over all pages at the start of a tick, and the visits of its plan that explore.

    A page without a copy is out of date for certain. Staleness is looked at when the tick starts:
    whatever the policy does in the tick comes later, to pages that are explored and others alike.
    Pages of the panel count as the predictor thinks they would be without it.
    """
    stale = np.nan_to_num(pages.stale, nan=1.0)
    coins = explorable(pages) & ~np.isin(pages.ids, panel)
    rows = pages.rows(plan.page)
    own = plan.purpose != Purpose.PANEL
    ageing = _ageing(pages, plan, rows, stale)
    tick = Gauge(
        at=int(plan.tick.start.timestamp() * 1e6),
        days=plan.tick.days,
        pages=len(pages),
        demand=float(pages.demand.sum()),
        stale=float(stale.sum() + ageing.sum()),
        stale_demand=float(stale @ pages.demand + ageing @ pages.demand[rows]),
        coins=int(np.count_nonzero(coins)),
        coin_demand=float(pages.demand[coins].sum()),
        visits=float(pages.cost[rows[own]].sum()),
    )
    explores = np.flatnonzero((plan.purpose == Purpose.EXPLORE) & coins[rows])
    drawn = rows[explores]
    return tick, Sample(plan.visit[explores], stale[drawn], pages.demand[drawn])


def _ageing(pages: Pages, plan: Plan, rows: Ints, stale: Floats) -> Floats:
    """What the mean over a tick has of staleness beyond the mean of its start and end.

    A page visited at a random moment grows older before, and after it again: with growth h in a
    tick, ∫u(c + hu/2) + (1−u)²h/2 du is c/2 + h/3, the mean of start and end c/2 + h/4.
    """
    end = pages.outdated(instant(plan.tick.end), rows)
    return np.nan_to_num(np.maximum(end - stale[rows], 0.0)) / 12.0
