"""From the chosen pages to the plan of a tick: an id and a due time for every visit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from salticus.types import Draw, Floats, Grant, Ints, Pages, Plan, Purpose, Tick, Times, instant
from salticus.types.coins import coins
from salticus.types.state import State, later


class Planner:
    """Numbers the visits and spreads them over the tick.

    Laws: visit ids are never used twice; each host's visits are spread evenly over the tick, in an
    order that is a hash of (seed, page, tick); a page with a fixed interval is due when that ends,
    if it does so within the tick; no visit is due before the ledger releases it.
    With `at_once` everything is due at the start, for runs that end when the work is done.
    """

    def __init__(self, *, seed: int = 0, at_once: bool = False) -> None:
        self.seed = seed
        self.at_once = at_once
        self.next_visit_ = 1

    def plan(
        self, pages: Pages, draws: Sequence[tuple[Purpose, Draw]], tick: Tick, grant: Grant
    ) -> Plan:
        """The visits that were drawn for each purpose; changes nothing (see `number`).

        A page drawn twice is visited once, for the later purpose, unless it is visited beside the
        budget. The grant covers the cost of the others.
        """
        charged = [(purpose, draw) for purpose, draw in draws if purpose.charged]
        rows, purpose, propensity = _once(charged)
        due = self._due(pages, rows, tick)
        order = np.argsort(due, kind="stable")
        paid = np.cumsum(pages.cost[rows[order]]).astype(np.int64) - 1
        plan = Plan(
            visit=np.arange(self.next_visit_, self.next_visit_ + len(rows)),
            page=pages.ids[rows[order]],
            due=np.maximum(due[order], grant.release[paid]),
            purpose=purpose[order].astype(np.int8),
            propensity=propensity[order],
            tick=tick,
        )
        beside = [(each, draw) for each, draw in draws if not each.charged and len(draw.rows)]
        for purpose_, draw in beside:
            plan = plan.join(self._beside(plan, pages, purpose_, draw))
        return plan.take(np.argsort(plan.due, kind="stable")) if beside else plan

    def number(self, plan: Plan) -> None:
        """The visits of this plan will be made: their numbers are taken."""
        self.next_visit_ = max(self.next_visit_, int(plan.visit.max(initial=-1)) + 1)

    def _beside(self, plan: Plan, pages: Pages, purpose: Purpose, draw: Draw) -> Plan:
        """Visits that no grant has to cover, at the times they are due if these lie in the tick."""
        start, end = instant(plan.tick.start), instant(plan.tick.end)
        first, n = self.next_visit_ + len(plan), len(draw.rows)
        due, wanted = self._due(pages, draw.rows, plan.tick), draw.due
        if len(wanted):
            due = np.where((wanted >= start) & (wanted < end), wanted, due)
        return Plan(
            visit=np.arange(first, first + n),
            page=pages.ids[draw.rows],
            due=due,
            purpose=np.full(n, purpose, dtype=np.int8),
            propensity=draw.propensity,
            tick=plan.tick,
        )

    def _due(self, pages: Pages, rows: Ints, tick: Tick) -> Times:
        start, end = instant(tick.start), instant(tick.end)
        if self.at_once:
            return np.full(len(rows), start)
        chance = coins(self.seed, pages.ids[rows], tick.number)
        length = (end - start).astype(np.int64)
        due = start + (spread(pages.host[rows], chance) * length).astype("m8[us]")
        pinned = np.flatnonzero(~np.isnan(pages.interval[rows]))
        ends = later(pages.last_visit[rows[pinned]], pages.interval[rows[pinned]])
        due[pinned] = np.where((ends >= start) & (ends < end), ends, due[pinned])
        return np.asarray(due)

    def state(self) -> State:
        return {"next_visit": np.array(self.next_visit_)}

    def restore(self, state: State) -> None:
        self.next_visit_ = int(state["next_visit"])


def spread(host: Ints, chance: Floats) -> Floats:
    """A place in [0, 1) for each visit, even within its host and shifted between hosts.

    >>> spread(np.array([4, 4, 9]), np.array([0.75, 0.25, 0.5])).tolist()
    [0.625, 0.125, 0.5]
    """
    order = np.lexsort((chance, host))
    ordered = host[order]
    first = np.searchsorted(ordered, ordered)
    count = np.searchsorted(ordered, ordered, side="right") - first
    place = np.empty(len(host))
    place[order] = (np.arange(len(host)) - first + chance[order][first]) / count
    return place


def _once(draws: Sequence[tuple[Purpose, Draw]]) -> tuple[Ints, Ints, Floats]:
    """Rows, purposes and propensities of all draws; of a row drawn twice the later."""
    none = np.empty(0, dtype=np.int64)
    rows = np.concatenate([none, *(draw.rows for _, draw in draws)])
    purpose = np.repeat([int(p) for p, _ in draws], [len(draw.rows) for _, draw in draws])
    propensity = np.concatenate([np.empty(0), *(draw.propensity for _, draw in draws)])
    _, back = np.unique(rows[::-1], return_index=True)
    last = np.sort(len(rows) - 1 - back)
    return rows[last], purpose[last].astype(np.int64), propensity[last]
