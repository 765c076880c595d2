"""Laws of stores: one crawler at a time, and histories that were made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from salticus.checks.store_samples import NOON, URLS, filled, outcomes, record, visit
from salticus.errors import InputError, StoreLocked
from salticus.store.base import History, Store
from salticus.types import Ints, NewPage, Observation, Value

_DAY = 86_400_000_000


async def _locks_out_others(store: Store) -> None:
    assert await store.holder() is None, "law: nobody holds the lock of a new store"
    async with store.lock():
        assert await store.holder(), "law: it is known who holds the lock"
        try:
            async with store.lock():
                raise AssertionError("law: a store has one crawler at a time")
        except StoreLocked:
            pass
        await filled(store)
        assert (await store.summary()).pages == 4, "law: the lock keeps out crawlers, not readers"
    assert await store.holder() is None, "law: a lock ends with its holder"
    async with store.lock():
        pass


async def _is_well(store: Store) -> None:
    await filled(store)
    assert (await store.health()).wrong is None, "law: a new store is well"


def _past(*seen: Observation) -> History:
    """Visits whose page is the place among the pages that came."""

    def history(ids: Ints) -> Iterable[Sequence[Observation]]:
        for each in seen:
            each.page = int(ids[each.page])
            yield [each]

    return history


async def _loads_a_history(store: Store) -> None:
    pages = [[NewPage(URLS[1], kind="offer")], [NewPage(URLS[0]), NewPage(URLS[1])]]
    old = visit(0, 1, at=NOON - 2, value=Value("page", "text"))
    new = visit(0, 0, at=NOON - 1, changed=True)
    found = await store.load(pages, _past(old, new), at=NOON, most=5)
    assert (found.pages, found.visits) == (2, 2), "law: `load` counts what is new"
    assert found.first < found.end <= 0, "law: numbers above 0 are the planner's"
    told = await outcomes(store, *range(found.first, found.end))
    assert told.at.astype(np.int64).tolist() == [NOON - 2, NOON - 1], "law: visits in order"
    page, other = await store.page(URLS[0]), await store.page(URLS[1])
    assert (page.value, page.last_visit) == ("text", NOON - 2), "law: pages as the visits left them"
    assert (other.kind, other.changes, other.added) == ("offer", 1, NOON), "law: likewise"
    assert await store.changes(0) == [], "law: what was loaded is no news"
    again = (visit(0, 1, at=NOON - 2), visit(0, 1, at=NOON - 3))
    more = await store.load([[NewPage(URLS[1]), NewPage(URLS[0])]], _past(*again), at=NOON, most=2)
    assert (more.pages, more.visits) == (0, 1), "law: what is there already is passed over"
    assert more.end <= found.first, "law: no number is given twice"


async def _loads_what_is_older_behind(store: Store) -> None:
    one, two, *_ = await filled(store)
    now = visit(1, one, changed=True, value=Value("page", "new"), digest="n", etag="e", since=NOON)
    await record(store, now, visit(2, two, status="timeout", fault="slow"))
    past = [visit(0, k, at=NOON - _DAY, value=Value("page", "old"), digest="o") for k in (0, 1)]
    await store.load([[NewPage(URLS[0]), NewPage(URLS[1])]], _past(*past), at=NOON, most=2)
    page, other = await store.page(URLS[0]), await store.page(URLS[1])
    kept = (page.value, page.last_visit, page.last_answer, page.last_change, page.visits)
    assert kept == ("new", now.at, now.at, now.at, 2), "law: a later visit's state stays"
    (target, _) = await store.targets(np.array([one, two]))
    assert (target.digest, target.etag) == ("n", "e"), "law: digest and validators too"
    assert (other.status, other.fault) == ("timeout", "slow"), "law: a later failure stays"
    assert (other.value, other.last_answer) == ("old", NOON - _DAY), "law: what is new is taken up"


async def _loads_all_or_nothing(store: Store) -> None:
    one, *_ = await filled(store)
    await record(store, visit(1, one))

    def broken(ids: Ints) -> Iterable[Sequence[Observation]]:
        yield [visit(0, int(ids[0]), at=NOON - 1)]
        raise InputError("broken off")

    with suppress(InputError):
        await store.load([[NewPage("http://new.example/")]], broken, at=NOON, most=9)
    assert (await store.summary()).pages == 4, "law: a load is taken in whole or not at all"
    assert len(list(store.scan("visits"))) == 1, "law: likewise its visits"
    await record(store, visit(2, one))
    assert (await store.page(URLS[0])).visits == 2, "law: a load that fails does no harm"


RUN = (
    _locks_out_others,
    _is_well,
    _loads_a_history,
    _loads_what_is_older_behind,
    _loads_all_or_nothing,
)
