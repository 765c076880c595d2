"""Laws of stores about people: what they are told, what they do with pages, what readers click."""

from __future__ import annotations

import math

import numpy as np

from salticus.checks.store_samples import NEW, NOON, URLS, record, refuses, told, visit
from salticus.config import Scope
from salticus.errors import InputError, UnknownPage
from salticus.store.base import Store
from salticus.store.nouns import MOST_CLICKS, MOST_IMPRESSIONS, Edit, Query
from salticus.types import Alert, Count, Counted, Entry, Mark, NewPage, Record, Request, Told, Value
from salticus.types.dates import HOUR_US


async def _law_numbers_changes(store: Store, one: int, two: int, *_: int) -> None:
    values = [Value("offer", "1 EUR", {"price": "1"}), Value("offer", "long " * 999)]
    assert (await store.last_change(), await store.changes(0)) == (0, []), "law: none at first"
    await record(store, visit(5, one, value=values[0]), visit(6, two, value=values[1]))
    await record(store, visit(7, one), visit(8, one, changed=True, value=values[1]))
    found = await store.changes(0)
    assert [c.seq for c in found] == [1, 2, 3], "law: changes are numbered as they are stored"
    assert [c.page for c in found] == [one, two, one], "law: a new value is a change, once"
    expected = [(None, values[0]), (None, values[1]), (values[0], values[1])]
    assert [(c.before, c.after) for c in found] == expected, "law: before and after are told"
    assert [c.changed for c in found] == [None, None, True], "law: a first value is no change"
    assert [c.seq for c in await store.changes(1, limit=1)] == [2], "law: some at a time"
    assert await store.last_change() == 3, "law: the newest is known"
    assert await store.value(one) == values[1], "law: the latest value is kept"
    assert await store.value(10**6) is None, "law: what is not there has no value"
    places = [await store.done("me"), await store.done("me", 2), await store.done("you")]
    assert places == [0, 2, 0], "law: every reader has a place of its own"


async def _law_keeps_alerts(store: Store, page: int, *_: int) -> None:
    steps = [("blocked", False), ("layout", False), ("blocked", False), ("blocked", True)]
    for n, (kind, over) in enumerate([*steps, ("blocked", True), ("blocked", False)]):
        alert = Alert("shop0.example", kind, NOON + n, f"fault {n}", over)
        await told(store, n, page, alerts=(alert,))
    kept = [(a.kind, a.since, a.until, a.fault) for a in await store.alerts(past=True)]
    assert kept == [
        ("blocked", NOON, NOON + 3, "fault 2"),
        ("layout", NOON + 1, None, "fault 1"),
        ("blocked", NOON + 5, None, "fault 5"),
    ], "law: an alert lasts until it is over"
    assert len(await store.alerts()) == 2, "law: what lasts is told apart"


async def _law_keeps_what_feeds_tell(store: Store, page: int, *_: int) -> None:
    await record(store, visit(1, page))
    price = Told(URLS[0], NOON + 9, "acme", Value("offer", "9 EUR", {"price": "9"}))
    new = Told(NEW, NOON + 9, "acme", Value("offer", "8 EUR"))
    assert await store.told([price, new]) == 2, "law: what is told is counted"
    assert (await store.page(URLS[0])).told == price, "law: what a feed tells is kept"
    assert (await store.page(NEW)).kind == "offer", "law: a page that is told of is added"
    assert await store.told([price, new]) == 0, "law: what is told again leaves nothing"
    signals = [(s["kind"], s["value"]) for s in store.scan("signals", page=page)]
    assert signals == [("feed:acme", "9 EUR")], "law: what a feed tells is a signal"
    await record(store, visit(20, page, status="timeout"))
    assert (await store.page(URLS[0])).told == price, "law: a failure does not contradict it"
    await record(store, visit(21, page, status="not_modified"))
    assert (await store.page(URLS[0])).told is None, "law: an answer replaces what was told"
    assert await store.told([price]) == 0, "law: old news is no news"


async def _law_finds_pages(store: Store, *pages: int) -> None:
    await store.add([NewPage(URLS[2], "offer", ("books",), demand=2.0)], at=NOON)
    long = Value("page", "x" * 500)
    await record(store, visit(1, pages[0], value=long), visit(2, pages[1], status="gone"))
    asked = {
        Query(): [0, 2, 1, 3],
        Query(url="*offer/[12]"): [],
        Query(url="*/?", sort="added"): [0, 1, 2, 3],
        Query(host="shop1*"): [1, 3],
        Query(tag="books"): [2],
        Query(tag="book"): [],
        Query(kind="offer"): [2],
        Query(status="gone"): [1],
        Query(state="new", descending=True): [3, 2],
        Query(state="well"): [0],
        Query(sort="demand", descending=True, limit=2): [2, 0],
        Query(sort="last_visit"): [0, 1, 2, 3],
        Query(sort="last_visit", descending=True): [1, 0, 2, 3],
    }
    for query, expected in asked.items():
        found = [URLS.index(page.url) for page in await store.find(query)]
        assert found == expected, f"law: {query} finds what fits, in order"
    assert (await store.find(Query(status="ok")))[0].value == "x" * 200, "law: values are cut"
    for wrong in (Query(sort="size"), Query(state="fine")):
        law = "a query that makes no sense is refused with InputError"
        await refuses(store.find(wrong), InputError, law)


async def _law_edits_pages(store: Store, *pages: int) -> None:
    before = (await store.table()).revision
    edit = Edit(("b", "a"), ("c",), "offer", 2.0, 3.0, 4.0, True)
    assert await store.edit(Query(host="shop0*"), edit) == 2, "law: `edit` counts"
    page, table = await store.page(URLS[0]), await store.table(before)
    assert table.ids.tolist() == list(pages[::2]), "law: `table` sees what was edited"
    assert table.rests.all(), "law: a paused page rests"
    edited = (page.tags, page.kind, page.max_interval, page.demand, page.cost, page.state)
    assert edited == (["a", "b"], "offer", 2.0, 3.0, 4.0, "paused"), "law: what is given is set"
    back = Edit(remove_tags=("a",), max_interval=math.inf, cost=math.inf, paused=False)
    assert await store.edit(Query(tag="a"), back) == 2, "law: pages are edited by tag"
    page = await store.page(URLS[0])
    edited = (page.tags, page.kind, page.max_interval, page.demand, page.cost, page.state)
    assert edited == (["b"], "offer", None, 3.0, 1.0, "new"), "law: what is not given stays"


async def _law_charges_by_pattern(store: Store, *_: int) -> None:
    await store.edit(Query(url=URLS[3]), Edit(cost=7.0))
    costs = [(Scope("*/[12]"), 2.0), (Scope("http://shop0*"), 3.0)]
    await store.charge(costs)
    table = await store.table()
    assert table.cost.tolist() == [3.0, 2.0, 2.0, 7.0], "law: the first pattern that fits counts"
    await store.charge(costs)
    assert not len((await store.table(table.revision)).ids), "law: the same costs are no edit"
    await store.add([NewPage(NEW)], at=NOON)
    await store.charge([*costs, (Scope("*new*"), 5.0)])
    last = await store.table(table.revision)
    assert last.cost.tolist() == [5.0], "law: new pages are charged for too"
    await store.charge([])
    last = await store.table()
    assert last.cost.tolist() == [1.0, 1.0, 1.0, 7.0, 1.0], "law: 1 by default; no page is added"


async def _law_tells_patterns(store: Store, *pages: int) -> None:
    asked = np.array([*pages[::-1], 10**9])
    found = await store.fitting(asked, [Scope("*/[12]"), Scope("http://shop0*")])
    assert found.tolist() == [-1, 0, 0, 1, -1], "law: the first scope that a page is in is told"
    assert (await store.fitting(asked, [])).tolist() == [-1] * 5, "law: no scope, none fits"
    assert not len(await store.fitting(asked[:0], [Scope()])), "law: no pages, no places"
    await store.edit(Query(url=URLS[1]), Edit(add_tags=("dear",)))
    scopes = [Scope(tag="dear"), Scope(host="shop0*"), Scope("*/3", tag="dear"), Scope("*/3")]
    targets = {target.page: target for target in await store.targets(asked)}
    wanted = [
        next((k for k, s in enumerate(scopes) if page in targets and s.fits(targets[page])), -1)
        for page in asked.tolist()
    ]
    assert (await store.fitting(asked, scopes)).tolist() == wanted, "law: tags and hosts count"
    assert len(set(wanted)) == 4, "law: all of them"


async def _law_forgets_pages(store: Store, one: int, two: int, *others: int) -> None:
    entries = (Entry(NEW), Entry(URLS[0]))
    await store.record([Record(visit(1, one, value=Value("page", "text")), (), b"body")])
    await told(store, 2, two, entries=entries, complete=True, moved=URLS[0])
    before = (await store.table()).revision
    assert await store.forget(Query(url=URLS[0])) == 1, "law: `forget` counts"
    left = [*store.scan("visits", page=one), *store.scan("values"), *await store.changes(0)]
    assert (left, list(store.scan("links"))) == ([], []), "law: nothing is left of a forgotten page"
    assert await store.content(one) is None, "law: its content is gone"
    table = await store.table(before)
    gone = table.rests[table.ids == one]
    assert gone.tolist() == [True], "law: whoever keeps columns learns of it"
    assert one not in (await store.table()).ids, "law: others never hear of it"
    assert (await store.page(URLS[1])).moved is None, "law: what had become it is itself again"
    await store.record([Record(visit(3, one), moved=NEW), Record(visit(4, two))])
    visited = [row["page_id"] for row in store.scan("visits")]
    assert visited == [two, two], "law: a visit that was under way is ignored"
    targets = await store.targets(np.array([one, two]))
    assert [t.page for t in targets] == [two], "law: it can be visited no more"
    await refuses(store.page(URLS[0]), UnknownPage, "it is not known any more")
    await store.add([NewPage(URLS[0])], at=NOON)
    assert (await store.page(URLS[0])).page > max(others), "law: an id is never used again"


async def _law_counts_what_readers_do(store: Store, first: int, second: int, *_: int) -> None:
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
    (early,) = store.past_counts(found.last)
    assert (early.page.tolist(), early.last) == ([first, second], found.last), "law: up to a row"
    (every,) = store.past_counts(later.last)
    assert every.clicks.tolist() == [3, 2, 0], "law: past counts come in order of time"
    await store.forget(Query(url=URLS[0]))
    assert (await store.counts()).page.tolist() == [second], "law: forgotten with its page"
    await store.prune(NOON + 2 * HOUR_US)
    assert not len(await store.counts()), "law: pruned with the visits"
    await store.count([Count(URLS[1], NOON, clicks=1)])
    assert (await store.counts(later.last)).clicks.tolist() == [1], "law: numbers are used once"


async def _law_counts_what_moved_where_it_is(store: Store, old: int, new: int, *_: int) -> None:
    await told(store, 1, old, moved=URLS[1])
    await store.count([Count(URLS[0], NOON, clicks=1)])
    assert (await store.counts()).page.tolist() == [new], "law: clicks follow a page that moved"
    asked = [URLS[0], "http://stranger.example/", "no URL", URLS[1]]
    assert (await store.ids(asked)).tolist() == [new, -1, -1, new], "law: so do questions by URL"


async def _law_caps_what_one_hour_holds(store: Store, old: int, *_: int) -> None:
    await told(store, 1, old, moved=URLS[1])
    many = Count(URLS[0], NOON, clicks=MOST_CLICKS - 1, impressions=10**18)
    stranger = Count("http://stranger.example", NOON, clicks=1)
    found = await store.take([many, Count(URLS[1], NOON, clicks=-5), stranger])
    added = Counted(2, MOST_CLICKS - 1, MOST_IMPRESSIONS, ("http://stranger.example/",))
    assert found == added, "law: what was added is told"
    found = await store.take([Count(URLS[1], NOON, clicks=7), Count(URLS[0], NOON + 1, clicks=7)])
    assert (found.rows, found.clicks) == (2, 1), "law: an hour holds so many clicks and no more"
    assert (await store.take([many])).clicks == 0, "law: nothing is added to what is full"
    (row,) = store.scan("demand")
    assert (row["clicks"], row["impressions"]) == (MOST_CLICKS, MOST_IMPRESSIONS), "law: caps hold"


async def _empty_law_keeps_marks(store: Store) -> None:
    await store.add([NewPage(URLS[0])], at=NOON)
    marks = [Mark(5, "aa", "first.csv", NOON), Mark(9, "bb", "first.csv", NOON)]
    for mark in (*marks, marks[0]):
        await store.take([Count(URLS[0], NOON, clicks=1)], mark)
    await store.take([Count("http://stranger.example/", NOON, clicks=1)], Mark(12, "cc"))
    assert await store.marks() == marks, "law: each mark is kept once, if something was added"
    assert (await store.counts()).clicks.sum() == 3, "law: the counts are kept with them"


async def _law_keeps_requests(store: Store, page: int, *_: int) -> None:
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


async def _law_tells_later_visits(store: Store, page: int, *_: int) -> None:
    await record(store, *[visit(number, page) for number in (3, 5, 10**15)])
    assert (await store.outcomes_after(3)).visit.tolist() == [5, 10**15], "law: higher numbers only"
    assert not len(await store.outcomes_after(10**15)), "law: none if there are none"


async def _law_finds_offers(store: Store, one: int, two: int, three: int, four: int) -> None:
    fields = {"title": "Caf\xe9 cr\xe8me", "price": "9", "currency": "EUR", "brand": "Acme"}
    coffee, tea = Value("offer", "9 EUR", fields), Value("page", "x", {"title": "Acme Tea"})
    await record(store, visit(1, one, value=coffee), visit(2, two, value=tea))
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
    await record(store, visit(3, two, value=Value("page", "y", {"title": "Coffee"})))
    assert await ids("tea") == {three}, "law: old words find nothing"
    assert await ids("coffee") == {two}, "law: new words do"
    await store.edit(Query(url=URLS[1]), Edit(paused=True))
    await record(store, visit(4, three, status="gone"))
    await told(store, 5, one, moved=URLS[3])
    assert await ids("example") == set(), "law: what is paused, gone or moved is left out"
    await store.edit(Query(url=URLS[1]), Edit(paused=False))
    assert await ids("coffee") == {two}, "law: it comes back"
    await store.forget(Query(url=URLS[1]))
    assert await ids("coffee") == set(), "law: what is forgotten is not found"
