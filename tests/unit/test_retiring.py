"""Sources that are dead for long are retired once, with a reason, until they are well again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from salticus.allocate.leap import Leap
from salticus.checks.store_samples import visit as observed
from salticus.config import Config
from salticus.crawl.census import Census
from salticus.crawl.finders import make_census
from salticus.crawl.retiring import Retiring, discovery_of
from salticus.store.base import Store
from salticus.store.memory.store import MemoryStore
from salticus.store.nouns import AlertState, Query
from salticus.types import Entry, NewPage, Record, Tick, Value

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
GONE, QUIET, BUSY = (f"http://{name}.example/" for name in ("gone", "quiet", "busy"))


def tick(day: float) -> Tick:
    return Tick(0, START + day * DAY, START + day * DAY + timedelta(hours=2))


async def look(store: Store, url: str, day: float, *names: str, status: str = "ok") -> None:
    """A visit to a source that names pages."""
    page = await store.page(url)
    at = int((START + day * DAY).timestamp() * 1e6)
    value = Value("source", f"{len(names)} links", {"format": "rss", "links": str(len(names))})
    told = {"value": value, "digest": "x"} if status == "ok" else {"fault": "HTTP 404"}
    seen = observed(at // 10**4 + page.page, page.page, at=at, status=status, **told)
    entries = tuple(Entry(f"{url}{name}") for name in names) if status == "ok" else None
    await store.record([Record(seen, entries=entries, looked=status == "ok")])


async def opened() -> tuple[Store, Census]:
    store = MemoryStore()
    at = int(START.timestamp() * 1e6)
    await store.add([NewPage(url, kind="source") for url in (GONE, QUIET, BUSY)], at=at)
    return store, make_census(Config(), store)


async def days(store: Store, census: Census, begin: int, end: int, *, dead: Sequence[str]) -> None:
    """Every source is looked at once a day; those that are dead show nothing new, or are gone."""
    for day in range(begin, end):
        for url in (GONE, QUIET, BUSY):
            gone = url == GONE and url in dead
            names = ("old",) if url in dead else ("old", f"{url[7:9]}{day}")
            await look(store, url, day, *names, status="gone" if gone else "ok")
    await census.refresh()


def priced(price: float) -> Leap:
    policy = Leap()
    policy.price_ = price
    return policy


async def alerts(store: Store, *, past: bool = False) -> dict[str, AlertState]:
    return {alert.host: alert for alert in await store.alerts(past=past)}


def test_dead_sources_are_retired_once_and_come_back_when_they_are_well() -> None:
    async def main() -> None:
        store, census = await opened()
        policy = priced(1e3)  # nothing is worth that
        retiring = Retiring(store, census, policy, 30 * DAY)
        await days(store, census, 0, 5, dead=())
        await days(store, census, 5, 30, dead=(GONE, QUIET))
        await retiring.note(tick(30))
        assert await alerts(store) == {}, "not yet 30 days"
        await days(store, census, 30, 36, dead=(GONE, QUIET))
        await retiring.note(tick(30.9))
        assert await alerts(store) == {}, "once a day is enough"
        await retiring.note(tick(36))
        found = await alerts(store)
        assert {url: alert.fault for url, alert in found.items()} == {
            GONE: "no answer since 2026-01-05: HTTP 404",
            QUIET: "no new link since 2026-01-05, and never worth the visit price",
        }
        policy.price_ = 0.0
        await retiring.note(tick(37.5))
        again = Retiring(store, census, policy, 30 * DAY)  # as after a restart
        await again.note(tick(38))
        assert await alerts(store) == found, "told once; a lower price does not end it"
        await days(store, census, 38, 39, dead=())
        await again.note(tick(39.5))
        assert await alerts(store) == {}
        assert len(await store.alerts(past=True)) == 2, "what was is kept"

    asyncio.run(main())


@pytest.mark.parametrize("price", [0.0, np.nan])
def test_what_is_worth_a_visit_or_has_no_price_yet_is_not_retired(price: float) -> None:
    async def main() -> None:
        store, census = await opened()
        await days(store, census, 0, 40, dead=(QUIET,))
        await Retiring(store, census, priced(price), 30 * DAY).note(tick(40))
        assert await alerts(store) == {}

    asyncio.run(main())


def test_the_alert_of_a_source_that_was_forgotten_is_over() -> None:
    async def main() -> None:
        store, census = await opened()
        await days(store, census, 0, 40, dead=(QUIET, GONE))
        retiring = Retiring(store, census, priced(1e3), 30 * DAY)
        await retiring.note(tick(40))
        page = await store.page(GONE)
        await store.forget(Query(url=page.url))
        await retiring.note(tick(41))
        assert set(await alerts(store)) == {QUIET}

    asyncio.run(main())


def test_where_sources_were_looked_for_long_ago_is_told_until_they_are_looked_for() -> None:
    async def main() -> None:
        store, census = await opened()
        retiring = Retiring(store, census, priced(1.0), 30 * DAY)
        await retiring.note(tick(1))
        assert await alerts(store) == {}, "sites of which the sources were added by hand are none"
        await store.done(discovery_of(BUSY), int(START.timestamp() * 1e6))
        await retiring.note(tick(55))
        assert await alerts(store) == {}
        await retiring.note(tick(57))
        (told,) = (await alerts(store)).values()
        assert (told.host, told.kind) == (BUSY, "discover")
        assert told.fault == "its sources were looked for on 2026-01-01, and not since"
        await store.done(discovery_of(BUSY), int((START + 57 * DAY).timestamp() * 1e6))
        await retiring.note(tick(58.5))
        assert await alerts(store) == {}

    asyncio.run(main())


def test_a_source_that_is_gone_is_looked_at_again_within_a_month_for_ever() -> None:
    async def main() -> None:
        store, census = await opened()
        for day in range(40):
            await look(store, GONE, day, status="gone")
        await census.refresh()
        (row,) = np.flatnonzero(census.everyone(tick(40), lambda _: 1.0).ids == 1)
        assert [bool(census.up(tick(39 + days))[row]) for days in (1, 29, 31, 400)] == [
            False, False, True, True,
        ]  # fmt: skip
        assert (await store.summary()).resting == 0, "no source is dropped"

    asyncio.run(main())
