"""Laws of what a store keeps for the estimate of freshness."""

from __future__ import annotations

import numpy as np

from salticus.checks.store_samples import NOON, filled, record, visit
from salticus.store.base import Store
from salticus.types import Findings, Gauge, Member, Sample
from salticus.types.dates import HOUR_US


def _tick(at: int) -> Gauge:
    return Gauge(at, 1 / 12, 4, 1.5, 0.1 + 0.2, 1 / 3, 3, 0.7, 9.0)


def _sample(*visits: int) -> Sample:
    n = len(visits)
    return Sample(np.array(visits, dtype=np.int64), np.full(n, 0.1), np.arange(1.0, n + 1) / 3)


async def _found(store: Store) -> Findings:
    return (await store.gauged(0, NOON + 99 * HOUR_US))[1]


async def _keeps_gauges(store: Store) -> None:
    one, two, *_ = await filled(store)
    later = _tick(NOON + HOUR_US)
    for tick in (later, _tick(NOON)):
        await store.gauge(tick, _sample())
    await store.gauge(_tick(NOON), _sample(1, 2, 3))
    await record(
        store,
        visit(2, two, purpose="explore", propensity=1 / 7, chance=0.1, changed=True, since=NOON),
        visit(1, one, purpose="explore", propensity=0.3, status="timeout"),
        visit(4, one, propensity=0.3, changed=True, since=NOON),
    )
    ticks, found = await store.gauged(NOON, NOON + HOUR_US)
    assert ticks == [_tick(NOON)], "law: the gauges of a span, each once, exactly"
    assert found.page.tolist() == [one, two], "law: the sample as far as it was visited"
    assert found.propensity.tolist() == [0.3, 1 / 7], "law: propensities are kept"
    assert np.isnan(found.found[0]), "law: a failed visit finds nothing"
    assert found.found[1] == 1, "law: a changed page was out of date"
    assert np.array_equal(found.chance, [np.nan, 0.1], equal_nan=True), "law: chances are kept"
    assert found.demand.tolist() == [1 / 3, 2 / 3], "law: each visit has its own demand"
    assert (await store.gauged(NOON + 1, NOON + 2 * HOUR_US))[0] == [later], "law: spans"
    await store.prune(NOON + 1)
    ticks, found = await store.gauged(0, NOON + 2 * HOUR_US)
    assert ticks == [later], "law: `prune` takes old gauges"
    assert not len(found), "law: `prune` takes old samples"


async def _tells_gone_from_new(store: Store) -> None:
    one, two, three, four = await filled(store)
    await store.gauge(_tick(NOON + 10), _sample(11, 12, 13, 14))
    await record(
        store,
        visit(1, one, since=None),
        visit(2, two, status="gone"),
        visit(3, two, status="timeout"),
        visit(4, three, since=None),
        visit(11, one, status="gone"),
        visit(12, two, status="gone"),
        visit(13, three, changed=False, since=NOON + 4),
        visit(9, four, at=NOON + 12, since=None),
        visit(14, four, changed=False, since=NOON + 12),
    )
    assert (await _found(store)).found.tolist() == [1, 0, 0, 1], (
        "law: a copy is out of date if its page is newly gone, or new; the first visit tells"
    )


async def _keeps_the_panel(store: Store) -> None:
    one, two, three, _ = await filled(store)
    first = Member(one, "uniform, small hosts", 1 / 3, 1 / 6, NOON)
    await store.empanel([Member(two, "x", 1.0, 1.0, NOON)])
    await store.empanel([Member(three, "click", 2.5, 0.25, NOON + 2, NOON + 5), first])
    await record(
        store,
        visit(7, three, at=NOON - 1, digest="0"),
        visit(9, three, at=NOON + 1, digest="a"),
        visit(1, three, at=NOON + 3, digest="b", purpose="panel"),
        visit(2, one, digest="c", status="timeout"),
        visit(8, three, digest="d"),
        visit(4, two, digest="e"),
    )
    panel = await store.panel()
    assert [m.page for m in panel] == [one, three], "law: a new panel is in place of the old"
    assert panel[0] == first, "law: members are kept exactly"
    seen = [(s.page, s.purpose, s.digest) for s in await store.sightings()]
    expected = [(one, "policy", None), (three, "policy", "a"), (three, "panel", "b")]
    assert seen == expected, "law: what visits saw of members, from the copy that they had on"


GAUGES = (_keeps_the_panel, _keeps_gauges, _tells_gone_from_new)
