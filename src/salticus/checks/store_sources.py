"""Laws of stores about sources: what each look at one saw, and which pages are new."""

from __future__ import annotations

import numpy as np

from salticus.checks.store_samples import NOON, URLS, told, visit
from salticus.store.base import Store
from salticus.store.nouns import Query
from salticus.types import Entry, FoundPages, Looks, NewPage, Record

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
