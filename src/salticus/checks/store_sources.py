"""Laws of stores about sources: what each look at one saw, and which pages are new."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from salticus.checks.store_samples import NOON, URLS, told, visit
from salticus.config import Caps
from salticus.store.base import Store
from salticus.store.nouns import Query
from salticus.types import Entry, FoundPages, Looks, NewPage, Record
from salticus.types.dates import DAY_US

_NEWS = [f"http://news.example/{n}" for n in range(4)]


def _entries(*numbers: int) -> tuple[Entry, ...]:
    return tuple(Entry(_NEWS[n]) for n in numbers)


async def _sources(store: Store) -> None:
    """Let the first two pages be sources."""
    await store.add([NewPage(url, kind="source") for url in URLS[:2]], at=NOON)


def _counts(looks: Looks) -> list[tuple[int, ...]]:
    columns = (looks.source, looks.shown, looks.new, looks.kept, looks.gone)
    return [tuple(row) for row in np.stack(columns, axis=1).tolist()]


def _who(finds: FoundPages) -> list[tuple[int, int]]:
    return list(zip(finds.page.tolist(), finds.source.tolist(), strict=True))


async def _law_tells_what_looks_at_sources_saw(
    store: Store, source: int, other: int, page: int, *_: int
) -> None:
    await _sources(store)
    await told(store, 1, source, entries=_entries(0, 1))
    await told(store, 2, page, entries=_entries(0, 3))
    assert (await store.last_find()) == 0, "law: links of a first look are old"
    await told(store, 3, source, entries=_entries(1, 2))
    await told(store, 4, other, entries=_entries(2))
    await told(store, 5, source, looked=True)
    looks = await store.looks()
    expected = [(source, 2, 2, 0, 0), (source, 2, 1, 1, 1), (other, 1, 0, 0, 0)]
    assert _counts(looks) == [*expected, (source, 2, 0, 2, 0)], "law: looks tell what they saw"
    since = looks.since.view(np.int64)
    assert np.isnat(looks.since[[0, 2]]).all(), "law: a first look has none before it"
    assert since[[1, 3]].tolist() == [NOON + 1, NOON + 3], "law: a look knows the one before"
    new = (await store.page(_NEWS[2])).page
    finds = await store.finds()
    assert _who(finds) == [(new, source)], "law: a page counts for the first that shows it"
    stands = (await store.standing(np.array([new, page]))).view(np.int64)
    assert stands[0] == NOON + 5, "law: a source that is as it was shows its links"
    assert stands[1] == np.iinfo(np.int64).min, "law: a page that no source shows stands nowhere"
    (find,) = await store.news(0)
    told_of = (find.seq, find.url, find.source, find.at, find.since, find.fetched)
    assert told_of == (finds.last, _NEWS[2], URLS[0], NOON + 3, NOON + 1, None), "law: news tell"


async def _look(store: Store, number: int, page: int, at: int, *names: str) -> list[str]:
    """Let a source name pages at a time (µs after noon); the caps that leave some out."""
    seen = replace(visit(number, page), at=NOON + at)
    entries = tuple(Entry(f"http://a.example/{name}", kind="source") for name in names)
    await store.record([Record(seen, entries=entries)])
    return [alert.fault.rpartition("caps.")[2] for alert in await store.alerts()]


async def _law_takes_up_no_more_new_pages_of_a_visit_than_caps_allow(
    store: Store, source: int, *_: int
) -> None:
    await _sources(store)
    store.caps = Caps(visit_pages=2, day_pages=3)
    assert await _look(store, 1, source, 1, *"abcd") == [], "law: a first visit may import"
    assert await _look(store, 2, source, 2, *"abcdefg") == ["visit_pages = 2"], "law: others not"
    (alert,) = await store.alerts()
    assert alert.fault.startswith(f"{URLS[0]}: 1 of its entries"), "law: an alert names its source"
    assert len((await store.table()).ids) == 4 + 6, "law: what a cap leaves out is not added"
    assert await _look(store, 3, source, 3, *"ghi") == ["day_pages = 3"], "law: a day has a cap"
    assert len((await store.table()).ids) == 4 + 7, "law: up to it, pages are added"
    assert await _look(store, 4, source, DAY_US, *"hi") == [], "law: a new day, and all is well"
    assert len((await store.table()).ids) == 4 + 9, "law: what was left out can come later"


async def _law_imports_what_a_new_source_names(store: Store, source: int, *_: int) -> None:
    await _sources(store)
    store.caps = Caps(visit_pages=2, day_pages=3)
    await _look(store, 1, source, 1, "a", "b")
    first, second = [(await store.page(f"http://a.example/{name}")).page for name in "ab"]
    names = [f"{n}" for n in range(5)]
    assert await _look(store, 2, first, DAY_US, *names) == [], "law: sources of sources count too"
    many = [f"x{n}" for n in range(5)]
    assert await _look(store, 3, second, DAY_US + 2, *many) == ["visit_pages = 2"], (
        "law: a day after the first visit nothing is an import, whatever is visited first"
    )
    assert "day_pages = 3" in await _look(store, 4, source, DAY_US + 3, "y", "z"), (
        "law: a source and those that it names share a day"
    )
    moved = replace(visit(5, source), at=NOON + DAY_US + 4)
    await store.record([Record(moved, moved="http://new.example/")])
    other = (await store.page("http://new.example/")).page
    pages = len((await store.table()).ids)
    await _look(store, 6, other, DAY_US + 5, "u", "v")
    assert len((await store.table()).ids) == pages, "law: a source that moves starts no new day"


async def _law_numbers_looks_and_finds(store: Store, source: int, *_: int) -> None:
    await _sources(store)
    for number, shown in enumerate(((0,), (0, 1), (1, 2)), 1):
        await told(store, number, source, entries=_entries(*shown))
    looks, finds = await store.looks(limit=2), await store.finds(limit=1)
    later, after = await store.looks(looks.last), await store.finds(finds.last)
    assert (len(looks), len(later), len(finds), len(after)) == (2, 1, 1, 1), "law: by number"
    assert (await store.looks(later.last)).last == later.last, "law: no news, the same number"
    await store.record([Record(visit(3, source), entries=_entries(3))])
    assert await store.last_find() == after.last, "law: a visit that is stored again finds nothing"
    await store.prune(NOON + 10)
    assert len(await store.looks()) == 1, "law: the last look at a source is kept"
    await store.forget(Query(url=URLS[0]))
    left = len(await store.looks()), len(await store.finds())
    assert left == (0, 0), "law: nothing is left of a forgotten source"
    await store.add([NewPage(URLS[0], kind="source")], at=NOON)
    again = (await store.page(URLS[0])).page
    await told(store, 11, again, entries=())
    assert (await store.looks()).last > later.last, "law: numbers never come again"
