"""Laws of stores about what readers do: clicks, impressions, and clicks that ask for a visit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import numpy as np

from salticus.checks.store_samples import NOON, URLS, filled, record, visit
from salticus.store.base import MOST_CLICKS, MOST_IMPRESSIONS, Counted, Edit, Query, Store
from salticus.types import Count, Mark, NewPage, Record, Request, Told, Value
from salticus.types.dates import HOUR_US

READERS: list[Callable[[Store], Awaitable[None]]] = []


def _law(law: Callable[[Store], Awaitable[None]]) -> Callable[[Store], Awaitable[None]]:
    READERS.append(law)
    return law


@_law
async def _counts_what_readers_do(store: Store) -> None:
    await store.add([NewPage(URLS[0]), NewPage(URLS[1])], at=NOON)
    first, second = [(await store.page(url)).page for url in URLS[:2]]
    hour = NOON - NOON % HOUR_US
    rows = [
        Count(URLS[0], NOON, clicks=2, impressions=9),
        Count(URLS[0], NOON + 1, clicks=1),
        Count(URLS[1], NOON + HOUR_US, impressions=4),
        Count("http://stranger.example/", NOON, clicks=7),
        Count("no URL at all", NOON, clicks=7),
    ]
    assert await store.count(rows) == 3, "law: rows of known pages are told"
    found = await store.counts()
    assert found.page.tolist() == [first, second], "law: an hour of a page is one row"
    assert (found.clicks.tolist(), found.impressions.tolist()) == ([3, 0], [9, 4]), "law: sums"
    assert found.at.view(np.int64).tolist() == [hour, hour + HOUR_US], "law: whole hours"
    assert len(await store.counts(found.last)) == 0, "law: nothing is counted twice"
    await store.count(rows[:1])
    later = await store.counts(found.last)
    assert (later.page.tolist(), later.clicks.tolist()) == ([first], [2]), "law: what is later"
    assert [(r["page_id"], r["clicks"]) for r in store.scan("demand")] == [(first, 5), (second, 0)]
    await store.forget(Query(url=URLS[0]))
    assert (await store.counts()).page.tolist() == [second], "law: forgotten with its page"
    await store.prune(NOON + 2 * HOUR_US)
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
async def _caps_what_one_hour_holds(store: Store) -> None:
    await store.add([NewPage(URLS[0]), NewPage(URLS[1])], at=NOON)
    old, _ = [(await store.page(url)).page for url in URLS[:2]]
    await store.record([Record(visit(1, old), moved=URLS[1])])
    many = Count(URLS[0], NOON, clicks=MOST_CLICKS - 1, impressions=10**18)
    stranger = Count("http://stranger.example", NOON, clicks=1)
    found = await store.take([many, Count(URLS[1], NOON, clicks=-5), stranger])
    told = Counted(2, MOST_CLICKS - 1, MOST_IMPRESSIONS, ("http://stranger.example/",))
    assert found == told, "law: what was added is told"
    found = await store.take([Count(URLS[1], NOON, clicks=7), Count(URLS[0], NOON + 1, clicks=7)])
    assert (found.rows, found.clicks) == (2, 1), "law: an hour holds so many clicks and no more"
    assert (await store.take([many])).clicks == 0, "law: nothing is added to what is full"
    (row,) = store.scan("demand")
    assert (row["clicks"], row["impressions"]) == (MOST_CLICKS, MOST_IMPRESSIONS), "law: caps hold"


@_law
async def _keeps_marks(store: Store) -> None:
    await store.add([NewPage(URLS[0])], at=NOON)
    marks = [Mark(5, "aa", "first.csv", NOON), Mark(9, "bb", "first.csv", NOON)]
    for mark in (*marks, marks[0]):
        await store.take([Count(URLS[0], NOON, clicks=1)], mark)
    await store.take([Count("http://stranger.example/", NOON, clicks=1)], Mark(12, "cc"))
    assert await store.marks() == marks, "law: each mark is kept once, if something was added"
    assert (await store.counts()).clicks.sum() == 3, "law: the counts are kept with them"


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


# ---------------------------------------------------------------------------------- what they find


@_law
async def _finds_offers(store: Store) -> None:
    one, two, three, four = await filled(store)
    fields = {"title": "Caf\xe9 cr\xe8me", "price": "9", "currency": "EUR", "brand": "Acme"}
    await store.record([Record(visit(1, one, value=Value("offer", "9 EUR", fields)))])
    await store.record([Record(visit(2, two, value=Value("page", "x", {"title": "Acme Tea"})))])
    feed = Told(URLS[2], NOON, "acme", Value("offer", "5 EUR", {"title": "Teapot", "price": "5"}))
    await store.told([feed])
    (found,) = await store.search("acme CAFE")
    shown = (found.page, found.title, found.price, found.currency, found.last_answer, found.told)
    assert shown == (one, fields["title"], "9", "EUR", NOON + 1, None), "law: a hit tells the offer"
    (found,) = await store.search("teapot")
    assert (found.page, found.price, found.told) == (three, "5", feed), "law: feeds tell offers too"

    async def ids(words: str) -> set[int]:
        return {hit.page for hit in await store.search(words)}

    assert await ids("acme") == {one, two}, "law: every page with the words is found"
    assert await ids("te") == {two, three}, "law: the last word may be a beginning"
    assert await ids("te acme") == set(), "law: only the last"
    assert await ids("shop0 example teapot") == {three}, "law: pages are found by their URL"
    assert len(await store.search("acme", 1)) == 1, "law: so many at most"
    for odd in ("", " ", '"', "NOT", "a\0b", "acme OR", "(", "*", "\ud800", "^x:y", "a" * 10_000):
        assert await ids(odd) <= {one, two, three}, "law: any text may be asked for"
    await store.record([Record(visit(3, two, value=Value("page", "y", {"title": "Coffee"})))])
    assert await ids("tea") == {three}, "law: old words find nothing"
    assert await ids("coffee") == {two}, "law: new words do"
    await store.edit(Query(url=URLS[1]), Edit(paused=True))
    await store.record(
        [Record(visit(4, three, status="gone")), Record(visit(5, one), moved=URLS[3])]
    )
    assert await ids("example") == set(), "law: what is paused, gone or moved is left out"
    await store.edit(Query(url=URLS[1]), Edit(paused=False))
    assert await ids("coffee") == {two}, "law: it comes back"
    await store.forget(Query(url=URLS[1]))
    assert await ids("coffee") == set(), "law: what is forgotten is not found"
