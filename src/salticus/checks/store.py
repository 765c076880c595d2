"""Laws that every store obeys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

import numpy as np

from salticus.checks import store_pages, store_people, store_sources
from salticus.checks.store_samples import NEW, NOON, URLS, filled, outcomes, record, refuses, visit
from salticus.errors import InputError, StoreError, StoreLocked
from salticus.store.base import Store
from salticus.store.nouns import History
from salticus.types import (
    CHANGED,
    UNCHANGED,
    UNKNOWN,
    Gauge,
    HostState,
    Ints,
    Member,
    NewPage,
    Observation,
    Outcomes,
    Record,
    Sample,
    Signal,
    Value,
)
from salticus.types.dates import DAY_US, HOUR_US

Make = Callable[[], Awaitable[Store]]


async def check_store(make: Make) -> None:
    """Run all laws of `Store` on stores from `make`, each empty; AssertionError names the law.

    They are the functions of this suite that are named ``_law_…``, which get a store with four
    pages and the ids of these, and ``_empty_law_…``, which get an empty one.

    >>> import asyncio
    >>> from salticus.testing import MemoryStore
    >>> async def make() -> Store:
    ...     return MemoryStore()
    >>> asyncio.run(check_store(make))
    """
    suites = (globals(), vars(store_pages), vars(store_people), vars(store_sources))
    for name, law in [one for suite in suites for one in suite.items()]:
        if name.startswith(("_law_", "_empty_law_")):
            store = await make()
            try:
                await law(store, *(await filled(store) if name.startswith("_law_") else ()))
            finally:
                await store.close()


# -------------------------------------------------------------------------------------- visits


async def _law_keeps_visits(store: Store, one: int, two: int, *_: int) -> None:
    failed = visit(2, two, status="timeout", fault="no answer", purpose="explore")
    failed.propensity, failed.chance = 0.1 + 0.2, 0.1 + 0.7
    changed = visit(1, one, changed=True, since=NOON - 5, age_s=1 / 3, value=Value("page", "text"))
    await store.record([Record(failed), Record(changed)])
    found = await outcomes(store, 3, 2, 1)
    expected = Outcomes.of([changed, failed])
    for name in Outcomes.__dataclass_fields__:
        same = np.array_equal(getattr(found, name), getattr(expected, name), equal_nan=True)
        assert same, f"law: a visit's `{name}` is kept, in order of visit"
    summary = await store.summary()
    counts = (summary.pages, summary.visited, summary.hosts, summary.visits, summary.answered)
    assert counts == (4, 2, 2, 2, 1), "law: `summary` counts"
    assert summary.by_status == {"ok": 1, "timeout": 1}, "law: pages by their last status"
    assert (summary.first, summary.last) == (changed.at, failed.at), "law: first and last visit"


async def _law_keeps_page_states(store: Store, one: int, two: int, *_: int) -> None:
    value = Value("offer", "12.50 EUR", {"title": "Kettle \N{HOT BEVERAGE}"})
    await record(store, visit(1, one, changed=True, value=value))
    await record(store, visit(2, two, status="timeout", fault="no answer"))
    page, other = await store.page(URLS[0]), await store.page(URLS[1])
    assert (page.value, page.fields) == (value.text, value.fields), "law: the value is kept"
    assert page.kind == "offer", "law: an unknown kind is that of the value"
    assert (page.visits, page.changes, page.failures) == (1, 1, 0), "law: visits are counted"
    assert page.last_change == page.last_answer == NOON + 1, "law: a change has its time"
    assert (other.status, other.fault) == ("timeout", "no answer"), "law: failures are told"
    assert (other.failures, other.last_answer) == (1, None), "law: a failure is no answer"


async def _law_keeps_a_visit_once(store: Store, one: int, two: int, *_: int) -> None:
    await record(store, visit(1, one))
    host = HostState("shop0.example", strikes=7)
    again = Record(visit(1, one, at=NOON + 9, changed=True), (host,))
    later = [visit(2, one, changed=True), visit(2, two), visit(3, one)]
    await store.record([again, *map(Record, later)])
    page = await store.page(URLS[0])
    assert (page.visits, page.changes) == (3, 1), "law: a visit is stored once"
    assert page.last_visit == NOON + 3, "law: a page's last visit counts, in the order given"
    assert (await store.page(URLS[1])).visits == 0, "law: the first record of a visit holds"
    assert await store.hosts() == [], "law: a repeated record is ignored entirely"
    assert len(list(store.scan("visits"))) == 3, "law: a visit is scanned once"


async def _law_keeps_all_or_nothing(store: Store, one: int, two: int, *others: int) -> None:
    good = [Record(visit(1, one), (HostState("shop0.example"),), b"body"), Record(visit(3, two))]
    wrong = store.record([good[0], Record(visit(2, max(others) + 99)), good[1]])
    await refuses(wrong, StoreError, "a visit to a page that is not in the store is refused")
    left = len(await outcomes(store, 1, 2, 3)) + len(await store.hosts())
    left += (await store.page(URLS[0])).visits + (await store.content(one) is not None)
    assert left == 0, "law: records are kept together or not at all"
    await store.record(good)
    assert len(await outcomes(store, 1, 3)) == 2, "law: a refusal does no harm"


async def _law_tells_unknown_from_unchanged(store: Store, *pages: int) -> None:
    told = (None, True, False)
    await record(store, *(visit(n, pages[n], changed=known) for n, known in enumerate(told)))
    found = (await outcomes(store, 0, 1, 2)).changed.tolist()
    assert found == [UNKNOWN, CHANGED, UNCHANGED], "law: unknown is not unchanged"
    scanned = [row["changed"] for row in store.scan("visits")]
    assert scanned == list(told), "law: unknown is not unchanged, also in exports"


async def _law_keeps_times_exactly(store: Store, page: int, *_: int) -> None:
    times = [NOON, NOON + 1, 1, 2**62]
    await record(store, *(visit(n, page, at=at, since=at - 1) for n, at in enumerate(times)))
    found = await outcomes(store, 0, 1, 2, 3)
    assert found.at.astype(np.int64).tolist() == times, "law: times are exact to the microsecond"
    assert np.all(found.at - found.since == np.timedelta64(1, "us")), "law: so is `since`"


async def _law_keeps_the_value_of_a_lost_page(store: Store, page: int, *_: int) -> None:
    value = Value("offer", "12.50 EUR")
    await record(store, visit(1, page, digest="d", value=value), visit(2, page, status="lost"))
    state = await store.page(URLS[0])
    assert state.value == "12.50 EUR", "law: a lost page keeps the value last known"
    assert (state.status, state.last_answer) == ("lost", NOON + 1), "law: lost is no answer"
    (target,) = await store.targets(np.array([page]))
    assert (target.digest, target.seen) == ("d", NOON + 1), "law: digest and time stay too"


async def _law_keeps_validators(store: Store, page: int, *_: int) -> None:
    await record(store, visit(1, page, etag='"1"', last_modified="yesterday"))
    await record(store, visit(2, page, status="not_modified"), visit(3, page, status="busy"))
    (target,) = await store.targets(np.array([page]))
    kept = (target.etag, target.last_modified)
    assert kept == ('"1"', "yesterday"), "law: an answer without news keeps the validators"
    await record(store, visit(4, page))
    (target,) = await store.targets(np.array([page]))
    assert (target.etag, target.last_modified) == (None, None), "law: a new answer replaces them"


async def _law_keeps_the_latest_content(store: Store, one: int, two: int, *_: int) -> None:
    assert await store.content(one) is None, "law: no content before a visit"
    bodies = [b"", b"old", b"<p>\xff\0" * 5000]
    html = [Record(visit(n, one), (), body, "text/html") for n, body in enumerate(bodies)]
    await store.record(html)
    await store.record([Record(visit(5, one)), Record(visit(6, two), (), b"", "text/plain")])
    assert await store.content(one) == (bodies[2], "text/html"), "law: the latest content is kept"
    assert await store.content(two) == (b"", "text/plain"), "law: empty content is content"


# -------------------------------------------------------------------------------------- the rest


async def _law_keeps_hosts_and_run_state(store: Store, page: int, *_: int) -> None:
    hosts = [
        HostState("a.example", 1_767_268_800.123457, 3, "Disallow: /\0\ud800", 200, 1e9 + 0.1),
        HostState("b.example"),
    ]
    older = HostState("a.example", 1.0, 1, "Disallow:", 200, 2.0)
    await store.record([Record(visit(1, page), (older,)), Record(visit(2, page), (hosts[1],))])
    await store.record([Record(visit(3, page), (older,)), Record(visit(4, page), (hosts[0],))])
    assert await store.hosts() == hosts, "law: hosts are kept as they were last"
    assert await store.recall() is None, "law: nothing is recalled before it is remembered"
    for state in (b"first", b"", bytes(range(256))):
        before = await store.stamp()
        await store.remember(iter((state[:3], state[3:])))
        assert await store.recall() == state, "law: run state is what was last remembered"
        assert (await store.stamp()).state != before.state, "law: another run state is noticed"
    before = await store.stamp()
    await record(store, visit(5, page))
    after = await store.stamp()
    assert after.data != before.data, "law: a visit is noticed"
    assert after.state == before.state, "law: the run state is left alone by visits"


async def _law_scans_in_order_of_time(store: Store, one: int, two: int, *_: int) -> None:
    texts = ["12.50", "long " * 1000, "odd \0 \ud800"]
    for n, text in enumerate(texts):
        await record(store, visit(9 - n, one, at=NOON + n, value=Value("page", text)))
    await record(store, visit(10, two, at=NOON - 1, status="gone"))
    values = [row["value"] for row in store.scan("values", page=one)]
    assert values == texts, "law: values are kept, of any length, in order of time"
    visits = [(row["page_id"], row["status"], row["value"]) for row in store.scan("visits")]
    expected = [(two, "gone", None), *((one, "ok", text) for text in texts)]
    assert visits == expected, "law: visits are scanned in order of time"
    assert [row["at"] for row in store.scan("visits", page=two)] == [NOON - 1], "law: of one page"
    assert [row["url"] for row in store.scan("pages")] == URLS, "law: pages in order of id"


async def _law_keeps_signals(store: Store, one: int, two: int, *_: int) -> None:
    await store.notice([Signal(one, NOON + 1, "feed", "x"), Signal(two, NOON, "click")])
    found = [(row["page_id"], row["kind"], row["value"]) for row in store.scan("signals")]
    expected = [(two, "click", None), (one, "feed", "x")]
    assert found == expected, "law: signals are kept, in order of time"


async def _law_prunes_only_the_old(store: Store, page: int, *_: int) -> None:
    await record(store, visit(1, page, value=Value("page", "text")), visit(2, page))
    await store.notice([Signal(page, NOON, "click"), Signal(page, NOON + 2, "click")])
    assert await store.prune(NOON + 2) == 1, "law: `prune` tells how many visits went"
    assert (await outcomes(store, 1, 2)).visit.tolist() == [2], "law: the young stay"
    assert len(list(store.scan("signals"))) == 1, "law: old signals go too"
    state = await store.page(URLS[0])
    assert (state.visits, state.value) == (2, "text"), "law: page states stay"
    assert len(list(store.scan("values"))) == 1, "law: values stay"


async def _empty_law_locks_out_others(store: Store) -> None:
    assert await store.holder() is None, "law: nobody holds the lock of a new store"
    async with store.lock():
        assert await store.holder(), "law: it is known who holds the lock"
        second = store.lock().__aenter__()
        await refuses(second, StoreLocked, "a store has one crawler at a time")
        await filled(store)
        assert (await store.summary()).pages == 4, "law: the lock keeps out crawlers, not readers"
    assert await store.holder() is None, "law: a lock ends with its holder"
    async with store.lock():
        pass


async def _law_is_well(store: Store, *_: int) -> None:
    assert (await store.health()).wrong is None, "law: a new store is well"


def _past(*seen: Observation) -> History:
    """Visits whose page is the place among the pages that came."""

    def history(ids: Ints) -> Iterable[Sequence[Observation]]:
        for each in seen:
            each.page = int(ids[each.page])
            yield [each]

    return history


async def _empty_law_loads_a_history(store: Store) -> None:
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


async def _law_loads_what_is_older_behind(store: Store, one: int, two: int, *_: int) -> None:
    now = visit(1, one, changed=True, value=Value("page", "new"), digest="n", etag="e", since=NOON)
    await record(store, now, visit(2, two, status="timeout", fault="slow"))
    past = [visit(0, k, at=NOON - DAY_US, value=Value("page", "old"), digest="o") for k in (0, 1)]
    await store.load([[NewPage(URLS[0]), NewPage(URLS[1])]], _past(*past), at=NOON, most=2)
    page, other = await store.page(URLS[0]), await store.page(URLS[1])
    kept = (page.value, page.last_visit, page.last_answer, page.last_change, page.visits)
    assert kept == ("new", now.at, now.at, now.at, 2), "law: a later visit's state stays"
    (target,) = await store.targets(np.array([one]))
    assert (target.digest, target.etag) == ("n", "e"), "law: digest and validators too"
    assert (other.status, other.fault) == ("timeout", "slow"), "law: a later failure stays"
    new = (other.value, other.last_answer)
    assert new == ("old", NOON - DAY_US), "law: what is new is taken up"


async def _law_loads_all_or_nothing(store: Store, one: int, *_: int) -> None:
    await record(store, visit(1, one))

    def broken(ids: Ints) -> Iterable[Sequence[Observation]]:
        yield [visit(0, int(ids[0]), at=NOON - 1)]
        raise InputError("broken off")

    load = store.load([[NewPage(NEW)]], broken, at=NOON, most=9)
    await refuses(load, InputError, "a load that breaks off is told of")
    assert (await store.summary()).pages == 4, "law: a load is taken in whole or not at all"
    assert len(list(store.scan("visits"))) == 1, "law: likewise its visits"
    await record(store, visit(2, one))
    assert (await store.page(URLS[0])).visits == 2, "law: a load that fails does no harm"


def _tick(at: int) -> Gauge:
    return Gauge(at, 1 / 12, 4, 1.5, 0.1 + 0.2, 1 / 3, 3, 0.7, 9.0)


def _sample(*visits: int) -> Sample:
    n = len(visits)
    return Sample(np.array(visits, dtype=np.int64), np.full(n, 0.1), np.arange(1.0, n + 1) / 3)


async def _law_keeps_gauges(store: Store, one: int, two: int, *_: int) -> None:
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


async def _law_tells_gone_from_new(store: Store, one: int, two: int, three: int, four: int) -> None:
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
    _, found = await store.gauged(0, NOON + 99 * HOUR_US)
    assert found.found.tolist() == [1, 0, 0, 1], (
        "law: a copy is out of date if its page is newly gone, or new; the first visit tells"
    )


async def _law_keeps_the_panel(store: Store, one: int, two: int, three: int, _: int) -> None:
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
