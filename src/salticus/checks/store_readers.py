"""Laws of stores about what readers do: clicks, impressions, and clicks that ask for a visit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import numpy as np

from salticus.checks.store_samples import NOON, URLS, filled, record, visit
from salticus.store.base import Query, Store
from salticus.types import Count, NewPage, Record, Request

READERS: list[Callable[[Store], Awaitable[None]]] = []


def _law(law: Callable[[Store], Awaitable[None]]) -> Callable[[Store], Awaitable[None]]:
    READERS.append(law)
    return law


@_law
async def _counts_what_readers_do(store: Store) -> None:
    await store.add([NewPage(URLS[0]), NewPage(URLS[1])], at=NOON)
    first, second = [(await store.page(url)).page for url in URLS[:2]]
    hour = NOON - NOON % 3_600_000_000
    rows = [
        Count(URLS[0], NOON, clicks=2, impressions=9),
        Count(URLS[0], NOON + 1, clicks=1),
        Count(URLS[1], NOON + 3_600_000_000, impressions=4),
        Count("http://stranger.example/", NOON, clicks=7),
        Count("no URL at all", NOON, clicks=7),
    ]
    assert await store.count(rows) == 3, "law: rows of known pages are told"
    found = await store.counts()
    assert found.page.tolist() == [first, second], "law: an hour of a page is one row"
    assert (found.clicks.tolist(), found.impressions.tolist()) == ([3, 0], [9, 4]), "law: sums"
    assert found.at.view(np.int64).tolist() == [hour, hour + 3_600_000_000], "law: whole hours"
    assert len(await store.counts(found.last)) == 0, "law: nothing is counted twice"
    await store.count(rows[:1])
    later = await store.counts(found.last)
    assert (later.page.tolist(), later.clicks.tolist()) == ([first], [2]), "law: what is later"
    assert [(r["page_id"], r["clicks"]) for r in store.scan("demand")] == [(first, 5), (second, 0)]
    await store.forget(Query(url=URLS[0]))
    assert (await store.counts()).page.tolist() == [second], "law: forgotten with its page"
    await store.prune(NOON + 2 * 3_600_000_000)
    assert not len(await store.counts()), "law: pruned with the visits"
    await store.count([Count(URLS[1], NOON, clicks=1)])
    assert (await store.counts(later.last)).clicks.tolist() == [1], "law: numbers are used once"


@_law
async def _counts_what_moved_where_it_is(store: Store) -> None:
    await store.add([NewPage(URLS[0]), NewPage(URLS[1])], at=NOON)
    old, new = [(await store.page(url)).page for url in URLS[:2]]
    await store.record([Record(visit(1, old), moved=URLS[1])])
    await store.count([Count(URLS[0], NOON, clicks=1)])
    assert (await store.counts()).page.tolist() == [new], "law: clicks follow a page that moved"
    asked = [URLS[0], "http://stranger.example/", "no URL", URLS[1]]
    assert (await store.ids(asked)).tolist() == [new, -1, -1, new], "law: so do questions by URL"


@_law
async def _keeps_requests(store: Store) -> None:
    await store.add([NewPage(URLS[0])], at=NOON)
    page = (await store.page(URLS[0])).page
    asked = [
        Request(4, page, NOON, 0.1 + 0.2, 1 / 3, sent=True, visit=7),
        Request(9, page, NOON, 0.5, 0.25, sent=False),
    ]
    await store.ask(asked)
    assert await store.asked() == asked, "law: requests come back as they were"
    assert await store.asked(4) == asked[1:], "law: those after one"
    await store.ask([Request(4, page, NOON, 0.9, 0.9, sent=False)])
    assert await store.asked() == asked, "law: a number is stored once"
    assert [row["score"] for row in store.scan("requests")] == [0.1 + 0.2, 0.5]
    await store.prune(NOON + 1)
    assert not await store.asked(), "law: pruned with the visits"


@_law
async def _tells_later_visits(store: Store) -> None:
    page, *_ = await filled(store)
    await record(store, *[visit(number, page) for number in (3, 5, 10**15)])
    assert (await store.outcomes_after(3)).visit.tolist() == [5, 10**15], "law: higher numbers only"
    assert not len(await store.outcomes_after(10**15)), "law: none if there are none"
