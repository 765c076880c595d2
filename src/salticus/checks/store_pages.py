"""Laws of stores about pages: added, moved, alike, named by a source, more than anyone wants."""

from __future__ import annotations

from typing import Any

import numpy as np

from salticus.checks.store_samples import NEW, NOON, URLS, record, refuses, resting, told, visit
from salticus.config import Caps
from salticus.errors import InputError, UnknownPage
from salticus.store.base import Store
from salticus.store.caps import MOST_NAMING
from salticus.store.nouns import Query
from salticus.types import Entry, NewPage, Record, Value


async def _empty_law_adds_pages(store: Store) -> None:
    new = NewPage(URLS[0], kind="offer", tags=("b", "a"), max_interval=0.1, demand=2.5)
    assert await store.add([new, NewPage(URLS[1])], at=NOON) == 2, "law: `add` counts new pages"
    again = NewPage(f"{URLS[0]}#top".upper().replace("OFFER", "offer"), tags=("c",), demand=3.5)
    assert await store.add([again, again], at=NOON + 1) == 0, "law: one URL is one page"
    assert (await store.summary()).pages == 2, "law: `summary` counts pages"
    page = await store.page(URLS[0])
    assert (page.url, page.host) == (URLS[0], "shop0.example:8080"), "law: URLs are canonical"
    assert page.added == NOON, "law: a known page keeps the time it was added"
    assert (page.kind, page.max_interval) == ("offer", 0.1), "law: what is not given stays"
    assert (page.tags, page.demand) == (["a", "b", "c"], 3.5), "law: what is given is set"
    assert page.last_visit is None, "law: a new page was never visited"


async def _empty_law_refuses_wrong_urls(store: Store) -> None:
    for url in ("ftp://example.org/", "example.org", "http://", "http://a b/", ""):
        add = store.add([NewPage(URLS[0]), NewPage(url)], at=NOON)
        await refuses(add, InputError, f"{url!r} is refused with InputError")
    assert (await store.summary()).pages == 0, "law: nothing is added when one URL is wrong"
    law = "a page that is not in the store raises UnknownPage"
    await refuses(store.page(URLS[0]), UnknownPage, law)


async def _law_tells_edits(store: Store, *_: int) -> None:
    first = await store.table()
    assert len(first.ids) == 4, "law: `table` has all pages"
    assert np.all(np.diff(first.ids) > 0), "law: `table` is ordered by id"
    assert list(first.added.astype(np.int64)) == [NOON] * 4, "law: `table` knows when"
    assert np.all(np.isnat(first.last_visit)), "law: NaT is never"
    assert np.all(np.isinf(first.max_interval)), "law: inf is no maximum interval"
    await record(store, visit(1, int(first.ids[1])))
    after = await store.table(first.revision)
    assert len(after.ids) == 0, "law: a visit is not an edit"
    await store.add([NewPage(URLS[2], max_interval=0.25), NewPage("http://new.example/")], at=NOON)
    after = await store.table(first.revision)
    assert after.host == ["shop0.example:8080", "new.example"], "law: `table` sees edits"
    assert list(after.max_interval) == [0.25, np.inf], "law: `table` sees the new settings"
    last = await store.table()
    assert last.last_visit[1] == np.datetime64(NOON + 1, "us"), "law: `table` sees visits"


async def _law_gives_targets_in_order(store: Store, *_: int) -> None:
    ids = (await store.table()).ids[[2, 0, 3, 2]]
    targets = await store.targets(ids)
    assert [t.page for t in targets] == ids.tolist(), "law: targets in the order given"
    assert [t.url for t in targets] == [URLS[n] for n in (2, 0, 3, 2)], "law: ids are pages"
    assert await store.targets(ids[:0]) == [], "law: no pages, no targets"


async def _empty_law_follows_what_moved(store: Store) -> None:
    settings = NewPage(URLS[0], "offer", ("books",), max_interval=2.0, demand=3.0)
    await store.add([settings, NewPage(URLS[1])], at=NOON)
    old = (await store.page(URLS[0])).page
    before = (await store.table()).revision
    await told(store, 1, old, moved="HTTP://New.example#top")
    assert len((await store.table()).ids) == 3, "law: where a page has moved to is added"
    new = await store.page(NEW)
    kept = (new.kind, new.tags, new.max_interval, new.demand)
    assert kept == ("offer", ["books"], 2.0, 3.0), "law: a moved page keeps its settings"
    assert (await store.page(URLS[0])).moved == NEW, "law: a page tells where it has moved"
    assert (await store.page(URLS[0])).state == "moved", "law: moved is a state"
    assert await resting(store) == [old], "law: only what has moved rests"
    assert (await store.table(before)).ids.tolist() == [old, new.page], "law: both are edited"
    await told(store, 2, new.page, moved=URLS[1])
    assert (await store.page(URLS[0])).moved == URLS[1], "law: the last of a chain is told"
    last = (await store.page(URLS[1])).page
    await told(store, 3, last, moved=URLS[0])
    assert (await store.page(URLS[1])).moved is None, "law: pages never move in a ring"
    await told(store, 4, last, moved=URLS[1])
    await told(store, 5, last, moved="mailto:me@shop.example")
    assert (await store.page(URLS[1])).moved is None, "law: a page never becomes itself or nothing"
    assert len((await store.table()).ids) == 3, "law: nothing else is added"


async def _law_keeps_what_was_asked_for_a_page_that_moves(store: Store, *pages: int) -> None:
    new, source, *_ = pages
    hand = NewPage("http://old.example/", tags=("watch",), max_interval=1.0, demand=5.0)
    await store.add([hand, NewPage(URLS[0], tags=("shop",), max_interval=9.0)], at=NOON)
    await told(store, 1, source, entries=(Entry(NEW),), complete=True)
    await told(store, 2, source, entries=(), complete=True)
    found = (await store.page(NEW)).page
    await record(store, *(visit(n, found, status="gone") for n in range(3, 9)))
    old = (await store.page(hand.url)).page
    await told(store, 10, old, moved=NEW)
    page = await store.page(NEW)
    assert page.page not in await resting(store), "law: what was added by hand is visited on"
    assert (page.idle, page.tags) == (0, ["watch"]), "law: tags go along, and it is not gone"
    await told(store, 11, found, moved=URLS[0])
    page = await store.page(URLS[0])
    settings = (page.page, page.tags, page.max_interval, page.demand)
    assert settings == (new, ["shop", "watch"], 1.0, 5.0), "law: more is asked for, not less"


async def _law_unites_pages_that_are_alike(store: Store, *pages: int) -> None:
    one, two, three, four = pages
    value = Value("page", "same")
    await record(store, *(visit(n, n, digest="same", value=value) for n in (one, two, three)))
    await told(store, 4, one, canonical=URLS[1])
    page = await store.page(URLS[0])
    assert (page.canonical, page.moved) == (URLS[1], None), "law: hosts are not united"
    await told(store, 5, four, canonical=URLS[2])
    assert (await store.page(URLS[3])).moved is None, "law: pages that differ are not united"
    await told(store, 6, one, canonical=URLS[2])
    assert (await store.page(URLS[0])).moved == URLS[2], "law: pages that are alike are united"
    await told(store, 7, three, canonical=URLS[0])
    assert (await store.page(URLS[2])).moved is None, "law: but not with one another in a ring"
    await told(store, 8, four, canonical=URLS[3])
    assert (await store.page(URLS[3])).canonical is None, "law: its own URL is no other name"


def _links(store: Store) -> list[dict[str, Any]]:
    return list(store.scan("links"))


async def _law_keeps_what_sources_name(store: Store, source: int, known: int, *_: int) -> None:
    await store.add([NewPage(URLS[0], kind="source", tags=("shop",))], at=NOON)
    new = Entry(NEW, "source", NOON, word="lastmod")
    entries = (new, Entry(NEW), Entry(URLS[1]), Entry("mailto:me"))
    await told(store, 1, source, entries=entries, complete=True)
    page = await store.page(NEW)
    found = (page.kind, page.tags, page.added, page.sources)
    expected = ("source", ["shop"], NOON + 1, [URLS[0]])
    assert found == expected, "law: an entry becomes a page, with the tags of its source"
    assert (await store.page(URLS[1])).kind is None, "law: a known page stays what it is"
    rows = [
        (r["source_id"], r["page_id"], r["appeared"], r["vanished"])
        for r in list(store.scan("links"))
    ]
    expected_links = [(source, known, NOON + 1, None), (source, page.page, NOON + 1, None)]
    assert rows == expected_links, "law: links are kept"
    signals = [(s["page_id"], s["kind"], s["value"]) for s in store.scan("signals")]
    time = "2026-01-01T12:00:00.123457+00:00"
    assert signals == [(page.page, "lastmod", time)], "law: a time told is a signal"
    await told(store, 2, source, entries=entries)
    assert len(list(store.scan("signals"))) == 1, "law: a time told again is none"
    for number, at in enumerate((NOON - 1, NOON, NOON + 5, None, NOON + 5), 3):
        await told(store, number, source, entries=(Entry(NEW, at=at),))
    times = [(s["at"], s["kind"]) for s in store.scan("signals")]
    assert times[1:] == [(NOON + 5, "feed")], "law: one signal for each newer time"


async def _law_rests_what_no_source_names(store: Store, source: int, other: int, *_: int) -> None:
    await told(store, 1, source, entries=(Entry(NEW), Entry(URLS[2])), complete=True)
    await told(store, 2, other, entries=(Entry(NEW),), complete=True)
    page = (await store.page(NEW)).page
    await told(store, 3, source, entries=(), complete=True)
    assert await resting(store) == [], "law: one source is enough, and by hand is for good"
    before = (await store.table()).revision
    await told(store, 4, other, entries=(Entry(URLS[2]),), complete=True)
    assert await resting(store) == [page], "law: what no source names rests"
    assert page in (await store.table(before)).ids, "law: coming to rest is an edit"
    assert (await store.page(NEW)).state == "unlisted", "law: unlisted is a state"
    vanished = [row["vanished"] for row in _links(store) if row["page_id"] == page]
    assert vanished == [NOON + 3, NOON + 4], "law: a link tells when it vanished"
    await told(store, 5, other, entries=(Entry(NEW),))
    assert await resting(store) == [], "law: what is named again rests no more"
    await told(store, 6, other, entries=())
    assert await resting(store) == [], "law: only a complete list ends a link"
    await told(store, 7, other, entries=(), complete=True)
    await store.add([NewPage(NEW)], at=NOON)
    assert await resting(store) == [], "law: what is added by hand rests no more"


async def _law_counts_idle_visits(store: Store, page: int, *_: int) -> None:
    vain = ("gone", "timeout", "soft_404", "lost", "disallowed", "unsafe")
    await record(store, *(visit(n, page, status=status) for n, status in enumerate(vain)))
    assert (await store.page(URLS[0])).idle == 4, "law: visits in vain are counted"
    assert (await store.page(URLS[0])).state == "gone", "law: gone is a state"
    assert (await store.table()).idle.tolist() == [4, 0, 0, 0], "law: `table` counts them too"
    await store.add([NewPage(URLS[0])], at=NOON)
    assert (await store.page(URLS[0])).idle == 0, "law: adding a page revives it"
    await record(store, visit(7, page, status="gone"), visit(8, page, status="not_modified"))
    assert (await store.page(URLS[0])).idle == 0, "law: an answer ends the count"


async def _read(store: Store, number: int, page: int, *paths: str) -> list[str]:
    """Let a source name the pages at these paths, and no others; the caps that are exceeded."""
    entries = tuple(Entry(f"http://{path}") for path in paths)
    await store.record([Record(visit(number, page), entries=entries, complete=True)])
    flooded = [alert for alert in await store.alerts() if alert.kind == "flood"]
    return [alert.fault.rpartition("caps.")[2] for alert in flooded]


async def _law_takes_up_no_more_links_than_a_source_may_have(store: Store, *pages: int) -> None:
    source, _, neighbour, _ = pages
    store.caps = Caps(source_links=3)
    many = [f"a.example/{n}" for n in range(5)]
    assert await _read(store, 1, source, *many[:3]) == [], "law: up to a cap all is taken up"
    capped = await _read(store, 2, source, *many[::-1])
    assert capped == ["source_links = 3"], "law: what a cap leaves out is an alert"
    assert len(_links(store)) == 3, "law: what a cap leaves out is not linked"
    assert len((await store.table()).ids) == 7, "law: what a cap leaves out is not added"
    assert await resting(store) == [], "law: what is linked stays so"
    await record(store, visit(3, source, etag="e"))
    (target,) = await store.targets(np.array([source]))
    assert target.etag is None, "law: a source of which something was left out is read again"
    assert await _read(store, 4, neighbour, many[0]) == ["source_links = 3"], (
        "law: a flood is not over because another source of the host is well"
    )
    capped = await _read(store, 5, source, many[0], many[4])
    assert capped == [], "law: links that vanish make room, and end the alert"
    await record(store, visit(6, source, etag="f"))
    assert (await store.targets(np.array([source])))[0].etag == "f", "law: then no more"


async def _law_takes_up_no_more_pages_than_caps_allow(store: Store, *pages: int) -> None:
    source, other, *_ = pages
    await _read(store, 1, source, "a.example/0", "a.example/1")
    store.caps = Caps(host_pages=3)
    found = ("a.example/1", "a.example/2", "a.example/3", "b.example/0")
    assert await _read(store, 2, other, *found) == ["host_pages = 3"], "law: hosts have a cap"
    table = await store.table()
    assert table.host.count("a.example") == 3, "law: no more pages are found on a host"
    assert "b.example" in table.host, "law: the caps of a host are not those of others"
    assert table.found.tolist() == [False] * 4 + [True] * 4, "law: `found` tells what was found"
    store.caps = Caps(source_pages=3)
    child = (await store.page("http://a.example/0")).page
    many = [f"c{n}.example/" for n in range(3)]
    assert "source_pages = 3" in await _read(store, 3, child, *many), (
        "law: what a found source names counts for the page added by hand that led to it"
    )
    await store.add([NewPage("http://a.example/1")], at=NOON)
    await _read(store, 4, child, *many)
    found_now = [host for host in (await store.table()).host if host.startswith("c")]
    assert len(found_now) == 2, "law: what is added by hand counts no longer"
    await store.forget(Query(url="http://c0.example/"))
    await _read(store, 5, child, *many[1:])
    assert (await store.page("http://c2.example/")).page, "law: what is forgotten makes room"


async def _law_keeps_no_more_links_of_a_host_than_it_may_have(store: Store, *pages: int) -> None:
    source, other, neighbour, _ = pages
    store.caps = Caps(host_links=4)
    await _read(store, 1, source, *(f"a.example/{n}" for n in range(3)))
    assert await _read(store, 2, neighbour, "a.example/0", "a.example/1") == ["host_links = 4"]
    assert len(_links(store)) == 4, "law: the sources of a host have no more links than the cap"
    await _read(store, 3, other, "a.example/0", "a.example/1")
    assert len(_links(store)) == 6, "law: the sources of other hosts have links of their own"


async def _empty_law_keeps_few_links_to_one_page(store: Store) -> None:
    urls = [f"http://a.example/{n}.xml" for n in range(MOST_NAMING + 4)]
    await store.add([NewPage(url, "source") for url in urls], at=NOON)
    sources = (await store.table()).ids.tolist()
    named = ("a.example/1", "a.example/2")
    for number, source in enumerate(sources, 1):
        assert await _read(store, number, source, *named) == [], "law: repetition is no alert"
    assert len(_links(store)) == MOST_NAMING * len(named), "law: sources that repeat add no links"
    await _read(store, 99, sources[0])
    assert await resting(store) == [], "law: but each that has a link may end it"
