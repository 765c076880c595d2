"""Laws of stores about sites that name more pages than anyone wants."""

from __future__ import annotations

from typing import Any

import numpy as np

from salticus.checks.store_samples import NOON, filled, record, visit
from salticus.config import Caps
from salticus.store.base import Query, Store
from salticus.store.caps import MOST_NAMING
from salticus.types import Entry, NewPage, Record


def _links(store: Store) -> list[dict[str, Any]]:
    return list(store.scan("links"))


async def _resting(store: Store) -> list[int]:
    table = await store.table()
    return [int(page) for page in table.ids[table.rests]]


async def _read(store: Store, number: int, page: int, *paths: str) -> list[str]:
    """Let a source name the pages at these paths, and no others; the caps that are exceeded."""
    entries = tuple(Entry(f"http://{path}") for path in paths)
    await store.record([Record(visit(number, page), entries=entries, complete=True)])
    flooded = [alert for alert in await store.alerts() if alert.kind == "flood"]
    return [alert.fault.rpartition("caps.")[2] for alert in flooded]


async def _takes_up_no_more_links_than_a_source_may_have(store: Store) -> None:
    source, _, neighbour, _ = await filled(store)
    store.caps = Caps(source_links=3)
    many = [f"a.example/{n}" for n in range(5)]
    assert await _read(store, 1, source, *many[:3]) == [], "law: up to a cap all is taken up"
    assert await _read(store, 2, source, *many[::-1]) == ["source_links = 3"], (
        "law: what a cap leaves out is an alert"
    )
    assert len(_links(store)) == 3, "law: what a cap leaves out is not linked"
    assert len((await store.table()).ids) == 7, "law: what a cap leaves out is not added"
    assert await _resting(store) == [], "law: what is linked stays so"
    await record(store, visit(3, source, etag="e"))
    (target,) = await store.targets(np.array([source]))
    assert target.etag is None, "law: a source of which something was left out is read again"
    assert await _read(store, 4, neighbour, many[0]) == ["source_links = 3"], (
        "law: a flood is not over because another source of the host is well"
    )
    assert await _read(store, 5, source, many[0], many[4]) == [], (
        "law: links that vanish make room, and end the alert"
    )
    await record(store, visit(6, source, etag="f"))
    assert (await store.targets(np.array([source])))[0].etag == "f", "law: then no more"


async def _takes_up_no_more_pages_than_caps_allow(store: Store) -> None:
    source, other, *_ = await filled(store)
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
    assert sum(host.startswith("c") for host in (await store.table()).host) == 2, (
        "law: what is added by hand counts no longer"
    )
    await store.forget(Query(url="http://c0.example/"))
    await _read(store, 5, child, *many[1:])
    assert (await store.page("http://c2.example/")).page, "law: what is forgotten makes room"


async def _keeps_no_more_links_of_a_host_than_it_may_have(store: Store) -> None:
    source, other, neighbour, _ = await filled(store)
    store.caps = Caps(host_links=4)
    await _read(store, 1, source, *(f"a.example/{n}" for n in range(3)))
    assert await _read(store, 2, neighbour, "a.example/0", "a.example/1") == ["host_links = 4"]
    assert len(_links(store)) == 4, "law: the sources of a host have no more links than the cap"
    await _read(store, 3, other, "a.example/0", "a.example/1")
    assert len(_links(store)) == 6, "law: the sources of other hosts have links of their own"


async def _keeps_few_links_to_one_page(store: Store) -> None:
    urls = [f"http://a.example/{n}.xml" for n in range(MOST_NAMING + 4)]
    await store.add([NewPage(url, "source") for url in urls], at=NOON)
    sources = (await store.table()).ids.tolist()
    named = ("a.example/1", "a.example/2")
    for number, source in enumerate(sources, 1):
        assert await _read(store, number, source, *named) == [], "law: repetition is no alert"
    assert len(_links(store)) == MOST_NAMING * len(named), "law: sources that repeat add no links"
    await _read(store, 99, sources[0])
    assert await _resting(store) == [], "law: but each that has a link may end it"


CAPS = [
    _takes_up_no_more_links_than_a_source_may_have,
    _takes_up_no_more_pages_than_caps_allow,
    _keeps_no_more_links_of_a_host_than_it_may_have,
    _keeps_few_links_to_one_page,
]
