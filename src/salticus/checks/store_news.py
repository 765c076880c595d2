"""Laws of stores about what a visit says of other pages, and what people do with pages."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from salticus.checks.store_samples import NOON, URLS, filled, record, visit
from salticus.config import Scope
from salticus.errors import InputError, UnknownPage
from salticus.store.base import Edit, Query, Store
from salticus.types import Alert, Entry, NewPage, Record, Told, Value

NEW = "http://new.example/"
NEWS: list[Callable[[Store], Awaitable[None]]] = []


def _law(law: Callable[[Store], Awaitable[None]]) -> Callable[[Store], Awaitable[None]]:
    NEWS.append(law)
    return law


async def _told(store: Store, number: int, page: int, **said: Any) -> None:
    """Record a visit that says more than how its page is."""
    await store.record([Record(visit(number, page), **said)])


async def _resting(store: Store) -> list[int]:
    table = await store.table()
    return [int(page) for page in table.ids[table.rests]]


# -------------------------------------------------------------------------------- pages that move


@_law
async def _follows_what_moved(store: Store) -> None:
    settings = NewPage(URLS[0], "offer", ("books",), max_interval=2.0, demand=3.0)
    await store.add([settings, NewPage(URLS[1])], at=NOON)
    old = (await store.page(URLS[0])).page
    before = (await store.table()).revision
    await _told(store, 1, old, moved="HTTP://New.example#top")
    assert len((await store.table()).ids) == 3, "law: where a page has moved to is added"
    new = await store.page(NEW)
    kept = (new.kind, new.tags, new.max_interval, new.demand)
    assert kept == ("offer", ["books"], 2.0, 3.0), "law: a moved page keeps its settings"
    assert (await store.page(URLS[0])).moved == NEW, "law: a page tells where it has moved"
    assert (await store.page(URLS[0])).state == "moved", "law: moved is a state"
    assert await _resting(store) == [old], "law: only what has moved rests"
    assert (await store.table(before)).ids.tolist() == [old, new.page], "law: both are edited"
    await _told(store, 2, new.page, moved=URLS[1])
    assert (await store.page(URLS[0])).moved == URLS[1], "law: the last of a chain is told"
    last = (await store.page(URLS[1])).page
    await _told(store, 3, last, moved=URLS[0])
    assert (await store.page(URLS[1])).moved is None, "law: pages never move in a ring"
    await _told(store, 4, last, moved=URLS[1])
    await _told(store, 5, last, moved="mailto:me@shop.example")
    assert (await store.page(URLS[1])).moved is None, "law: a page never becomes itself or nothing"
    assert len((await store.table()).ids) == 3, "law: nothing else is added"


@_law
async def _keeps_what_was_asked_for_a_page_that_moves(store: Store) -> None:
    new, source, *_ = await filled(store)
    hand = NewPage("http://old.example/", tags=("watch",), max_interval=1.0, demand=5.0)
    await store.add([hand, NewPage(URLS[0], tags=("shop",), max_interval=9.0)], at=NOON)
    await _told(store, 1, source, entries=(Entry(NEW),), complete=True)
    await _told(store, 2, source, entries=(), complete=True)
    found = (await store.page(NEW)).page
    await record(store, *(visit(n, found, status="gone") for n in range(3, 9)))
    old = (await store.page(hand.url)).page
    await _told(store, 10, old, moved=NEW)
    page = await store.page(NEW)
    assert page.page not in await _resting(store), "law: what was added by hand is visited on"
    assert (page.idle, page.tags) == (0, ["watch"]), "law: tags go along, and it is not gone"
    await _told(store, 11, found, moved=URLS[0])
    page = await store.page(URLS[0])
    settings = (page.page, page.tags, page.max_interval, page.demand)
    assert settings == (new, ["shop", "watch"], 1.0, 5.0), "law: more is asked for, not less"


@_law
async def _unites_pages_that_are_alike(store: Store) -> None:
    one, two, three, four = await filled(store)
    value = Value("page", "same")
    await record(store, *(visit(n, n, digest="same", value=value) for n in (one, two, three)))
    await _told(store, 4, one, canonical=URLS[1])
    page = await store.page(URLS[0])
    assert (page.canonical, page.moved) == (URLS[1], None), "law: hosts are not united"
    await _told(store, 5, four, canonical=URLS[2])
    assert (await store.page(URLS[3])).moved is None, "law: pages that differ are not united"
    await _told(store, 6, one, canonical=URLS[2])
    assert (await store.page(URLS[0])).moved == URLS[2], "law: pages that are alike are united"
    await _told(store, 7, three, canonical=URLS[0])
    assert (await store.page(URLS[2])).moved is None, "law: but not with one another in a ring"
    await _told(store, 8, four, canonical=URLS[3])
    assert (await store.page(URLS[3])).canonical is None, "law: its own URL is no other name"


# ----------------------------------------------------------------------------------- sources


@_law
async def _keeps_what_sources_name(store: Store) -> None:
    source, known, *_ = await filled(store)
    await store.add([NewPage(URLS[0], kind="source", tags=("shop",))], at=NOON)
    new = Entry(NEW, "source", NOON, word="lastmod")
    entries = (new, Entry(NEW), Entry(URLS[1]), Entry("mailto:me"))
    await _told(store, 1, source, entries=entries, complete=True)
    page = await store.page(NEW)
    found = (page.kind, page.tags, page.added, page.sources)
    expected = ("source", ["shop"], NOON + 1, [URLS[0]])
    assert found == expected, "law: an entry becomes a page, with the tags of its source"
    assert (await store.page(URLS[1])).kind is None, "law: a known page stays what it is"
    links = [(r["source_id"], r["page_id"], r["appeared"], r["vanished"]) for r in scan(store)]
    expected_links = [(source, known, NOON + 1, None), (source, page.page, NOON + 1, None)]
    assert links == expected_links, "law: links are kept"
    signals = [(s["page_id"], s["kind"], s["value"]) for s in store.scan("signals")]
    time = "2026-01-01T12:00:00.123457+00:00"
    assert signals == [(page.page, "lastmod", time)], "law: a time told is a signal"
    await _told(store, 2, source, entries=entries)
    assert len(list(store.scan("signals"))) == 1, "law: a time told again is none"
    for number, at in enumerate((NOON - 1, NOON, NOON + 5, None, NOON + 5), 3):
        await _told(store, number, source, entries=(Entry(NEW, at=at),))
    told = [(s["at"], s["kind"]) for s in store.scan("signals")]
    assert told[1:] == [(NOON + 5, "feed")], "law: one signal for each newer time"


def scan(store: Store) -> list[dict[str, Any]]:
    """All links."""
    return list(store.scan("links"))


@_law
async def _rests_what_no_source_names(store: Store) -> None:
    source, other, *_ = await filled(store)
    await _told(store, 1, source, entries=(Entry(NEW), Entry(URLS[2])), complete=True)
    await _told(store, 2, other, entries=(Entry(NEW),), complete=True)
    page = (await store.page(NEW)).page
    await _told(store, 3, source, entries=(), complete=True)
    assert await _resting(store) == [], "law: one source is enough, and by hand is for good"
    before = (await store.table()).revision
    await _told(store, 4, other, entries=(Entry(URLS[2]),), complete=True)
    assert await _resting(store) == [page], "law: what no source names rests"
    assert page in (await store.table(before)).ids, "law: coming to rest is an edit"
    assert (await store.page(NEW)).state == "unlisted", "law: unlisted is a state"
    vanished = [row["vanished"] for row in scan(store) if row["page_id"] == page]
    assert vanished == [NOON + 3, NOON + 4], "law: a link tells when it vanished"
    await _told(store, 5, other, entries=(Entry(NEW),))
    assert await _resting(store) == [], "law: what is named again rests no more"
    await _told(store, 6, other, entries=())
    assert await _resting(store) == [], "law: only a complete list ends a link"
    await _told(store, 7, other, entries=(), complete=True)
    await store.add([NewPage(NEW)], at=NOON)
    assert await _resting(store) == [], "law: what is added by hand rests no more"


@_law
async def _counts_idle_visits(store: Store) -> None:
    page, *_ = await filled(store)
    vain = ("gone", "timeout", "soft_404", "lost", "disallowed", "unsafe")
    await record(store, *(visit(n, page, status=status) for n, status in enumerate(vain)))
    assert (await store.page(URLS[0])).idle == 4, "law: visits in vain are counted"
    assert (await store.page(URLS[0])).state == "gone", "law: gone is a state"
    assert (await store.table()).idle.tolist() == [4, 0, 0, 0], "law: `table` counts them too"
    await store.add([NewPage(URLS[0])], at=NOON)
    assert (await store.page(URLS[0])).idle == 0, "law: adding a page revives it"
    await record(store, visit(7, page, status="gone"), visit(8, page, status="not_modified"))
    assert (await store.page(URLS[0])).idle == 0, "law: an answer ends the count"


# ------------------------------------------------------------------------------- what is told


@_law
async def _numbers_changes(store: Store) -> None:
    one, two, *_ = await filled(store)
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
    assert [await store.done("me"), await store.done("me", 2), await store.done("you")] == [
        *(0, 2, 0)
    ], "law: every reader has a place of its own"


@_law
async def _keeps_alerts(store: Store) -> None:
    page, *_ = await filled(store)
    steps = [("blocked", False), ("layout", False), ("blocked", False), ("blocked", True)]
    for n, (kind, over) in enumerate([*steps, ("blocked", True), ("blocked", False)]):
        alert = Alert("shop0.example", kind, NOON + n, f"fault {n}", over)
        await _told(store, n, page, alerts=(alert,))
    kept = [(a.kind, a.since, a.until, a.fault) for a in await store.alerts(past=True)]
    assert kept == [
        ("blocked", NOON, NOON + 3, "fault 2"),
        ("layout", NOON + 1, None, "fault 1"),
        ("blocked", NOON + 5, None, "fault 5"),
    ], "law: an alert lasts until it is over"
    assert len(await store.alerts()) == 2, "law: what lasts is told apart"


@_law
async def _keeps_what_feeds_tell(store: Store) -> None:
    page, *_ = await filled(store)
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


# ------------------------------------------------------------------------------- what people do


@_law
async def _finds_pages(store: Store) -> None:
    pages = await filled(store)
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
        try:
            await store.find(wrong)
        except InputError:
            continue
        raise AssertionError("law: a query that makes no sense is refused with InputError")


@_law
async def _edits_pages(store: Store) -> None:
    pages = await filled(store)
    before = (await store.table()).revision
    edit = Edit(("b", "a"), ("c",), "offer", 2.0, 3.0, 4.0, True)
    assert await store.edit(Query(host="shop0*"), edit) == 2, "law: `edit` counts"
    page, table = await store.page(URLS[0]), await store.table(before)
    assert table.ids.tolist() == pages[::2], "law: `table` sees what was edited"
    assert table.rests.all(), "law: a paused page rests"
    edited = (page.tags, page.kind, page.max_interval, page.demand, page.cost, page.state)
    assert edited == (["a", "b"], "offer", 2.0, 3.0, 4.0, "paused"), "law: what is given is set"
    back = Edit(remove_tags=("a",), max_interval=math.inf, cost=math.inf, paused=False)
    assert await store.edit(Query(tag="a"), back) == 2, "law: pages are edited by tag"
    page = await store.page(URLS[0])
    edited = (page.tags, page.kind, page.max_interval, page.demand, page.cost, page.state)
    assert edited == (["b"], "offer", None, 3.0, 1.0, "new"), "law: what is not given stays"


@_law
async def _charges_by_pattern(store: Store) -> None:
    pages = await filled(store)
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
    assert (await store.table()).cost.tolist() == [1.0, 1.0, 1.0, 7.0, 1.0], "law: 1 by default"
    assert len(pages) == 4, "law: costs add no page"


@_law
async def _tells_patterns(store: Store) -> None:
    pages = await filled(store)
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


@_law
async def _forgets_pages(store: Store) -> None:
    one, two, *others = await filled(store)
    links = (Entry(NEW), Entry(URLS[0]))
    await store.record([Record(visit(1, one, value=Value("page", "text")), (), b"body")])
    await _told(store, 2, two, entries=links, complete=True, moved=URLS[0])
    before = (await store.table()).revision
    assert await store.forget(Query(url=URLS[0])) == 1, "law: `forget` counts"
    left = [*store.scan("visits", page=one), *store.scan("values"), *await store.changes(0)]
    assert (left, scan(store)) == ([], []), "law: nothing is left of a forgotten page"
    assert await store.content(one) is None, "law: its content is gone"
    table = await store.table(before)
    gone = table.rests[table.ids == one]
    assert gone.tolist() == [True], "law: whoever keeps columns learns of it"
    assert one not in (await store.table()).ids, "law: others never hear of it"
    assert (await store.page(URLS[1])).moved is None, "law: what had become it is itself again"
    await store.record([Record(visit(3, one), moved=NEW), Record(visit(4, two))])
    assert [row["page_id"] for row in store.scan("visits")] == [*(two, two)], (
        "law: a visit that was under way is ignored"
    )
    targets = await store.targets(np.array([one, two]))
    assert [t.page for t in targets] == [two], "law: it can be visited no more"
    try:
        await store.page(URLS[0])
    except UnknownPage:
        await store.add([NewPage(URLS[0])], at=NOON)
    assert (await store.page(URLS[0])).page > max(others), "law: an id is never used again"
