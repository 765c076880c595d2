"""Laws that every store obeys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import numpy as np

from salticus.checks.store_caps import CAPS
from salticus.checks.store_gauges import GAUGES
from salticus.checks.store_news import NEWS
from salticus.checks.store_readers import READERS
from salticus.checks.store_run import RUN
from salticus.checks.store_samples import NOON, URLS, filled, outcomes, record, visit
from salticus.errors import InputError, StoreError, UnknownPage
from salticus.store.base import Store
from salticus.types import (
    CHANGED,
    UNCHANGED,
    UNKNOWN,
    HostState,
    NewPage,
    Outcomes,
    Record,
    Signal,
    Value,
)

Make = Callable[[], Awaitable[Store]]


async def check_store(make: Make) -> None:
    """Run all laws of `Store` on stores from `make`, each empty; AssertionError names the law.

    >>> import asyncio
    >>> from salticus.testing import MemoryStore
    >>> async def make() -> Store:
    ...     return MemoryStore()
    >>> asyncio.run(check_store(make))
    """
    for law in (
        _adds_pages,
        _refuses_wrong_urls,
        _tells_edits,
        _gives_targets_in_order,
        _keeps_visits,
        _keeps_page_states,
        _keeps_a_visit_once,
        _keeps_all_or_nothing,
        _tells_unknown_from_unchanged,
        _keeps_times_exactly,
        _keeps_the_value_of_a_lost_page,
        _keeps_validators,
        _keeps_the_latest_content,
        _keeps_hosts_and_run_state,
        _scans_in_order_of_time,
        _keeps_signals,
        _prunes_only_the_old,
        *NEWS,
        *CAPS,
        *READERS,
        *GAUGES,
        *RUN,
    ):
        store = await make()
        try:
            await law(store)
        finally:
            await store.close()


# --------------------------------------------------------------------------------------- pages


async def _adds_pages(store: Store) -> None:
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


async def _refuses_wrong_urls(store: Store) -> None:
    for url in ("ftp://example.org/", "example.org", "http://", "http://a b/", ""):
        try:
            await store.add([NewPage(URLS[0]), NewPage(url)], at=NOON)
        except InputError:
            continue
        raise AssertionError(f"law: {url!r} is refused with InputError")
    assert (await store.summary()).pages == 0, "law: nothing is added when one URL is wrong"
    try:
        await store.page(URLS[0])
    except UnknownPage:
        return
    raise AssertionError("law: a page that is not in the store raises UnknownPage")


async def _tells_edits(store: Store) -> None:
    await filled(store)
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


async def _gives_targets_in_order(store: Store) -> None:
    await filled(store)
    ids = (await store.table()).ids[[2, 0, 3, 2]]
    targets = await store.targets(ids)
    assert [t.page for t in targets] == ids.tolist(), "law: targets in the order given"
    assert [t.url for t in targets] == [URLS[n] for n in (2, 0, 3, 2)], "law: ids are pages"
    assert await store.targets(ids[:0]) == [], "law: no pages, no targets"


# -------------------------------------------------------------------------------------- visits


async def _keeps_visits(store: Store) -> None:
    one, two, *_ = await filled(store)
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


async def _keeps_page_states(store: Store) -> None:
    one, two, *_ = await filled(store)
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


async def _keeps_a_visit_once(store: Store) -> None:
    one, two, *_ = await filled(store)
    await record(store, visit(1, one))
    again = Record(
        visit(1, one, at=NOON + 9, changed=True), (HostState("shop0.example", strikes=7),)
    )
    later = [visit(2, one, changed=True), visit(2, two), visit(3, one)]
    await store.record([again, *map(Record, later)])
    page = await store.page(URLS[0])
    assert (page.visits, page.changes) == (3, 1), "law: a visit is stored once"
    assert page.last_visit == NOON + 3, "law: a page's last visit counts, in the order given"
    assert (await store.page(URLS[1])).visits == 0, "law: the first record of a visit holds"
    assert await store.hosts() == [], "law: a repeated record is ignored entirely"
    assert len(list(store.scan("visits"))) == 3, "law: a visit is scanned once"


async def _keeps_all_or_nothing(store: Store) -> None:
    one, two, *others = await filled(store)
    good = [Record(visit(1, one), (HostState("shop0.example"),), b"body"), Record(visit(3, two))]
    try:
        await store.record([good[0], Record(visit(2, max(others) + 99)), good[1]])
    except StoreError:
        pass
    else:
        raise AssertionError("law: a visit to a page that is not in the store is refused")
    left = len(await outcomes(store, 1, 2, 3)) + len(await store.hosts())
    left += (await store.page(URLS[0])).visits + (await store.content(one) is not None)
    assert left == 0, "law: records are kept together or not at all"
    await store.record(good)
    assert len(await outcomes(store, 1, 3)) == 2, "law: a refusal does no harm"


async def _tells_unknown_from_unchanged(store: Store) -> None:
    pages, told = await filled(store), (None, True, False)
    await record(store, *(visit(n, pages[n], changed=known) for n, known in enumerate(told)))
    found = (await outcomes(store, 0, 1, 2)).changed.tolist()
    assert found == [UNKNOWN, CHANGED, UNCHANGED], "law: unknown is not unchanged"
    scanned = [row["changed"] for row in store.scan("visits")]
    assert scanned == list(told), "law: unknown is not unchanged, also in exports"


async def _keeps_times_exactly(store: Store) -> None:
    page, *_ = await filled(store)
    times = [NOON, NOON + 1, 1, 2**62]
    await record(store, *(visit(n, page, at=at, since=at - 1) for n, at in enumerate(times)))
    found = await outcomes(store, 0, 1, 2, 3)
    assert found.at.astype(np.int64).tolist() == times, "law: times are exact to the microsecond"
    assert np.all(found.at - found.since == np.timedelta64(1, "us")), "law: so is `since`"


async def _keeps_the_value_of_a_lost_page(store: Store) -> None:
    page, *_ = await filled(store)
    value = Value("offer", "12.50 EUR")
    await record(store, visit(1, page, digest="d", value=value), visit(2, page, status="lost"))
    state = await store.page(URLS[0])
    assert state.value == "12.50 EUR", "law: a lost page keeps the value last known"
    assert (state.status, state.last_answer) == ("lost", NOON + 1), "law: lost is no answer"
    (target,) = await store.targets(np.array([page]))
    assert (target.digest, target.seen) == ("d", NOON + 1), "law: digest and time stay too"


async def _keeps_validators(store: Store) -> None:
    page, *_ = await filled(store)
    await record(store, visit(1, page, etag='"1"', last_modified="yesterday"))
    await record(store, visit(2, page, status="not_modified"), visit(3, page, status="busy"))
    (target,) = await store.targets(np.array([page]))
    kept = (target.etag, target.last_modified)
    assert kept == ('"1"', "yesterday"), "law: an answer without news keeps the validators"
    await record(store, visit(4, page))
    (target,) = await store.targets(np.array([page]))
    assert (target.etag, target.last_modified) == (None, None), "law: a new answer replaces them"


async def _keeps_the_latest_content(store: Store) -> None:
    one, two, *_ = await filled(store)
    assert await store.content(one) is None, "law: no content before a visit"
    bodies = [b"", b"old", b"<p>\xff\0" * 5000]
    await store.record(
        [Record(visit(n, one), (), body, "text/html") for n, body in enumerate(bodies)]
    )
    await store.record([Record(visit(5, one)), Record(visit(6, two), (), b"", "text/plain")])
    assert await store.content(one) == (bodies[2], "text/html"), "law: the latest content is kept"
    assert await store.content(two) == (b"", "text/plain"), "law: empty content is content"


# -------------------------------------------------------------------------------------- the rest


async def _keeps_hosts_and_run_state(store: Store) -> None:
    page, *_ = await filled(store)
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
        await store.remember(state)
        assert await store.recall() == state, "law: run state is what was last remembered"
        assert (await store.stamp()).state != before.state, "law: another run state is noticed"
    before = await store.stamp()
    await record(store, visit(5, page))
    after = await store.stamp()
    assert after.data != before.data, "law: a visit is noticed"
    assert after.state == before.state, "law: the run state is left alone by visits"


async def _scans_in_order_of_time(store: Store) -> None:
    one, two, *_ = await filled(store)
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


async def _keeps_signals(store: Store) -> None:
    one, two, *_ = await filled(store)
    await store.notice([Signal(one, NOON + 1, "feed", "x"), Signal(two, NOON, "click")])
    found = [(row["page_id"], row["kind"], row["value"]) for row in store.scan("signals")]
    expected = [(two, "click", None), (one, "feed", "x")]
    assert found == expected, "law: signals are kept, in order of time"


async def _prunes_only_the_old(store: Store) -> None:
    page, *_ = await filled(store)
    await record(store, visit(1, page, value=Value("page", "text")), visit(2, page))
    await store.notice([Signal(page, NOON, "click"), Signal(page, NOON + 2, "click")])
    assert await store.prune(NOON + 2) == 1, "law: `prune` tells how many visits went"
    assert (await outcomes(store, 1, 2)).visit.tolist() == [2], "law: the young stay"
    assert len(list(store.scan("signals"))) == 1, "law: old signals go too"
    state = await store.page(URLS[0])
    assert (state.visits, state.value) == (2, "text"), "law: page states stay"
    assert len(list(store.scan("values"))) == 1, "law: values stay"
